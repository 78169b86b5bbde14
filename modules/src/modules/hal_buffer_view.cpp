// hal.buffer_view.*. Specified by hal-module.md, "Buffer view".
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {
namespace {

constexpr size_t kMaxTracedViews = 128;

using Shape = boost::container::small_vector<int64_t, 8>;

template <typename T>
Result<T*> required(Object* object, std::string_view what) {
  if (!object) return fail(Code::INVALID_ARGUMENT, "expected a {} as {}, found null", T::kType.name, what);
  T* result = cast<T>(object);
  if (!result)
    return fail(Code::INVALID_ARGUMENT, "expected a {} as {}, found {}", T::kType.name, what,
                object->type()->name);
  return result;
}

}  // namespace

Result<Ref<hal::BufferView>> buffer_view_create(HalOptions& state, hal::Buffer& buffer, uint64_t offset,
                                                uint64_t length, uint32_t element_type, uint32_t encoding,
                                                Span<int64_t> shape) {
  return create_view(buffer, offset, length, element_type, encoding, shape, state.memory.get());
}

Result<Ref<hal::BufferView>> create_view(hal::Buffer& buffer, uint64_t offset, uint64_t length,
                                         uint32_t element_type, uint32_t encoding, Span<int64_t> shape,
                                         Budget* memory) {
  if (shape.size() > hal::kMaxRank)
    return fail(Code::OUT_OF_RANGE, "expected at most {} dimensions for a buffer view, found {}",
                hal::kMaxRank, shape.size());
  Shape dimensions;
  collect(shape, dimensions);
  Ref<hal::Buffer> range =
      HALYARD_TRY(buffer.subspan(offset, length, memory));  // the same object for the whole buffer
  return hal::BufferView::create(std::move(range), dimensions, element_type, encoding, memory);
}

Result<> buffer_view_assert(hal::BufferView& view, vm::Buffer& message, uint32_t element_type,
                            uint32_t encoding, Span<int64_t> shape) {
  Shape dimensions;
  collect(shape, dimensions);
  return view.check(text(message), element_type, encoding, dimensions);
}

Result<Ref<hal::Buffer>> buffer_view_buffer(hal::BufferView& view) {
  return Ref<hal::Buffer>::share(&view.buffer());
}
Result<uint32_t> buffer_view_element_type(hal::BufferView& view) { return view.type(); }
Result<uint32_t> buffer_view_encoding_type(hal::BufferView& view) { return view.encoding(); }
Result<uint32_t> buffer_view_rank(hal::BufferView& view) {
  return static_cast<uint32_t>(view.shape().size());
}

Result<int64_t> buffer_view_dim(hal::BufferView& view, uint32_t index) {
  return index < view.shape().size() ? view.shape()[index] : 0;
}

Result<> buffer_view_trace(HalOptions& state, Object* key, Span<Object*> operands) {
  return trace_views(state.trace, key, operands);
}

Result<> trace_views(const TraceSink& sink, Object* key, Span<Object*> operands) {
  if (!sink) return {};
  if (operands.size() > kMaxTracedViews)
    return fail(Code::RESOURCE_EXHAUSTED, "expected at most {} buffer views in a trace, found {}",
                kMaxTracedViews, operands.size());
  const vm::Buffer* title = HALYARD_TRY(required<vm::Buffer>(key, "the key of a trace"));
  std::vector<hal::BufferView*> views(operands.size());
  for (size_t i = 0; i < views.size(); ++i)
    views[i] = HALYARD_TRY(
        required<hal::BufferView>(std::get<0>(operands[i]), fmt::format("operand {} of a trace", i)));
  sink(text(*title), views);
  return {};
}

}  // namespace halyard::modules::hal_functions
