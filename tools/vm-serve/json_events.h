// Parses JSON (RFC 8259) from memory with Boost.JSON's parser and reports events. It builds no document, and
// all strings share one buffer. In addition to the standard it accepts NaN, Infinity, Inf, -Infinity and -Inf
// as values, because the JSON libraries of Python and C++ write them.
#pragma once

#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace halyard::tools::serve {

// Calls functions of `events`; each returns whether to continue:
//
//   bool null(), boolean(bool)
//   bool number_unsigned(uint64_t)      whole numbers without a sign
//   bool number_integer(int64_t)        negative whole numbers
//   bool number_float(double)           all others: -0, NaN, infinities, whole numbers of more than 64 bits
//   bool string(std::string&), key(std::string&)     UTF-8, up to 1 MiB; may be moved from
//   bool start_object(), end_object(), start_array(), end_array()
//   bool parse_error(size_t position, std::string_view why)    invalid JSON; run() returns its result
template <typename Events>
class JsonReader {
 public:
  JsonReader(std::string_view text, Events& events)
      : text_(text), events_(events), parser_(options(), events) {}

  // Parses one value, surrounded only by white space.
  bool run() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    const size_t begin = text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    const std::string_view text = text_.substr(begin);
    Error error;
    size_t done = 0;
    for (Literals literals(text); !error;) {
      const auto literal = literals.next();
      const std::string_view piece =
          text.substr(done, literal ? literal->begin - done : std::string_view::npos);
      const size_t size = parser_.write_some(literal.has_value(), piece.data(), piece.size(), error);
      done += size;
      if (!error && size < piece.size()) error = boost::json::error::extra_data;
      if (error || !literal) break;
      // The parser gets a string instead, so that its rules decide whether a value may be here.
      constexpr std::string_view kStandIn = "\"\"";
      parser_.handler().literal(literal->value);
      parser_.write_some(true, kStandIn.data(), kStandIn.size(), error);
      parser_.handler().literal(std::nullopt);
      if (!error) done = literal->end;
    }
    if (!error) return true;
    return error != kEnded && events_.parse_error(begin + done, error.message());
  }

 private:
  using Error = boost::json::error_code;
  using Text = boost::json::string_view;
  static constexpr size_t kMaxText = 1 << 20;  // bytes of a string or key
  static constexpr auto kEnded = boost::system::errc::operation_canceled;

  static boost::json::parse_options options() {
    boost::json::parse_options options;
    options.max_depth = kMaxDepth;
    return options;
  }

  // Finds the literals that are not JSON, where a value may begin: after '[', ',' or ':', outside of strings.
  class Literals {
   public:
    struct Literal {
      size_t begin, end;
      double value;
    };

    explicit Literals(std::string_view text)
        : text_(text), is_over_(!text.contains("NaN") && !text.contains("Inf")) {}

    std::optional<Literal> next() {
      while (!is_over_ && at_ < text_.size()) {
        const char c = text_[at_];
        if (is_in_string_) {
          at_ += c == '\\' ? 2 : 1;
          if (c == '"') is_in_string_ = false;
          continue;
        }
        if (may_begin_)
          if (const auto found = literal_at(at_)) return at_ = found->end, found;
        const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!is_blank) may_begin_ = c == '[' || c == ',' || c == ':';
        is_in_string_ = c == '"';
        ++at_;
      }
      return std::nullopt;
    }

   private:
    std::optional<Literal> literal_at(size_t begin) {
      struct Name {
        std::string_view text;
        double value;
      };
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      static constexpr Name kNames[] = {{"NaN", std::numeric_limits<double>::quiet_NaN()},
                                        {"Infinity", kInfinity},
                                        {"-Infinity", -kInfinity},
                                        {"Inf", kInfinity},
                                        {"-Inf", -kInfinity}};
      for (const Name& name : kNames) {
        if (!text_.substr(begin).starts_with(name.text)) continue;
        may_begin_ = false;
        return Literal{begin, begin + name.text.size(), name.value};
      }
      return std::nullopt;
    }

    const std::string_view text_;
    const bool is_over_;  // there are no such literals
    size_t at_ = 0;
    bool is_in_string_ = false;
    bool may_begin_ = false;
  };

  // The functions that Boost.JSON calls.
  class Handler {
   public:
    static constexpr size_t max_object_size = SIZE_MAX;
    static constexpr size_t max_array_size = SIZE_MAX;
    static constexpr size_t max_key_size = kMaxText;
    static constexpr size_t max_string_size = kMaxText;

    explicit Handler(Events& events) : events_(events) {}
    // Sets the value that the next string represents.
    void literal(std::optional<double> value) { literal_ = value; }

    bool on_document_begin(Error&) { return true; }
    bool on_document_end(Error&) { return true; }
    bool on_object_begin(Error& error) { return go_on(events_.start_object(), error); }
    bool on_object_end(size_t, Error& error) { return go_on(events_.end_object(), error); }
    bool on_array_begin(Error& error) { return go_on(events_.start_array(), error); }
    bool on_array_end(size_t, Error& error) { return go_on(events_.end_array(), error); }
    bool on_key_part(Text part, size_t, Error&) { return add(part); }
    bool on_key(Text last, size_t, Error& error) {
      if (!literal_) return end(last, &Events::key, error);
      error = boost::json::error::syntax;
      return false;
    }
    bool on_string_part(Text part, size_t, Error&) { return add(part); }
    bool on_string(Text last, size_t, Error& error) {
      if (literal_) return go_on(events_.number_float(*literal_), error);
      return end(last, &Events::string, error);
    }
    bool on_number_part(Text, Error&) { return true; }  // for texts in several pieces
    bool on_int64(int64_t number, Text text, Error& error) {
      if (number > 0) return go_on(events_.number_unsigned(static_cast<uint64_t>(number)), error);
      if (number < 0) return go_on(events_.number_integer(number), error);
      return go_on(text.front() == '-' ? events_.number_float(-0.0) : events_.number_unsigned(0), error);
    }
    bool on_uint64(uint64_t number, Text, Error& error) {
      return go_on(events_.number_unsigned(number), error);
    }
    // Boost's number may differ by one unit in the last place.
    bool on_double(double, Text text, Error& error) {
      double number = 0;
      if (std::from_chars(text.begin(), text.end(), number).ec != std::errc()) {  // too large, or too small
        number = std::strtod(std::string(text).c_str(), nullptr);
        if (std::isinf(number)) error = boost::json::error::exponent_overflow;
        if (error) return false;
      }
      return go_on(events_.number_float(number), error);
    }
    bool on_bool(bool value, Error& error) { return go_on(events_.boolean(value), error); }
    bool on_null(Error& error) { return go_on(events_.null(), error); }
    bool on_comment_part(Text, Error&) { return true; }
    bool on_comment(Text, Error&) { return true; }

   private:
    bool add(Text part) {
      text_.append(part.data(), part.size());
      return true;
    }
    bool end(Text last, bool (Events::*event)(std::string&), Error& error) {
      add(last);
      const bool goes_on = (events_.*event)(text_);
      text_.clear();
      return go_on(goes_on, error);
    }
    static bool go_on(bool goes_on, Error& error) {
      if (!goes_on) error = make_error_code(kEnded);
      return goes_on;
    }

    Events& events_;
    std::string text_;  // of the current string
    std::optional<double> literal_;
  };

  // The parser recurses for each level. Events may allow fewer levels, in start_object() and start_array().
  static constexpr size_t kMaxDepth = 256;

  const std::string_view text_;
  Events& events_;
  boost::json::basic_parser<Handler> parser_;
};

}  // namespace halyard::tools::serve
