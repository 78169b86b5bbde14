// Patterns that select tests, like those of GoogleTest's --gtest_filter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halyard::tools {

// "A.*:B.x-*slow*:*.y": patterns separated by ':'. A name is selected if it matches one of the patterns
// before the first '-' (without any such pattern: always), and none of those after it. '*' matches any text,
// '?' any character.
class Filter {
 public:
  explicit Filter(std::string_view text);
  bool takes(std::string_view name) const;

 private:
  std::vector<std::string> wanted_;
  std::vector<std::string> left_out_;
};

}  // namespace halyard::tools
