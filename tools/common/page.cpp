// Puts the data into the page, whose parts are the files of common/page.
#include "common/page.h"

#include <span>
#include <string_view>

#include "common/files.h"

namespace halyard::tools {

extern const char* const kPageBefore;  // the data; the build makes both of common/page
extern const char* const kPageAfter;

namespace {

// JSON has these characters only in strings, where an escape means the same. Without '<' nothing can end the
// script element or begin another one.
std::string escaped(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char character : json) {
    switch (character) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      default:
        text += character;
    }
  }
  return text;
}

}  // namespace

std::string page_text(const PageContents& contents) {
  const Json data = {{"file", contents.file},
                     {"analysis", contents.analysis},
                     {"profile", contents.profile},
                     {"timeline", contents.timeline},
                     {"diff", contents.diff}};
  constexpr int kNoIndent = -1;
  const std::string json = data.dump(kNoIndent, ' ', true, Json::error_handler_t::replace);
  return std::string(kPageBefore) + escaped(json) + kPageAfter;
}

Result<> write_page(const std::string& path, const PageContents& contents) {
  const std::string text = page_text(contents);
  return write_file(path, false, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace halyard::tools
