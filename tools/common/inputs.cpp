// Parses the forms of --input: numbers, tensors as text, npy files, raw files.
#include "common/inputs.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <system_error>

#include "common/byte_stream.h"
#include "common/npy.h"
#include "common/program_flags.h"
#include "common/scalar.h"

namespace halyard::tools {

namespace {

// Removes surrounding blanks and one pair of quotes.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto strip = [&](std::string_view inner) {
    const size_t first = inner.find_first_not_of(kBlanks);
    return first == std::string_view::npos ? std::string_view()
                                           : inner.substr(first, inner.find_last_not_of(kBlanks) - first + 1);
  };
  text = strip(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    text = strip(text.substr(1, text.size() - 2));
  return text;
}

class InputParser {
 public:
  InputParser(std::string_view types, const Device& device, const Flag& flag, Described described)
      : types_(types),
        device_(device),
        flag_(flag),
        what_(described == Described::input ? "input" : "result") {}

  Result<> add(std::string_view given) {
    const std::string text(trimmed(given));
    if (text.empty())
      return fail(HALYARD_INVALID_ARGUMENT, "{}={}: empty text; expected {}", flag_, given, expectation());
    if (text.starts_with('*')) return add_all_arrays(text.substr(1));
    const std::optional<char> type = next_type();
    if (!type)
      return fail(HALYARD_INVALID_ARGUMENT,
                  "{}={}: the function has {} {}{}, and this is one more; remove it", flag_, given,
                  types_.size(), what_, types_.size() == 1 ? "" : "s");
    Result<> added = add_one(text, *type);
    if (!added)
      return fail(added.error().code, "{}={}: {} {} of the function: {}", flag_, given, what_,
                  arguments.values().size(), added.error().text);
    return {};
  }

  Arguments arguments;

 private:
  std::optional<char> next_type() const {
    const size_t index = arguments.values().size();
    return index < types_.size() ? std::optional(types_[index]) : std::nullopt;
  }

  std::string_view expectation() const {
    switch (next_type().value_or('r')) {
      case 'i':
        return "an integer of 32 bits, such as 5 or 0x1F";
      case 'I':
        return "an integer of 64 bits, such as 5 or 0x1F";
      case 'f':
      case 'F':
        return "a number, such as 2.5";
      default:
        return "a tensor, such as 2x2xf32=1,2,3,4 or @file.npy";
    }
  }

  Result<> add_one(const std::string& text, char type) {
    if (text == "(null)" || text == "(ignored)") {
      halyard_value_t zero = {};
      zero.kind = type == 'i'   ? HALYARD_VALUE_I32
                  : type == 'I' ? HALYARD_VALUE_I64
                  : type == 'f' ? HALYARD_VALUE_F32
                  : type == 'F' ? HALYARD_VALUE_F64
                                : HALYARD_VALUE_NULL;
      arguments.add(Value(adopt, zero), Arguments::Origin::placeholder);
      return {};
    }
    return type == 'r' ? add_reference(text) : add_number(text, type);
  }

  Result<> add_number(const std::string& text, char type) {
    Result<Value> value = parse_scalar(text, type);
    if (!value) return fail(value.error().code, "expected {}, found '{}'", expectation(), text);
    arguments.add(*std::move(value));
    return {};
  }

  Result<> add_reference(std::string_view text) {
    const bool as_buffer = text.starts_with('&');
    if (as_buffer) text.remove_prefix(1);
    Tensor view;
    const bool is_array = text.starts_with('@') || text.starts_with('+');
    if (is_array) {
      view = TOOL_TRY(upload(TOOL_TRY(read_array(text))));
    } else {
      const size_t equals = text.find('=');
      const bool raw = equals != std::string_view::npos && equals + 1 < text.size() &&
                       (text[equals + 1] == '@' || text[equals + 1] == '+');
      view = TOOL_TRY(raw ? upload_raw(text.substr(0, equals), text.substr(equals + 1)) : upload_text(text));
    }
    arguments.add(as_buffer ? TOOL_TRY(view.buffer()) : Object(view),
                  is_array ? Arguments::Origin::array : Arguments::Origin::given);
    return {};
  }

  Result<Tensor> create(uint32_t type, std::span<const int64_t> shape, const std::vector<uint8_t>& bytes) {
    return check(Tensor::create(device_, static_cast<ElementType>(type), shape, bytes.data(), bytes.size()));
  }

  Result<Tensor> upload_text(std::string_view text) {
    return check(TOOL_TRY(TensorText::parse(text)).create(device_));
  }

  Result<Tensor> upload(const Array& array) { return create(array.element_type, array.shape, array.bytes); }

  // "@file.npy": the first array. "+file.npy": the next array of the most recently opened file.
  Result<Array> read_array(std::string_view text) {
    const std::string path(text.substr(1));
    if (text.front() == '@') {
      arrays_ = TOOL_TRY(NpyFile::open(path));
    } else if (!arrays_ || arrays_->path() != path) {
      return fail(HALYARD_INVALID_ARGUMENT,
                  "'+{}' continues the npy file that was opened last, which is {}; write '@{}'", path,
                  arrays_ ? "'" + arrays_->path() + "'" : "none", path);
    }
    return arrays_->next();
  }

  Result<> add_all_arrays(const std::string& path) {
    Result<NpyFile> file = NpyFile::open(path);
    if (!file) return fail(file.error().code, "{}=*{}: {}", flag_, path, file.error().text);
    arrays_ = *std::move(file);
    do {
      if (!next_type())
        return fail(HALYARD_INVALID_ARGUMENT,
                    "{}=*{}: the file has more arrays than the function has {}s ({})", flag_, path, what_,
                    types_.size());
      if (*next_type() != 'r')
        return fail(HALYARD_INVALID_ARGUMENT, "{}=*{}: {} {} of the function is {}, not a tensor", flag_,
                    path, what_, arguments.values().size(), expectation());
      arguments.add(TOOL_TRY(upload(TOOL_TRY(arrays_->next()))), Arguments::Origin::array);
    } while (!arrays_->at_end());
    return {};
  }

  // Bytes of a file with a declared type: "2x3xf32" and "@file.bin" (from the start) or "+file.bin" (from the
  // end of the last read of that file). An npy file has a type, which must be equal to the declared type.
  Result<Tensor> upload_raw(std::string_view type, std::string_view source) {
    const TensorText tensor = TOOL_TRY(TensorText::parse_type(type));
    const std::string path(source.substr(1));
    if (source.front() == '+' && arrays_ && arrays_->path() == path) return upload_declared(*tensor, type);
    auto stream = raw_.find(path);
    if (source.front() == '@' || stream == raw_.end()) {
      ByteStream opened = TOOL_TRY(ByteStream::open(path));
      if (NpyFile::is_next(opened)) {
        arrays_ = NpyFile(std::move(opened));
        return upload_declared(*tensor, type);
      }
      if (path.ends_with(".npy"))
        return fail(HALYARD_INVALID_ARGUMENT,
                    "'{}' has the name of an npy file, but does not start with \\x93NUMPY; if it contains "
                    "the bytes of {}, give it another name",
                    path, type);
      if (stream != raw_.end()) raw_.erase(stream);
      stream = raw_.emplace(path, std::move(opened)).first;
    }
    const uint64_t position = stream->second.position();
    const std::vector<uint8_t> bytes = TOOL_TRY(stream->second.read(tensor->size));
    if (bytes.size() < tensor->size)
      return fail(
          HALYARD_OUT_OF_RANGE,
          "'{}' has {} bytes from byte {} on, but {} needs {}; give the shape of the data in the file", path,
          bytes.size(), position, type, tensor->size);
    return create(tensor->element_type, std::span(tensor->shape, tensor->rank), bytes);
  }

  // Reads the next array of arrays_, whose type must be equal to the declared type before the file name.
  Result<Tensor> upload_declared(const halyard_tensor_t& declared, std::string_view type) {
    const Array array = TOOL_TRY(arrays_->next());
    const std::string name = TOOL_TRY(text_of(static_cast<ElementType>(declared.element_type)));
    const std::span shape(declared.shape, declared.rank);
    if (!std::ranges::equal(array.shape, shape) || !npy_holds(array.type_name, name))
      return fail(HALYARD_INVALID_ARGUMENT,
                  "'{}' is an npy file of {}, but the declared type is {}; write '@{}' alone to use the type "
                  "of the file, or save the array with the declared shape and type",
                  arrays_->path(), array.type_text(), type, arrays_->path());
    return create(declared.element_type, shape, array.bytes);
  }

  std::string_view types_;
  const Device& device_;
  const Flag& flag_;
  const std::string_view what_;
  std::optional<NpyFile> arrays_;
  std::map<std::string, ByteStream> raw_;  // by path; each is positioned at the end of its last read
};

}  // namespace

Result<Arguments> parse_inputs(const std::vector<std::string>& texts, std::string_view types,
                               const Device& device, const Flag& flag, Described described) {
  InputParser parser(types, device, flag, described);
  for (const std::string& text : texts) TOOL_TRY(parser.add(text));
  return std::move(parser.arguments);
}

Result<> check_inputs(const halyard_function_description_t& function, std::string_view types,
                      const Arguments& arguments) {
  if (arguments.values().size() >= types.size()) return {};
  return fail(HALYARD_INVALID_ARGUMENT,
              "expected {} arguments, found {}; function '{}' takes one --input for each{}{}", types.size(),
              arguments.values().size(), view(function.name), function.declaration.size ? ": " : "",
              view(function.declaration));
}

namespace {

// Whether `a` is sorted before `b`; groups of digits are compared as numbers.
bool comes_before(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto take_number = [&](std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
    size_t size = 0;
    while (size < text.size() && is_digit(text[size])) ++size;
    const std::string_view digits = text.substr(0, size);
    text.remove_prefix(size);
    return digits;
  };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const std::string_view left = take_number(a);
      const std::string_view right = take_number(b);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
    } else {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

}  // namespace

Result<std::vector<std::string>> arrays_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".npy") names.push_back(entry->path().filename());
  if (error)
    return fail(code_of_errno(error.value()), "{}={}: cannot read the folder: {}; check the path",
                flag::inputs_from, folder, error.message());
  if (names.empty())
    return fail(
        HALYARD_NOT_FOUND,
        "{}={}: the folder has no file that ends in .npy; save an array there for each argument, such as "
        "input0.npy",
        flag::inputs_from, folder);
  std::ranges::sort(names, comes_before);
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back("*" + folder + "/" + name);
  return texts;
}

Result<Arguments> given_inputs(const Flags& flags, std::string_view types, const Device& device) {
  if (!flags.has(flag::inputs_from)) return parse_inputs(flags[flag::input], types, device, flag::input);
  if (flags.has(flag::input))
    return fail(HALYARD_INVALID_ARGUMENT, "found both {} and {}; pass the arguments with one of them",
                flag::input, flag::inputs_from);
  return parse_inputs(TOOL_TRY(arrays_in(flags[flag::inputs_from])), types, device, flag::inputs_from);
}

}  // namespace halyard::tools
