// Replaces special characters of XML by references.
#include "common/xml.h"

#include "common/printable.h"

namespace halyard::tools {

std::string xml(std::string_view text) {
  std::string safe;
  for (const char character : printable(text)) {
    switch (character) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\n':
        safe += "&#10;";
        break;
      default:
        safe += character;
    }
  }
  return safe;
}

}  // namespace halyard::tools
