// Parses declarations of functions: "sync func @f(%x: tensor<?x4xf32>, %n: i32) -> (%y: tensor<f32>)", the
// attribute iree.abi.declaration. Compilers write them for people, so text that cannot be parsed is ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace halyard::c {

inline constexpr std::string_view kDeclarationAttribute = "iree.abi.declaration";

// All texts borrow from the declaration's text.
struct Declared {
  std::string_view name;  // "x"; may be empty
  std::string_view type;  // "tensor<?x4xf32>", without the attributes after it
};
struct Declaration {
  std::vector<Declared> arguments;
  std::vector<Declared> results;
};
// Nothing if the text is not a declaration.
std::optional<Declaration> parse_declaration(std::string_view text);

// The element type with this name in declarations: "f32", "complex<f32>"; 0 if there is none.
uint32_t declared_element(std::string_view text);

struct DeclaredTensor {
  uint32_t element_type = 0;
  bool is_ranked = true;
  std::vector<int64_t> shape;  // -1: any size
};
// Nothing if the type is not a tensor.
std::optional<DeclaredTensor> declared_tensor(std::string_view type);

}  // namespace halyard::c
