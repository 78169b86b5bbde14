// Signatures of functions as data (halyard/signature.h): from the calling convention, with additions from the
// declaration.
#include "halyard/signature.h"

#include <array>

#include "declaration.h"
#include "export.h"
#include "hal/view/element_type.h"
#include "handles.h"

// The public header has every type of the table, with its number.
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, ...)         \
  static_assert(static_cast<uint32_t>(HALYARD_ELEMENT_##symbol) == \
                halyard::hal::element_type(halyard::hal::k##numerical, bits));
#include "halyard/element_types.inc"

namespace halyard::c {
namespace {

struct Item {
  uint32_t kind = HALYARD_KIND_OBJECT;
  uint32_t value_kind = HALYARD_VALUE_OBJECT;
  uint32_t element_type = HALYARD_ELEMENT_NONE;
  bool is_ranked = true;
  std::vector<int64_t> shape;
  std::string_view name;
  std::string_view type;
};

struct Signature final : ObjectOf<Signature> {
  static const ObjectType kType;
  Ref<vm::Module> module;  // owns the texts
  const vm::Export* function = nullptr;
  std::vector<Item> arguments;
  std::vector<Item> results;
};
const ObjectType Signature::kType = object_type<Signature>("halyard.signature");

struct Scalar {
  char type;  // from the calling convention
  uint32_t value_kind;
  uint32_t element_type;
};
constexpr Scalar kScalars[] = {{'i', HALYARD_VALUE_I32, HALYARD_ELEMENT_I32},
                               {'I', HALYARD_VALUE_I64, HALYARD_ELEMENT_I64},
                               {'f', HALYARD_VALUE_F32, HALYARD_ELEMENT_F32},
                               {'F', HALYARD_VALUE_F64, HALYARD_ELEMENT_F64}};

// Declared types of objects, up to their own parameters.
struct NamedKind {
  std::string_view type;
  uint32_t kind;
};
constexpr NamedKind kNamedKinds[] = {
    {"!hal.buffer_view", HALYARD_KIND_TENSOR}, {"!iree_input.buffer_view", HALYARD_KIND_TENSOR},
    {"!hal.buffer", HALYARD_KIND_BUFFER},      {"!iree_input.buffer", HALYARD_KIND_BUFFER},
    {"!util.buffer", HALYARD_KIND_BYTES},      {"!iree_input.byte_buffer", HALYARD_KIND_BYTES},
    {"!vm.buffer", HALYARD_KIND_BYTES},        {"!util.list", HALYARD_KIND_LIST},
    {"!iree_input.list", HALYARD_KIND_LIST},   {"!vm.list", HALYARD_KIND_LIST},
    {"!hal.fence", HALYARD_KIND_FENCE},
};

void declare_object(Item& item) {
  if (std::optional<DeclaredTensor> tensor = declared_tensor(item.type)) {
    item.kind = HALYARD_KIND_TENSOR;
    item.element_type = tensor->element_type;
    item.is_ranked = tensor->is_ranked;
    item.shape = std::move(tensor->shape);
    return;
  }
  const std::string_view type = item.type.substr(0, item.type.find('<'));
  for (const NamedKind& named : kNamedKinds)
    if (named.type == type) item.kind = named.kind;
  item.is_ranked = item.kind != HALYARD_KIND_TENSOR;
}

// Sets the declared number type, if the register can contain that type.
void declare_scalar(Item& item) {
  const uint32_t declared = declared_element(item.type);
  const auto is_float = [](uint32_t type) { return type >> 24 >= hal::kFloat; };
  if (declared != HALYARD_ELEMENT_NONE && is_float(declared) == is_float(item.element_type) &&
      hal::bit_count(declared) <= hal::bit_count(item.element_type))
    item.element_type = declared;
}

Item item_of(char type, const Declared* declared) {
  Item item;
  if (type == 'C') {
    item.kind = HALYARD_KIND_SPAN;
    item.value_kind = HALYARD_VALUE_NULL;
    return item;
  }
  for (const Scalar& scalar : kScalars) {
    if (scalar.type != type) continue;
    item.kind = HALYARD_KIND_SCALAR;
    item.value_kind = scalar.value_kind;
    item.element_type = scalar.element_type;
  }
  if (!declared) return item;
  item.name = declared->name;
  item.type = declared->type;
  if (item.kind == HALYARD_KIND_SCALAR) {
    declare_scalar(item);
  } else {
    declare_object(item);
  }
  return item;
}

std::vector<Item> items_of(std::span<const vm::ConventionItem> convention,
                           std::span<const Declared> declared) {
  std::vector<Item> items;
  for (size_t i = 0; i < convention.size(); ++i)
    items.push_back(item_of(convention[i].type, i < declared.size() ? &declared[i] : nullptr));
  return items;
}

Result<Ref<Signature>> signature_of(const vm::Module& module, const vm::Export& function) {
  const vm::Convention convention = HALYARD_TRY(vm::Convention::parse(function.convention));
  constexpr size_t kFences = 2;
  const size_t all = convention.arguments.size();
  const bool is_async = is_asynchronous(function) && all >= kFences;
  const size_t plain = is_async ? all - kFences : all;
  std::optional<Declaration> declaration = parse_declaration(function.attribute(kDeclarationAttribute));
  // If the counts differ, the declaration belongs to another function.
  if (!declaration || declaration->arguments.size() != plain ||
      declaration->results.size() != convention.results.size())
    declaration.emplace();
  auto signature = make<Signature>();
  signature->module = Ref<vm::Module>::share(const_cast<vm::Module*>(&module));
  signature->function = &function;
  signature->arguments = items_of(convention.arguments, declaration->arguments);
  signature->results = items_of(convention.results, declaration->results);
  for (size_t i = plain; i < all; ++i)
    if (signature->arguments[i].kind == HALYARD_KIND_OBJECT)
      signature->arguments[i].kind = HALYARD_KIND_FENCE;
  return signature;
}

Result<> give_item(std::span<const Item> items, std::string_view what, const Signature& signature,
                   size_t index, halyard_value_description_t* description) {
  if (index >= items.size())
    return fail(Code::OUT_OF_RANGE, "{} {} of '{}' does not exist; the function has {}", what, index,
                signature.function->name, items.size());
  const Item& item = items[index];
  halyard_value_description_t filled = {};
  filled.kind = item.kind;
  filled.value_kind = item.value_kind;
  filled.element_type = item.element_type;
  filled.rank = item.is_ranked ? static_cast<uint32_t>(item.shape.size()) : HALYARD_RANK_UNKNOWN;
  filled.shape = item.shape.data();
  filled.name = to_text(item.name);
  filled.type = to_text(item.type);
  return fill_info(description, filled, "description");
}

}  // namespace

std::string argument_name(const vm::Export& function, size_t index) {
  const std::optional<Declaration> declaration = parse_declaration(function.attribute(kDeclarationAttribute));
  if (!declaration || index >= declaration->arguments.size()) return "";
  const std::string_view name = declaration->arguments[index].name;
  return name.empty() ? "" : fmt::format(" ('%{}')", name);
}

}  // namespace halyard::c

using namespace halyard;
using namespace halyard::c;

halyard_status_t halyard_module_signature(halyard_module_t module, uint32_t index, halyard_signature_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const vm::Module& of = *HALYARD_TRY(module_of(module));
    *out = give<halyard_signature_t>(HALYARD_TRY(signature_of(of, *HALYARD_TRY(find_export(of, index)))));
    return {};
  });
}

halyard_status_t halyard_function_signature(halyard_function_t function, halyard_signature_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const vm::Callable& callable = HALYARD_TRY(checked<Function>(function))->callable;
    *out =
        give<halyard_signature_t>(HALYARD_TRY(signature_of(*callable.instance->module, *callable.function)));
    return {};
  });
}

halyard_status_t halyard_signature_describe(halyard_signature_t signature,
                                            halyard_function_description_t* description) {
  return guarded([&]() -> Result<> {
    return fill_info(description,
                     HALYARD_TRY(describe(*HALYARD_TRY(checked<Signature>(signature))->function)),
                     "description");
  });
}

halyard_status_t halyard_signature_argument(halyard_signature_t signature, size_t index,
                                            halyard_value_description_t* description) {
  return guarded([&]() -> Result<> {
    const Signature& of = *HALYARD_TRY(checked<Signature>(signature));
    return give_item(of.arguments, "argument", of, index, description);
  });
}

halyard_status_t halyard_signature_result(halyard_signature_t signature, size_t index,
                                          halyard_value_description_t* description) {
  return guarded([&]() -> Result<> {
    const Signature& of = *HALYARD_TRY(checked<Signature>(signature));
    return give_item(of.results, "result", of, index, description);
  });
}
