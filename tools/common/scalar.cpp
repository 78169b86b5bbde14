// Reads numbers with the library's parser of tensor elements.
#include "common/scalar.h"

#include <cstring>

namespace halyard::tools {

Result<Value> parse_scalar(std::string_view text, char type) {
  struct Kind {
    char type;
    std::string_view name;
    int32_t kind;
  };
  // The second row for 'I': a number above the largest signed number gives the same bits, as for 32-bit
  // integers.
  static constexpr Kind kKinds[] = {{'i', "i32", HALYARD_VALUE_I32},
                                    {'I', "i64", HALYARD_VALUE_I64},
                                    {'I', "ui64", HALYARD_VALUE_I64},
                                    {'f', "f32", HALYARD_VALUE_F32},
                                    {'F', "f64", HALYARD_VALUE_F64}};
  Failure failure{.code = HALYARD_INVALID_ARGUMENT, .text = "expected one number"};
  if (text.empty() || text.find_first_of(" \t\n\v\f\r,[]") != std::string_view::npos)
    return std::unexpected(failure);
  for (const Kind& kind : kKinds) {
    if (kind.type != type) continue;
    const auto parsed = TensorText::parse(fmt::format("{}={}", kind.name, text));
    if (!parsed) {
      failure = failure_of(parsed.error());
      continue;
    }
    const halyard_tensor_t& tensor = **parsed;
    halyard_value_t value = {};
    value.kind = kind.kind;
    std::memcpy(&value.i64, tensor.data, tensor.size);  // the numbers are members of a union
    return Value(adopt, value);
  }
  return std::unexpected(failure);
}

}  // namespace halyard::tools
