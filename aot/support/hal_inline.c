/* The modules hal_inline and hal_loader, and tensors of the functions that a program offers. */
#include "hal_commands.c"

/*@@ hal_storage */
/* A vm.buffer over the bytes of a buffer. */
static int hal_storage(vm_state* s, vm_ref buffer, vm_ref* out) {
  hal_range range = {NULL, 0, 0};
  const int status = hal_range_of(s, buffer, 0, UINT64_MAX, &range);
  if (status != 0) return status;
  const vm_ref made = vm_create(s, &vm_buffer_type, sizeof(vm_buffer));
  if (made == NULL) return vm_no_room(s, sizeof(vm_buffer));
  vm_buffer_of(made)->data = range.data;
  vm_buffer_of(made)->length = range.length;
  vm_buffer_of(made)->writable = range.is_writable ? range.length : 0;
  vm_buffer_of(made)->is_writable = range.is_writable;
  vm_buffer_of(made)->owner = vm_share(hal_buffer_of(buffer)->memory);
  *out = made;
  return 0;
}

/*@@ hal_inline_buffer_allocate */
static int hal_inline_buffer_allocate(vm_state* s, uint32_t alignment, uint64_t length, vm_ref* buffer,
                                      vm_ref* storage) {
  if ((alignment & (alignment - 1)) != 0 || alignment > 64)
    return vm_fail_with(s, 3, "expected an alignment of at most 64 bytes, found $", alignment, 0, 0);
  int status = hal_allocate(s, length, 0, 0, buffer);
  if (status != 0) return status;
  memset(hal_memory_of(*buffer)->data, 0, (size_t)length);
  status = hal_storage(s, *buffer, storage);
  if (status != 0) vm_clear(s, buffer);
  return status;
}

/*@@ hal_inline_buffer_allocate_initialized */
static int hal_inline_buffer_allocate_initialized(vm_state* s, uint32_t alignment, vm_ref source,
                                                  uint64_t offset, uint64_t length, vm_ref* buffer,
                                                  vm_ref* storage) {
  int status = hal_check(s, source, &vm_buffer_type);
  if (status == 0) status = vm_range(s, vm_buffer_of(source), offset, length, 1);
  if (status == 0) status = hal_inline_buffer_allocate(s, alignment, length, buffer, storage);
  if (status == 0 && length != 0)
    memcpy(hal_memory_of(*buffer)->data, vm_buffer_of(source)->data + offset, (size_t)length);
  return status;
}

/*@@ hal_inline_buffer_wrap */
static int hal_inline_buffer_wrap(vm_state* s, vm_ref source, uint64_t offset, uint64_t length, vm_ref* out) {
  int status = hal_check(s, source, &vm_buffer_type);
  if (status == 0) status = vm_range(s, vm_buffer_of(source), offset, length, 1);
  if (status != 0) return status;
  const vm_buffer* const from = vm_buffer_of(source);
  return hal_wrap(s, from->data + offset, length, from->is_writable, source, 0x3E, 0x3000C03, out);
}

/*@@ hal_loader_query_support */
static int hal_loader_query_support(vm_state* s, vm_ref format, uint32_t* supported) {
  const int status = hal_check(s, format, &vm_buffer_type);
  if (status == 0) *supported = (uint32_t)hal_is_format(format);
  return status;
}

/*@@ hal_loader_load */
static int hal_loader_load(vm_state* s, vm_ref format, vm_ref data, vm_ref constants, vm_ref* out) {
  vm_ref device = NULL;
  int status = hal_devices_get(s, 0, &device);
  if (status == 0) status = hal_executable_create(s, device, 0, format, data, constants, out);
  vm_release(s, device);
  return status;
}

/*@@ hal_loader_dispatch */
/* The bindings are vm.buffers with an offset and a length. */
static int hal_loader_dispatch(vm_state* s, vm_ref executable, uint32_t function, uint32_t x, uint32_t y,
                               uint32_t z, uint32_t constant_count, const vm_item* constants,
                               uint32_t binding_count, const vm_item* bindings) {
  hal_range ranges[HAL_MAX_BINDINGS];
  uint32_t values[64];
  const uint32_t counts[3] = {x, y, z};
  int status = hal_check(s, executable, &hal_executable_type);
  if (status != 0) return status;
  const hal_code* const code = hal_code_of(executable);
  if (function >= code->count)
    return vm_fail_with(s, 11, "there is no function $; the executable has $", function, code->count, 0);
  const hal_kernel* const kernel = &code->kernels[function];
  if (kernel->constants != constant_count || constant_count > 64)
    return vm_fail_with(s, 3, "the dispatch has $ constants, but the function takes $", constant_count,
                        kernel->constants, 0);
  if (kernel->bindings != binding_count || binding_count > HAL_MAX_BINDINGS)
    return vm_fail_with(s, 3, "the dispatch has $ bindings, but the function takes $", binding_count,
                        kernel->bindings, 0);
  for (uint32_t i = 0; i < constant_count; ++i) values[i] = constants[i].i;
  for (uint32_t i = 0; i < binding_count; ++i) {
    const vm_item* const each = bindings + 3 * (size_t)i;
    status = hal_check(s, each[0].r, &vm_buffer_type);
    if (status == 0) status = vm_range(s, vm_buffer_of(each[0].r), each[1].l, each[2].l, 1);
    if (status != 0) return status;
    ranges[i].data = vm_buffer_of(each[0].r)->data + each[1].l;
    ranges[i].length = each[2].l;
    ranges[i].is_writable = vm_buffer_of(each[0].r)->is_writable;
  }
  return hal_launch(s, kernel, counts, values, ranges);
}

/*@@ hal_tensor_view */
/* A view over the caller's bytes. */
static int hal_tensor_view(vm_state* s, const vm_tensor* tensor, vm_ref* out) {
  vm_item shape[VM_MAX_RANK];
  vm_ref buffer = NULL;
  if (tensor == NULL) return 0;
  if (tensor->rank > VM_MAX_RANK)
    return vm_fail_with(s, 11, "a view of $ dimensions exceeds the limit of $", tensor->rank, VM_MAX_RANK, 0);
  for (uint32_t i = 0; i < tensor->rank; ++i) shape[i].l = tensor->shape[i];
  int status = hal_wrap(s, (unsigned char*)tensor->data, tensor->bytes, 1, NULL, 0x3E, 0x3000C03, &buffer);
  if (status == 0)
    status = hal_buffer_view_create(s, buffer, 0, tensor->bytes, tensor->element_type, 1, tensor->rank, shape,
                                    out);
  vm_release(s, buffer);
  return status;
}

/*@@ hal_view_tensor */
/* The bytes of a result, which the state keeps until the next call. Takes ownership of the view. */
static int hal_view_tensor(vm_state* s, vm_ref view, void** kept, vm_tensor* tensor) {
  hal_range range = {NULL, 0, 0};
  memset(tensor, 0, sizeof *tensor);
  *kept = view;
  if (view == NULL) return 0;
  int status = hal_check(s, view, &hal_view_type);
  if (status == 0) status = hal_range_of(s, hal_view_of(view)->buffer, 0, UINT64_MAX, &range);
  if (status != 0) return status;
  tensor->data = range.data;
  tensor->bytes = (size_t)range.length;
  tensor->element_type = hal_view_of(view)->element_type;
  tensor->rank = hal_view_of(view)->rank;
  for (uint32_t i = 0; i < tensor->rank; ++i) tensor->shape[i] = (size_t)hal_view_of(view)->shape[i];
  return 0;
}

/*@@ hal_drop_results */
static void hal_drop_results(vm_state* s) {
  for (size_t i = 0; i < sizeof s->results / sizeof s->results[0]; ++i) {
    vm_release(s, (vm_ref)s->results[i]);
    s->results[i] = NULL;
  }
}

/*@@ hal_end_of */
/* The status of the work that signals the fence at the end of a function. */
static int hal_end_of(vm_state* s, vm_ref fence) {
  const int status = hal_wait(s, fence);
  vm_release(s, fence);
  return status;
}
