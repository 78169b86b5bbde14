// Patterns that choose tests, as GoogleTest's --gtest_filter has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halyard::tools {

// "A.*:B.x-*slow*:*.y": patterns with ':' between them, of which a name matches one (without any: every name
// does); behind the first '-', those of which it matches none. In a pattern '*' stands for any text, '?' for
// any character.
class Filter {
 public:
  explicit Filter(std::string_view text);
  bool takes(std::string_view name) const;

 private:
  std::vector<std::string> wanted_;
  std::vector<std::string> left_out_;
};

}  // namespace halyard::tools
