// Maps results.
#include "output.h"

#include <cstring>

namespace halyard::tools::serve {

namespace {

Result<AlignedBuffer> bytes_of_number(const halyard_value_t& value, const TensorSpec& spec) {
  AlignedBuffer bytes;
  if (!bytes.resize(spec.type->size)) return fail(HALYARD_RESOURCE_EXHAUSTED, "out of memory for a number");
  // All members of the union begin at the same address.
  std::memcpy(bytes.data(), &value.i64, bytes.size());
  return bytes;
}

}  // namespace

Result<Output> Output::of(const TensorSpec& spec, const halyard::Value& value) {
  Output output;
  if (spec.is_number) {
    output.shape_ = {1};
    output.copy_ = TOOL_TRY(bytes_of_number(value.raw(), spec));
    output.bytes_ = output.copy_.span();
    return output;
  }
  if (value.is_null())
    return fail(HALYARD_FAILED_PRECONDITION, "the model returned null for '{}' instead of a tensor",
                spec.name);
  const Tensor tensor = TOOL_TRY(value.as<Tensor>());
  const halyard_view_info_t info = TOOL_TRY(tensor.info());
  if (datatype_of(info.element_type) != spec.type)
    return fail(HALYARD_FAILED_PRECONDITION,
                "the model returned another element type for '{}' than it declares", spec.name);
  output.shape_.assign(info.shape, info.shape + info.rank);
  const Result<uint64_t> bytes = check(tensor.byte_count());
  if (!bytes)
    return fail(HALYARD_FAILED_PRECONDITION, "the model's result '{}' cannot be sent: {}", spec.name,
                bytes.error().text);
  const uint64_t size = *bytes;
  if (size == 0) return output;

  auto mapping = tensor.map_bytes(halyard::Access::read);
  if (mapping) {
    output.mapping_.emplace(*std::move(mapping));
    output.bytes_ = std::span<const std::byte>(output.mapping_->elements()).first(size);
    return output;
  }
  // The memory is not host-visible.
  if (!output.copy_.resize(size))
    return fail(HALYARD_RESOURCE_EXHAUSTED, "out of memory for the {} bytes of '{}'", size, spec.name);
  TOOL_TRY(tensor.read_bytes(output.copy_.span()));
  output.bytes_ = output.copy_.span();
  return output;
}

}  // namespace halyard::tools::serve
