// The functions of the `hal_inline` module as plain C++ functions; functions equal to those of `hal` are
// shared. The table modules/hal_inline_functions.inc lists their signatures.
#pragma once

#include <cstdint>
#include <tuple>

#include "modules/hal_functions.h"

namespace halyard::modules {

// The state of the module in one context.
struct HalInlineState {
  HalInlineOptions options;
  Ref<hal::Device> host;  // the host's memory
};

namespace hal_inline_functions {

using hal_functions::buffer_length;
using hal_functions::buffer_view_assert;
using hal_functions::buffer_view_buffer;
using hal_functions::buffer_view_dim;
using hal_functions::buffer_view_element_type;
using hal_functions::buffer_view_encoding_type;
using hal_functions::buffer_view_rank;
using vm::Span;

// A buffer, and a vm.buffer over the same bytes.
using BufferAndStorage = std::tuple<Ref<hal::Buffer>, Ref<vm::Buffer>>;

Result<BufferAndStorage> buffer_allocate(HalInlineState&, vm::CallContext&, uint32_t minimum_alignment,
                                         uint64_t size);
Result<BufferAndStorage> buffer_allocate_initialized(HalInlineState&, vm::CallContext&,
                                                     uint32_t minimum_alignment, vm::Buffer& source,
                                                     uint64_t offset, uint64_t length);
Result<Ref<hal::Buffer>> buffer_wrap(HalInlineState&, vm::Buffer& source, uint64_t offset, uint64_t length);
Result<Ref<hal::Buffer>> buffer_subspan(HalInlineState&, hal::Buffer&, uint64_t offset, uint64_t length);
Result<Ref<vm::Buffer>> buffer_storage(HalInlineState&, hal::Buffer&);
Result<Ref<hal::BufferView>> buffer_view_create(HalInlineState&, hal::Buffer&, uint64_t offset,
                                                uint64_t length, uint32_t element_type, uint32_t encoding,
                                                Span<int64_t> shape);
Result<> buffer_view_trace(HalInlineState&, Object* key, Span<Object*> views);
Result<std::tuple<int32_t, int64_t>> device_query_i64(vm::Buffer& category, vm::Buffer& key);

}  // namespace hal_inline_functions
}  // namespace halyard::modules
