/* Views that a program makes of any shape over any buffer: what reads, writes, exports, prints or splits one
 * compares both first. */

#include "halyard/halyard.h"
#include "halyard/memory.h"
#include "program.h"

/* @make: a view of n f32 over a buffer of 32 bytes. */
static const char kText[] =
    "vm.module @views\n"
    "vm.import @hal_inline.buffer.allocate cconv \"0iI_rr\"\n"
    "vm.import @hal_inline.buffer_view.create cconv \"0rIIiiCID_r\"\n"
    "vm.export @make\n"
    "vm.func @make(%i0:1: i64) -> (!hal.buffer_view) {\n"
    "  %i2 = vm.const.i32 64\n"
    "  %i4:5 = vm.const.i64 32\n"
    "  %r0, %r1 = vm.call @hal_inline.buffer.allocate(%i2, %i4:5)\n"
    "  %i6:7 = vm.const.i64.zero\n"
    "  %i8 = vm.const.i32 0x21000020\n"
    "  %i9 = vm.const.i32 1\n"
    "  %r2 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, "
    "1](%r0, %i6:7, %i4:5, %i8, %i9, %i0:1)\n"
    "  vm.discard.refs %r0, %r1\n"
    "  vm.return %R2\n"
    "}\n";

/* The layout of DLPack's public header, as far as it is looked at. */
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags;
  void* data;
  int32_t device_type, device_id, rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

static halyard_call_t call;
static halyard_function_t make;

static halyard_object_t view_of(int64_t elements) {
  const halyard_value_t argument = {.kind = HALYARD_VALUE_I64, .i64 = elements};
  halyard_value_t result = {0};
  OK(halyard_call_invoke(call, make, &argument, 1, &result, 1));
  return result.object;
}

/* Everything fails with the code, and nothing is touched. */
static void is_refused(int64_t elements, halyard_status_code_t code, const char* text) {
  halyard_object_t view = view_of(elements), part = NULL;
  const int64_t one = 1;
  uint64_t bytes = 7;
  void* data = NULL;
  size_t size = 7;
  char* printed = NULL;
  float first = 0;
  struct DLManagedTensorVersioned* tensor = NULL;
  struct DLManagedTensor* plain = NULL;
  FAILS(halyard_view_byte_count(view, &bytes), code, text);
  FAILS(halyard_view_read(view, 0, &first, sizeof first), code, text);
  FAILS(halyard_view_map(view, HALYARD_VIEW_READ, &data, &size), code, text);
  FAILS(halyard_view_map(view, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, &data, &size), code, text);
  FAILS(halyard_view_text(view, 1, &printed), code, text);
  FAILS(halyard_view_part(view, 0, 0x21000020, &one, 1, &part), code, text);
  FAILS(halyard_view_to_dlpack(view, 0, &tensor), code, text);
  FAILS(halyard_view_to_dlpack(view, HALYARD_DLPACK_COPY, &tensor), code, text);
  FAILS(halyard_view_to_dlpack(view, HALYARD_DLPACK_READ_ONLY, &tensor), code, text);
  FAILS(halyard_view_to_dlpack_unversioned(view, 0, &plain), code, text);
  EXPECT(bytes == 7 && !data && size == 7 && !printed && !part && !tensor && !plain);
  /* Its buffer is what it is. */
  halyard_object_t buffer = NULL;
  OK(halyard_view_buffer(view, &buffer));
  OK(halyard_view_map(buffer, HALYARD_VIEW_READ, &data, &size));
  EXPECT(size == 32);
  halyard_view_unmap(buffer);
  RELEASE(buffer, view);
}

/* So many bytes and no more, of a buffer that has more or as many. */
static void is_taken(int64_t elements) {
  halyard_object_t view = view_of(elements);
  const uint64_t expected = (uint64_t)elements * 4;
  uint64_t bytes = 0;
  void* data = NULL;
  size_t size = 0;
  struct DLManagedTensorVersioned* tensor = NULL;
  OK(halyard_view_byte_count(view, &bytes));
  OK(halyard_view_map(view, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, &data, &size));
  EXPECT(bytes == expected && size == expected);
  halyard_view_unmap(view);
  OK(halyard_view_to_dlpack(view, HALYARD_DLPACK_COPY, &tensor));
  if (tensor) EXPECT(tensor->shape[0] == elements && tensor->strides[0] == 1);
  halyard_dlpack_release(tensor);
  halyard_release(view);
}

int main(void) {
  halyard_instance_t instance = NULL;
  uint64_t count = 0;
  OK(halyard_instance_create(NULL, &instance));
  const halyard_module_t module = load_text(instance, kText);
  const halyard_context_t context = context_of(instance, module, NULL);
  make = find(context, "make");
  OK(halyard_call_create(context, &call));

  is_taken(8);
  is_taken(5);
  is_taken(0);
  is_refused(9, HALYARD_OUT_OF_RANGE, "36 bytes");
  is_refused(INT64_C(1) << 40, HALYARD_OUT_OF_RANGE, "has 32");
  is_refused(INT64_C(1) << 62, HALYARD_INVALID_ARGUMENT, "no size");
  is_refused(-1, HALYARD_INVALID_ARGUMENT, "-1");
  FAILS(halyard_view_byte_count(NULL, &count), HALYARD_INVALID_ARGUMENT, "null");

  RELEASE(call, make, context, module, instance);
  return failures != 0;
}
