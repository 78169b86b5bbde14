/* Memory shared with programs: what is used in place and what is copied, when it is let go, parts, mappings,
 * and tensors of DLPack. */
#include "halyard/memory.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kF32 = 0x21000020, kI8 = 0x10000008, kBf16 = 0x22000010, kI4 = 0x10000004 };

/* The layouts of DLPack's public header, as its users have them. */
struct tensor {
  void* data;
  int32_t device_type, device_id;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  struct tensor tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags;
  struct tensor tensor;
};

static int released;
static void on_release(void* user) { *(int*)user += 1; }
static void delete_versioned(struct DLManagedTensorVersioned* self) { *(int*)self->context += 1; }
static void delete_unversioned(struct DLManagedTensor* self) { *(int*)self->context += 1; }

static float* aligned_floats(void) {
  float* floats = aligned_alloc(64, 256);
  memset(floats, 0, 256);
  return floats;
}

static void imports(halyard_device_t device) {
  float* floats = aligned_floats();
  const int64_t shape[] = {4, 2};
  halyard_object_t view = NULL;
  uint32_t is_copy = 7;
  size_t i;
  for (i = 0; i < 64; ++i) floats[i] = (float)i;
  released = 0;
  OK(halyard_view_import(device, kF32, shape, 2, floats, 32, 0, on_release, &released, &is_copy, &view));
  EXPECT(is_copy == 0 && released == 0);
  /* The same bytes: what is written to the one is read from the other. */
  floats[3] = 33;
  float seen = 0;
  OK(halyard_view_read(view, 12, &seen, 4));
  EXPECT(seen == 33);
  void* mapped = NULL;
  size_t size = 0;
  OK(halyard_view_map(view, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, &mapped, &size));
  EXPECT(mapped == floats && size == 32);
  halyard_view_unmap(view);
  halyard_release(view);
  EXPECT(released == 1);

  if (device) { /* memory of the host has no alignment that it asks for */
    OK(halyard_view_import(device, kF32, shape, 2, floats + 1, 32, 0, on_release, &released, &is_copy,
                           &view));
    EXPECT(is_copy == 1 && released == 2); /* at once */
    floats[1] = -1;
    OK(halyard_view_read(view, 0, &seen, 4));
    EXPECT(seen == 1);
    halyard_release(view);
    EXPECT(released == 2);
    FAILS(halyard_view_import(device, kF32, shape, 2, floats + 1, 32, HALYARD_IMPORT_NO_COPY, on_release,
                              &released, &is_copy, &view),
          HALYARD_OUT_OF_RANGE, "multiple of 64");
  }
  FAILS(halyard_view_import(device, kF32, shape, 2, floats, 31, 0, on_release, &released, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "needs 32 bytes");
  FAILS(halyard_view_import(device, kF32, shape, 2, floats, 32, 1u << 9, on_release, &released, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "unknown");
  FAILS(halyard_view_import(device, kF32, shape, 2, NULL, 32, 0, on_release, &released, NULL, &view),
        HALYARD_INVALID_ARGUMENT, "null pointer");
  EXPECT(released == (device ? 2 : 1)); /* never on a failure */

  /* A mapping keeps the view, and so the bytes. */
  released = 0;
  OK(halyard_view_import(device, kF32, shape, 2, floats, 32, HALYARD_IMPORT_READ_ONLY, on_release, &released,
                         NULL, &view));
  OK(halyard_view_map(view, HALYARD_VIEW_READ, &mapped, &size));
  FAILS(halyard_view_map(view, HALYARD_VIEW_WRITE, &mapped, &size), HALYARD_PERMISSION_DENIED,
        "expected a buffer");
  FAILS(halyard_view_map(view, 1u << 7, &mapped, &size), HALYARD_INVALID_ARGUMENT, "unknown");
  halyard_release(view);
  EXPECT(released == 0);
  halyard_view_unmap(view);
  EXPECT(released == 1);

  /* Nothing at all. */
  const int64_t none[] = {0, 3};
  OK(halyard_view_import(device, kF32, none, 2, NULL, 0, 0, on_release, &released, NULL, &view));
  halyard_release(view);
  EXPECT(released == 2);
  free(floats);
}

static void parts(halyard_device_t device) {
  const float values[] = {0, 1, 2, 3, 4, 5};
  const int64_t shape[] = {2, 3}, row[] = {3};
  halyard_object_t view, part, bytes, buffer;
  float seen[3];
  OK(halyard_view_create(device, kF32, shape, 2, values, sizeof values, &view));
  OK(halyard_view_part(view, 12, kF32, row, 1, &part));
  OK(halyard_view_buffer(view, &buffer));
  halyard_device_t owner = NULL;
  OK(halyard_view_device(view, &owner));
  if (device) EXPECT(owner == device);
  if (!device) EXPECT(strcmp(halyard_device_uri(owner), "host://") == 0);
  FAILS(halyard_view_device((halyard_object_t)owner, &owner), HALYARD_INVALID_ARGUMENT, "hal.buffer_view");
  halyard_release(owner);
  halyard_release(view); /* the part keeps the memory */
  OK(halyard_view_read(part, 0, seen, 12));
  EXPECT(seen[0] == 3 && seen[2] == 5);
  const int64_t twelve[] = {12};
  OK(halyard_view_part(part, 0, kI8, twelve, 1, &bytes));
  FAILS(halyard_view_part(part, 4, kF32, row, 1, &view), HALYARD_OUT_OF_RANGE, "range within");
  FAILS(halyard_view_part(part, UINT64_MAX, kF32, row, 1, &view), HALYARD_OUT_OF_RANGE, "range within");
  halyard_release(bytes);
  OK(halyard_view_part(buffer, 0, kF32, row, 1, &bytes)); /* a buffer will do */
  OK(halyard_view_read(bytes, 0, seen, 12));
  EXPECT(seen[0] == 0 && seen[2] == 2);
  RELEASE(bytes, buffer, part);
}

static void to_dlpack(halyard_device_t device) {
  float* floats = aligned_floats();
  const int64_t shape[] = {2, 3};
  halyard_object_t view;
  struct DLManagedTensorVersioned* tensor = NULL;
  struct DLManagedTensor* plain = NULL;
  released = 0;
  OK(halyard_view_import(device, kF32, shape, 2, floats, 24, 0, on_release, &released, NULL, &view));
  OK(halyard_view_to_dlpack(view, 0, &tensor));
  OK(halyard_view_to_dlpack_unversioned(view, 0, &plain));
  halyard_release(view);
  EXPECT(tensor->major == 1 && tensor->flags == 0 && tensor->tensor.data == floats &&
         tensor->tensor.device_type == 1);
  EXPECT(tensor->tensor.rank == 2 && tensor->tensor.shape[1] == 3 && tensor->tensor.strides[0] == 3 &&
         tensor->tensor.strides[1] == 1 && tensor->tensor.code == 2 && tensor->tensor.bits == 32 &&
         tensor->tensor.lanes == 1 && tensor->tensor.byte_offset == 0);
  EXPECT(plain->tensor.data == floats);
  tensor->deleter(tensor);
  EXPECT(released == 0);
  plain->deleter(plain);
  EXPECT(released == 1);

  OK(halyard_view_import(device, kBf16, shape, 2, floats, 12, HALYARD_IMPORT_READ_ONLY, on_release, &released,
                         NULL, &view));
  OK(halyard_view_to_dlpack(view, 0, &tensor));
  EXPECT(tensor->flags == 1 && tensor->tensor.code == 4 && tensor->tensor.bits == 16);
  tensor->deleter(tensor);
  FAILS(halyard_view_to_dlpack_unversioned(view, 0, &plain), HALYARD_PERMISSION_DENIED, "versioned");
  OK(halyard_view_to_dlpack_unversioned(view, HALYARD_DLPACK_COPY, &plain));
  const float* const copied = plain->tensor.data;
  EXPECT(copied != floats && copied[0] == floats[0] && copied[1] == floats[1] && copied[2] == floats[2]);
  halyard_release(view);
  EXPECT(released == 2);
  plain->deleter(plain);
  OK(halyard_view_create(device, kI4, shape, 2, NULL, 3, &view));
  FAILS(halyard_view_to_dlpack(view, 0, &tensor), HALYARD_UNIMPLEMENTED, "no element type");
  FAILS(halyard_view_to_dlpack(view, 1u << 5, &tensor), HALYARD_INVALID_ARGUMENT, "unknown");
  halyard_release(view);
  free(floats);
}

static void from_dlpack(halyard_device_t device) {
  float* floats = aligned_floats();
  int64_t shape[] = {2, 3}, dense[] = {3, 1}, columns[] = {1, 2};
  int deleted = 0;
  size_t i;
  uint32_t is_copy = 7;
  float seen[6];
  halyard_object_t view;
  for (i = 0; i < 64; ++i) floats[i] = (float)i;
  struct DLManagedTensorVersioned tensor = {.major = 1,
                                            .context = &deleted,
                                            .deleter = delete_versioned,
                                            .tensor = {floats, 1, 0, 2, 2, 32, 1, shape, NULL, 0}};
  OK(halyard_view_from_dlpack(device, &tensor, 0, &is_copy, &view));
  EXPECT(is_copy == 0 && deleted == 0);
  halyard_release(view);
  EXPECT(deleted == 1);
  tensor.tensor.strides = dense;
  tensor.tensor.byte_offset = 64;
  tensor.flags = 1; /* read-only */
  OK(halyard_view_from_dlpack(device, &tensor, 0, &is_copy, &view));
  OK(halyard_view_read(view, 0, seen, 24));
  EXPECT(is_copy == 0 && seen[0] == 16 && seen[5] == 21);
  void* mapped;
  size_t size;
  FAILS(halyard_view_map(view, HALYARD_VIEW_WRITE, &mapped, &size), HALYARD_PERMISSION_DENIED,
        "expected a buffer");
  halyard_release(view);
  EXPECT(deleted == 2);
  tensor.flags = 0;
  OK(halyard_view_from_dlpack(device, &tensor, HALYARD_DLPACK_COPY, &is_copy, &view));
  EXPECT(is_copy == 1 && deleted == 3);
  halyard_release(view);
  /* Columns one after the other: gathered into a copy. */
  tensor.tensor.strides = columns;
  tensor.tensor.byte_offset = 0;
  OK(halyard_view_from_dlpack(device, &tensor, 0, &is_copy, &view));
  OK(halyard_view_read(view, 0, seen, 24));
  EXPECT(is_copy == 1 && deleted == 4 && seen[0] == 0 && seen[1] == 2 && seen[3] == 1 && seen[5] == 5);
  halyard_release(view);
  /* A stride does not matter where there is one element; rows backwards. */
  int64_t one[] = {1, 3}, any[] = {77, 1}, upwards[] = {-3, 1};
  tensor.tensor.shape = one;
  tensor.tensor.strides = any;
  OK(halyard_view_from_dlpack(device, &tensor, 0, &is_copy, &view));
  EXPECT(is_copy == 0);
  halyard_release(view);
  EXPECT(deleted == 5);
  tensor.tensor.shape = shape;
  tensor.tensor.strides = upwards;
  tensor.tensor.byte_offset = 12;
  OK(halyard_view_from_dlpack(device, &tensor, 0, &is_copy, &view));
  OK(halyard_view_read(view, 0, seen, 24));
  EXPECT(is_copy == 1 && deleted == 6 && seen[0] == 3 && seen[2] == 5 && seen[3] == 0 && seen[5] == 2);
  halyard_release(view);
  /* A scalar has no shape. The memory of other devices that the host sees is as good. A tensor need not have
   * a deleter. */
  tensor.tensor.rank = 0;
  tensor.tensor.shape = tensor.tensor.strides = NULL;
  tensor.tensor.byte_offset = 0;
  tensor.deleter = NULL;
  for (int32_t type = 3; type <= 11; type += 8) {
    tensor.tensor.device_type = type;
    OK(halyard_view_from_dlpack(device, &tensor, HALYARD_DLPACK_COPY, &is_copy, &view));
    EXPECT(is_copy == 1 && deleted == 6);
    halyard_release(view);
  }
  OK(halyard_view_from_dlpack(device, &tensor, 0, &is_copy, &view));
  halyard_release(view);
  tensor.tensor.device_type = 1;
  tensor.deleter = delete_versioned;
  tensor.tensor.rank = 2;
  /* What cannot be taken is not taken over. */
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT,
        "without a shape");
  tensor.tensor.rank = 129;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT, "rank 129");
  tensor.tensor.rank = 2;
  tensor.tensor.shape = shape;
  tensor.tensor.data = NULL;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT,
        "24 bytes without data");
  tensor.tensor.data = floats;
  FAILS(halyard_view_from_dlpack(device, &tensor, 1u << 7, NULL, &view), HALYARD_INVALID_ARGUMENT, "unknown");
  FAILS(halyard_view_from_dlpack_unversioned(device, NULL, 0, NULL, &view), HALYARD_INVALID_ARGUMENT,
        "expected a DLPack tensor, found null");
  tensor.tensor.device_type = 2;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_UNIMPLEMENTED, "device type 2");
  tensor.tensor.device_type = 1;
  tensor.tensor.lanes = 4;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_UNIMPLEMENTED, "lanes");
  tensor.tensor.lanes = 1;
  tensor.tensor.code = 99;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_UNIMPLEMENTED, "code 99");
  tensor.tensor.code = 2;
  tensor.tensor.rank = -1;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT, "rank -1");
  tensor.tensor.rank = 2;
  tensor.tensor.bits = 4;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_UNIMPLEMENTED, "4 bits");
  tensor.tensor.bits = 248;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_UNIMPLEMENTED, "248 bits");
  tensor.tensor.bits = 32;
  tensor.tensor.byte_offset = UINT64_MAX - 8;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT, "byte_offset");
  tensor.tensor.byte_offset = 0;
  int64_t far[] = {INT64_MAX, 1}, back[] = {-((int64_t)1 << 61), 1}, empty[] = {0, 1000000};
  int64_t spread[] = {2000000, 2}, huge[] = {(int64_t)1 << 62, 2}, negative[] = {-1, 2};
  int64_t vast[] = {(int64_t)1 << 62, 3}, vast_strides[] = {3, 1};
  /* A size in bytes that fits uint64_t, but not int64_t. */
  tensor.tensor.shape = vast;
  tensor.tensor.strides = vast_strides;
  tensor.tensor.code = 0;
  tensor.tensor.bits = 8;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT,
        "4611686018427387904x3 with 13835058055282163712 bytes");
  tensor.tensor.shape = shape;
  tensor.tensor.code = 2;
  tensor.tensor.bits = 32;
  tensor.tensor.strides = far;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT, "strides");
  tensor.tensor.strides = back;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT, "strides");
  tensor.tensor.strides = NULL;
  tensor.tensor.shape = huge;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT, "no size");
  tensor.tensor.shape = negative;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_INVALID_ARGUMENT, "-1x2");
  EXPECT(deleted == 6);
  /* No elements, whatever the strides of the sizes after the 0 say, and wherever the data is. */
  tensor.tensor.shape = empty;
  tensor.tensor.strides = spread;
  tensor.tensor.byte_offset = UINT64_MAX;
  OK(halyard_view_from_dlpack(device, &tensor, 0, &is_copy, &view));
  uint64_t bytes = 7;
  OK(halyard_view_byte_count(view, &bytes));
  EXPECT(bytes == 0 && deleted == 7);
  halyard_release(view);
  deleted = 4;
  tensor.tensor.shape = shape;
  tensor.tensor.strides = NULL;
  tensor.tensor.byte_offset = 0;
  tensor.major = 2;
  FAILS(halyard_view_from_dlpack(device, &tensor, 0, NULL, &view), HALYARD_UNIMPLEMENTED, "DLPack 2");
  FAILS(halyard_view_from_dlpack(device, NULL, 0, NULL, &view), HALYARD_INVALID_ARGUMENT, "null");
  EXPECT(deleted == 4);

  struct DLManagedTensor plain = {.tensor = {floats, 1, 0, 2, 2, 32, 1, shape, dense, 0},
                                  .context = &deleted,
                                  .deleter = delete_unversioned};
  OK(halyard_view_from_dlpack_unversioned(device, &plain, 0, &is_copy, &view));
  EXPECT(is_copy == 0);
  halyard_release(view);
  EXPECT(deleted == 5);
  plain.deleter = NULL; /* allowed */
  OK(halyard_view_from_dlpack_unversioned(device, &plain, 0, &is_copy, &view));
  halyard_release(view);
  free(floats);
}

int main(void) {
  static const char* const devices[] = {"local-sync", "local-task", NULL};
  halyard_instance_t instance = NULL;
  int i;
  OK(halyard_instance_create(NULL, &instance));
  for (i = 0; i < 3; ++i) {
    halyard_device_t device = NULL;
    if (devices[i]) OK(halyard_device_open(instance, devices[i], &device));
    imports(device);
    parts(device);
    to_dlpack(device);
    from_dlpack(device);
    halyard_release(device);
  }
  halyard_object_t none = NULL;
  void* mapped;
  size_t size;
  FAILS(halyard_view_map(none, HALYARD_VIEW_READ, &mapped, &size), HALYARD_INVALID_ARGUMENT, "found null");
  halyard_view_unmap(none);
  halyard_release(instance);
  return failures != 0;
}
