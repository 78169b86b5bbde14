#include "modules/json_events.h"

#include <nlohmann/json.hpp>
#include <string>

namespace halyard::modules {
namespace {

constexpr int kMaxNesting = 64;

// The callbacks of the parser; returning false ends the parsing.
class Handler {
 public:
  using Kind = JsonEvent::Kind;
  explicit Handler(const std::function<Result<>(const JsonEvent&)>& sink) : sink_(sink) {}

  bool null() { return tell({Kind::other, depth_}); }
  bool boolean(bool /*value*/) { return tell({Kind::other, depth_}); }
  bool number_integer(int64_t /*value*/) { return tell({Kind::other, depth_}); }
  bool number_unsigned(uint64_t value) { return tell({Kind::whole, depth_, value}); }
  bool number_float(double /*value*/, const std::string& /*text*/) { return tell({Kind::other, depth_}); }
  bool string(std::string& text) { return tell({Kind::string, depth_, 0, text}); }
  bool binary(std::vector<uint8_t>& /*bytes*/) { return tell({Kind::other, depth_}); }
  bool key(std::string& text) { return tell({Kind::key, depth_, 0, text}); }
  bool start_object(size_t /*size*/) { return begin(Kind::object); }
  bool start_array(size_t /*size*/) { return begin(Kind::array); }
  bool end_object() { return tell({Kind::end, --depth_}); }
  bool end_array() { return tell({Kind::end, --depth_}); }
  bool parse_error(size_t position, const std::string& /*token*/, const nlohmann::json::exception& error) {
    // Keeps the end of "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error while
    // ...".
    const std::string_view text = error.what();
    const size_t column = text.find("column ");
    const size_t colon = text.find(": ", column == text.npos ? 0 : column);
    result = fail(Code::INVALID_ARGUMENT, "byte {}: invalid JSON: {}", position,
                  colon == text.npos ? text : text.substr(colon + 2));
    return false;
  }

  Result<> result;

 private:
  bool tell(const JsonEvent& event) {
    result = sink_(event);
    return result.has_value();
  }
  bool begin(Kind kind) {
    if (depth_ == kMaxNesting) {
      result = fail(Code::INVALID_ARGUMENT, "values are nested more than {} deep", kMaxNesting);
      return false;
    }
    return tell({kind, depth_++});
  }

  const std::function<Result<>(const JsonEvent&)>& sink_;
  int depth_ = 0;
};

}  // namespace

Result<> read_json(std::string_view text, const std::function<Result<>(const JsonEvent&)>& sink) {
  // The parser treats a zero byte as the end of the text.
  if (const size_t zero = text.find('\0'); zero != text.npos)
    return fail(Code::INVALID_ARGUMENT, "byte {}: invalid JSON: a zero byte", zero + 1);
  Handler handler(sink);
  try {
    nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  } catch (const nlohmann::json::exception& error) {  // the parser reports through parse_error
    return fail(Code::INVALID_ARGUMENT, "invalid JSON: {}", error.what());
  }
  return handler.result;
}

}  // namespace halyard::modules
