// Texts that a driver has handed out, and copies of them: finds texts whose memory the driver gave up
// although they must still be valid [R23].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "session.h"

namespace halyard::cts {

class LastingTexts {
 public:
  // `what` describes the text: "the name of function 2". Null and empty texts are ignored.
  void add(std::string what, std::string_view text);
  void add(std::string what, const char* text) {
    if (text) add(std::move(what), std::string_view(text));
  }
  // Overwrites memory that nobody owns, as far as malloc and the stack give it away; then compares all texts
  // with their copies. Reports the first that differs.
  void check(Session& s, std::string_view after) const;

 private:
  struct Entry {
    std::string what;
    const char* text;
    std::string copy;
  };
  std::vector<Entry> entries_;
};

}  // namespace halyard::cts
