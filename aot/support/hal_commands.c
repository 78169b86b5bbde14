/* Executables and their kernels; command buffers, which are lists of commands in the arena. */
#include "hal_queue.c"

/*@@ hal_kernel hal_code */
typedef int (*hal_kernel_function)(vm_state* s, vm_ref local, vm_ref constants, vm_ref bindings, uint32_t x,
                                   uint32_t y, uint32_t z, uint32_t size_x, uint32_t size_y, uint32_t size_z,
                                   uint32_t count_x, uint32_t count_y, uint32_t count_z);
typedef struct hal_kernel {
  const char* name;
  hal_kernel_function run;
  uint32_t bindings;
  uint32_t constants;
  uint32_t local_memory; /* bytes */
#ifdef VM_STATIC_KERNELS
  hal_static_entry entry; /* of an object file; null: `run` is a function of this program */
#endif
} hal_kernel;

/* The kernels of an executable, whose bytes in the module were the constant `constant`. */
typedef struct hal_code {
  uint32_t constant;
  uint32_t count;
  const hal_kernel* kernels;
#ifdef VM_STATIC_KERNELS
  hal_static_query query; /* of an object file, whose kernels are listed when the executable is created */
#endif
} hal_code;

/*@@ hal_find_code */
static const hal_code* hal_find_code(uint32_t constant);

/*@@ hal_executable */
typedef struct hal_executable {
  vm_object object;
  const hal_code* code;
  void* own; /* memory of the code, if it is not constant */
} hal_executable;

/*@@ hal_executable_type */
static void hal_executable_destroy(vm_state* s, vm_ref object) {
  vm_free(s, ((hal_executable*)(void*)object)->own);
}

static const vm_type hal_executable_type = {"hal.executable", hal_executable_destroy};

/*@@ hal_code_of */
static inline const hal_code* hal_code_of(vm_ref executable) {
  return ((hal_executable*)(void*)executable)->code;
}

/*@@ hal_list_kernels */
/* The kernels of an object file, as code of the executable. */
#ifdef VM_STATIC_KERNELS
static int hal_list_kernels(vm_state* s, hal_static_query query, hal_executable* executable) {
  hal_static_library library = {0, 0, NULL, NULL, NULL};
  const int status = hal_static_open(s, query, &library);
  if (status != 0) return status;
  const size_t bytes = sizeof(hal_code) + library.count * sizeof(hal_kernel);
  hal_code* const code = (hal_code*)vm_allocate(s, bytes);
  if (code == NULL) return vm_no_room(s, bytes);
  hal_kernel* const kernels = (hal_kernel*)(void*)(code + 1);
  for (uint32_t i = 0; i < library.count; ++i) {
    const hal_static_counts counts = hal_static_counts_of(&library, i);
    kernels[i].name = library.names != NULL && library.names[i] != NULL ? library.names[i] : "";
    kernels[i].bindings = counts.bindings;
    kernels[i].constants = counts.constants;
    kernels[i].local_memory = counts.local_bytes;
    kernels[i].entry = library.entries[i];
  }
  code->count = library.count;
  code->kernels = kernels;
  executable->code = code;
  executable->own = code;
  return 0;
}
#endif

/*@@ hal_executable_create */
static int hal_executable_create(vm_state* s, vm_ref device, uint64_t affinity, vm_ref format, vm_ref data,
                                 vm_ref constants, vm_ref* out) {
  (void)affinity;
  const hal_code* code = NULL;
  int status = hal_check(s, device, &hal_device_type);
  if (status == 0) status = hal_check(s, format, &vm_buffer_type);
  if (status == 0) status = hal_check(s, data, &vm_buffer_type);
  if (status != 0) return status;
  for (uint32_t i = 0; i < sizeof s->constants / sizeof s->constants[0] && code == NULL; ++i)
    if (s->constants[i] == data) code = hal_find_code(i);
  if (!hal_is_format(format)) return vm_fail(s, 5, "the device has no code of this format");
  if (code == NULL)
    return vm_fail(s, 3, "the executable is not one that vm-cc found among the module's constants");
  if (constants != NULL && vm_is_buffer(constants) && vm_buffer_of(constants)->length != 0)
    return vm_fail(s, 3, "the executable takes no constants");
  const vm_ref made = vm_create(s, &hal_executable_type, sizeof(hal_executable));
  if (made == NULL) return vm_no_room(s, sizeof(hal_executable));
  ((hal_executable*)(void*)made)->code = code;
#ifdef VM_STATIC_KERNELS
  if (code->query != NULL) status = hal_list_kernels(s, code->query, (hal_executable*)(void*)made);
#endif
  if (status == 0)
    *out = made;
  else
    vm_release(s, made);
  return status;
}

/*@@ hal_executable_create_5 */
static int hal_executable_create_5(vm_state* s, vm_ref device, vm_ref format, vm_ref data, vm_ref constants,
                                   vm_ref* out) {
  return hal_executable_create(s, device, 0, format, data, constants, out);
}

/*@@ hal_executable_lookup_function */
static int hal_executable_lookup_function(vm_state* s, vm_ref executable, vm_ref name, uint64_t* id) {
  int status = hal_check(s, executable, &hal_executable_type);
  if (status == 0) status = hal_check(s, name, &vm_buffer_type);
  if (status != 0) return status;
  const hal_code* const code = hal_code_of(executable);
  for (uint32_t i = 0; i < code->count; ++i) {
    if (!hal_text_is(name, code->kernels[i].name)) continue;
    *id = i;
    return 0;
  }
  return vm_fail(s, 5, "the executable has no function of this name");
}

/*@@ hal_launch_static */
#ifdef VM_STATIC_KERNELS
static int hal_launch_static(vm_state* s, const hal_kernel* kernel, const uint32_t counts[3],
                             const uint32_t* constants, const hal_range* bindings) {
  const void* addresses[64];
  size_t lengths[64];
  vm_ref local = NULL;
  if (kernel->bindings > 64) return vm_fail(s, 11, "a kernel has more than 64 bindings");
  for (uint32_t i = 0; i < kernel->bindings; ++i) {
    addresses[i] = bindings[i].data;
    lengths[i] = (size_t)bindings[i].length;
  }
  int status = vm_buffer_alloc(s, kernel->local_memory, 64, &local);
  if (status == 0)
    status = hal_static_run(s, kernel->entry, counts, constants, kernel->constants, addresses, lengths,
                            kernel->bindings, vm_buffer_of(local)->data, kernel->local_memory);
  vm_release(s, local);
  return status;
}
#endif

/*@@ hal_launch */
/* Runs all workgroups. The buffers of the arguments are made for the dispatch. */
static int hal_fill_launch(vm_state* s, const hal_kernel* kernel, const uint32_t* constants,
                           const hal_range* bindings, vm_ref* local, vm_ref* values, vm_ref* list) {
  int status = vm_buffer_alloc(s, kernel->local_memory, 0, local);
  if (status == 0) status = vm_buffer_alloc(s, (uint64_t)kernel->constants * 4, 0, values);
  if (status == 0) status = vm_list_alloc(s, VM_NONE, &vm_buffer_type, kernel->bindings, list);
  if (status == 0) status = vm_list_resize(s, *list, kernel->bindings);
  if (status != 0) return status;
  if (kernel->constants != 0) memcpy(vm_buffer_of(*values)->data, constants, (size_t)kernel->constants * 4);
  vm_buffer_of(*values)->is_writable = 0;
  vm_buffer_of(*values)->writable = 0;
  for (uint32_t i = 0; i < kernel->bindings; ++i) {
    const vm_ref made = vm_create(s, &vm_buffer_type, sizeof(vm_buffer));
    if (made == NULL) return vm_no_room(s, sizeof(vm_buffer));
    vm_buffer_of(made)->data = bindings[i].data;
    vm_buffer_of(made)->length = bindings[i].length;
    vm_buffer_of(made)->is_writable = bindings[i].is_writable;
    vm_buffer_of(made)->writable = bindings[i].is_writable ? bindings[i].length : 0;
    vm_list_of(*list)->elements[i].ref = made;
  }
  return 0;
}

static int hal_launch(vm_state* s, const hal_kernel* kernel, const uint32_t counts[3],
                      const uint32_t* constants, const hal_range* bindings) {
  vm_ref local = NULL;
  vm_ref values = NULL;
  vm_ref list = NULL;
#ifdef VM_STATIC_KERNELS
  if (kernel->entry != NULL) return hal_launch_static(s, kernel, counts, constants, bindings);
#endif
  int status = hal_fill_launch(s, kernel, constants, bindings, &local, &values, &list);
  for (uint32_t z = 0; z < counts[2] && status == 0; ++z)
    for (uint32_t y = 0; y < counts[1] && status == 0; ++y)
      for (uint32_t x = 0; x < counts[0] && status == 0; ++x) {
        vm_retain(local);
        vm_retain(values);
        vm_retain(list);
        status = kernel->run(s, local, values, list, x, y, z, 1, 1, 1, counts[0], counts[1], counts[2]);
      }
  vm_release(s, list);
  vm_release(s, values);
  vm_release(s, local);
  return status;
}

/*@@ hal_command hal_binding */
typedef struct hal_binding {
  vm_ref buffer; /* null: a slot of the table */
  uint32_t slot;
  uint64_t offset;
  uint64_t length;
  uint32_t usage;
} hal_binding;

enum { HAL_FILL, HAL_COPY, HAL_UPDATE, HAL_DISPATCH, HAL_DISPATCH_INDIRECT };

typedef struct hal_command {
  struct hal_command* next;
  uint32_t kind;
  vm_ref object; /* an executable, or the bytes of an update */
  uint32_t function;
  uint32_t counts[3];
  uint64_t pattern;
  uint32_t width; /* of the pattern */
  uint32_t constant_count;
  uint32_t binding_count;
  uint32_t* constants;
  hal_binding* bindings;
} hal_command;

typedef struct hal_command_buffer {
  vm_object object;
  hal_command* first;
  hal_command* last;
  uint32_t modes;
  uint32_t categories;
  uint32_t capacity;   /* slots */
  int64_t open_groups; /* for debuggers */
  int is_final;
} hal_command_buffer;

/*@@ hal_command_buffer_type */
static void hal_command_buffer_destroy(vm_state* s, vm_ref object) {
  hal_command* command = ((hal_command_buffer*)(void*)object)->first;
  while (command != NULL) {
    hal_command* const next = command->next;
    for (uint32_t i = 0; i < command->binding_count; ++i) vm_release(s, command->bindings[i].buffer);
    vm_release(s, command->object);
    vm_free(s, command);
    command = next;
  }
}

static const vm_type hal_command_buffer_type = {"hal.command_buffer", hal_command_buffer_destroy};

/*@@ hal_command_buffer_create */
static int hal_command_buffer_create(vm_state* s, vm_ref device, uint32_t modes, uint32_t categories,
                                     uint64_t affinity, uint32_t capacity, vm_ref* out) {
  (void)affinity;
  const int status = hal_check(s, device, &hal_device_type);
  if (status != 0) return status;
  if ((modes & 0x10) && !(modes & 1)) return vm_fail(s, 3, "inline command buffers must be one-shot");
  if ((modes & 0x10) && capacity != 0)
    return vm_fail(s, 3, "inline command buffers cannot have indirect bindings");
  const vm_ref made = vm_create(s, &hal_command_buffer_type, sizeof(hal_command_buffer));
  if (made == NULL) return vm_no_room(s, sizeof(hal_command_buffer));
  ((hal_command_buffer*)(void*)made)->modes = modes;
  ((hal_command_buffer*)(void*)made)->categories = categories;
  ((hal_command_buffer*)(void*)made)->capacity = capacity;
  *out = made;
  return 0;
}

/*@@ hal_recording */
/* The command buffer, if it is still recording. */
static int hal_recording(vm_state* s, vm_ref object, hal_command_buffer** commands) {
  const int status = hal_check(s, object, &hal_command_buffer_type);
  if (status != 0) return status;
  *commands = (hal_command_buffer*)(void*)object;
  return (*commands)->is_final ? vm_fail(s, 9, "the command buffer is not in a recording state") : 0;
}

/*@@ hal_add */
/* Adds a command with room for bindings and constants. */
static int hal_add(vm_state* s, vm_ref object, uint32_t kind, uint32_t binding_count, uint32_t constant_count,
                   hal_command** out) {
  hal_command_buffer* commands = NULL;
  const int status = hal_recording(s, object, &commands);
  if (status != 0) return status;
  const uint32_t category = kind == HAL_DISPATCH || kind == HAL_DISPATCH_INDIRECT ? 2 : 1;
  if (!(commands->categories & category) && !(commands->modes & 0x20))
    return vm_fail_with(s, 9, "the command needs category $, but the command buffer has $", category,
                        commands->categories, 0);
  const size_t bindings_at = (sizeof(hal_command) + 15) & ~(size_t)15;
  const size_t constants_at = bindings_at + binding_count * sizeof(hal_binding);
  hal_command* const command = (hal_command*)vm_allocate(s, constants_at + (size_t)constant_count * 4);
  if (command == NULL) return vm_no_room(s, constants_at);
  command->kind = kind;
  command->binding_count = binding_count;
  command->constant_count = constant_count;
  command->bindings = (hal_binding*)(void*)((unsigned char*)command + bindings_at);
  command->constants = (uint32_t*)(void*)((unsigned char*)command + constants_at);
  if (commands->last != NULL)
    commands->last->next = command;
  else
    commands->first = command;
  commands->last = command;
  *out = command;
  return 0;
}

/*@@ hal_check_usage */
static int hal_check_usage(vm_state* s, vm_ref buffer, uint32_t usage) {
  if ((hal_buffer_of(buffer)->usage & usage) == usage) return 0;
  return vm_fail_with(s, 7, "the buffer was allocated with usage $, but the command needs $",
                      hal_buffer_of(buffer)->usage, usage, 0);
}

/*@@ hal_bind */
/* Binds a buffer of this usage, or a slot. Slots are checked when the table is known. */
static int hal_bind(vm_state* s, vm_ref object, hal_binding* binding, vm_ref buffer, uint32_t slot,
                    uint64_t offset, uint64_t length, uint32_t usage) {
  const hal_command_buffer* const commands = (const hal_command_buffer*)(const void*)object;
  hal_range range = {NULL, 0, 0};
  int status = 0;
  if (!(commands->modes & 0x20)) {
    if (buffer == NULL && slot >= commands->capacity)
      status = vm_fail_with(s, 11, "slot $ is out of range of the binding capacity $", slot,
                            commands->capacity, 0);
    if (buffer != NULL) status = hal_range_of(s, buffer, offset, length, &range);
    if (buffer != NULL && status == 0) status = hal_check_usage(s, buffer, usage);
  }
  if (status != 0) return status;
  binding->buffer = vm_share(buffer);
  binding->slot = slot;
  binding->offset = offset;
  binding->length = length;
  binding->usage = usage;
  return 0;
}

/*@@ hal_command_buffer_finalize */
static int hal_command_buffer_finalize(vm_state* s, vm_ref object) {
  hal_command_buffer* commands = NULL;
  const int status = hal_recording(s, object, &commands);
  if (status != 0) return status;
  if (commands->open_groups != 0) return vm_fail(s, 9, "debug groups begin and end in different numbers");
  commands->is_final = 1;
  return 0;
}

/*@@ hal_command_buffer_execution_barrier */
/* Commands run one after another. */
static int hal_command_buffer_execution_barrier(vm_state* s, vm_ref commands, uint32_t from, uint32_t to,
                                                uint64_t flags) {
  (void)from;
  (void)to;
  (void)flags;
  hal_command_buffer* recording = NULL;
  return hal_recording(s, commands, &recording);
}

/*@@ hal_command_buffer_execution_barrier_5 */
static int hal_command_buffer_execution_barrier_5(vm_state* s, vm_ref commands, uint32_t from, uint32_t to,
                                                  uint32_t flags) {
  return hal_command_buffer_execution_barrier(s, commands, from, to, flags);
}

/*@@ hal_command_buffer_begin_debug_group */
static int hal_command_buffer_begin_debug_group(vm_state* s, vm_ref object, vm_ref label) {
  hal_command_buffer* commands = NULL;
  (void)label;
  const int status = hal_recording(s, object, &commands);
  if (status == 0) ++commands->open_groups;
  return status;
}

/*@@ hal_command_buffer_end_debug_group */
static int hal_command_buffer_end_debug_group(vm_state* s, vm_ref object) {
  hal_command_buffer* commands = NULL;
  const int status = hal_recording(s, object, &commands);
  if (status == 0) --commands->open_groups;
  return status;
}

/*@@ hal_command_buffer_advise_buffer */
static int hal_command_buffer_advise_buffer(vm_state* s, vm_ref commands, vm_ref buffer, uint64_t flags,
                                            uint64_t a, uint64_t b, uint32_t slot) {
  (void)buffer;
  (void)flags;
  (void)a;
  (void)b;
  (void)slot;
  hal_command_buffer* recording = NULL;
  return hal_recording(s, commands, &recording);
}

/*@@ hal_command_buffer_fill_buffer */
static int hal_command_buffer_fill_buffer(vm_state* s, vm_ref commands, vm_ref target, uint64_t offset,
                                          uint64_t length, uint32_t slot, uint64_t pattern, uint32_t width,
                                          uint64_t flags) {
  (void)flags;
  hal_command* command = NULL;
  if (length == 0) return hal_check(s, commands, &hal_command_buffer_type);
  int status = hal_add(s, commands, HAL_FILL, 1, 0, &command);
  if (status == 0) status = hal_check_fill(s, offset, length, width);
  if (status != 0) return status;
  command->pattern = pattern;
  command->width = width;
  return hal_bind(s, commands, &command->bindings[0], target, slot, offset, length, 2);
}

/*@@ hal_command_buffer_fill_buffer_5 */
static int hal_command_buffer_fill_buffer_5(vm_state* s, vm_ref commands, vm_ref target, uint64_t offset,
                                            uint64_t length, uint32_t slot, uint32_t pattern,
                                            uint32_t width) {
  return hal_command_buffer_fill_buffer(s, commands, target, offset, length, slot, pattern, width, 0);
}

/*@@ hal_command_buffer_update_buffer */
/* The bytes are those of the time of the call. */
static int hal_command_buffer_update_buffer(vm_state* s, vm_ref commands, vm_ref source,
                                            uint64_t source_offset, vm_ref target, uint64_t target_offset,
                                            uint64_t length, uint32_t slot, uint64_t flags) {
  (void)flags;
  hal_command* command = NULL;
  vm_ref copy = NULL;
  int status = vm_buffer_clone(s, source, source_offset, length, 0, &copy);
  if (status != 0) return status;
  status = hal_add(s, commands, HAL_UPDATE, 1, 0, &command);
  if (status != 0) {
    vm_release(s, copy);
    return status;
  }
  command->object = copy;
  return hal_bind(s, commands, &command->bindings[0], target, slot, target_offset, length, 2);
}

/*@@ hal_command_buffer_update_buffer_5 */
static int hal_command_buffer_update_buffer_5(vm_state* s, vm_ref commands, vm_ref source,
                                              uint64_t source_offset, vm_ref target, uint64_t target_offset,
                                              uint64_t length, uint32_t slot) {
  return hal_command_buffer_update_buffer(s, commands, source, source_offset, target, target_offset, length,
                                          slot, 0);
}

/*@@ hal_command_buffer_copy_buffer */
static int hal_command_buffer_copy_buffer(vm_state* s, vm_ref commands, uint32_t source_slot,
                                          uint32_t target_slot, vm_ref source, uint64_t source_offset,
                                          vm_ref target, uint64_t target_offset, uint64_t length,
                                          uint64_t flags) {
  (void)flags;
  hal_command* command = NULL;
  if (length == 0) return hal_check(s, commands, &hal_command_buffer_type);
  int status = hal_add(s, commands, HAL_COPY, 2, 0, &command);
  if (status == 0)
    status = hal_bind(s, commands, &command->bindings[0], source, source_slot, source_offset, length, 1);
  if (status == 0)
    status = hal_bind(s, commands, &command->bindings[1], target, target_slot, target_offset, length, 2);
  if (status != 0 || source == NULL || target == NULL ||
      hal_buffer_of(source)->memory != hal_buffer_of(target)->memory)
    return status;
  const uint64_t from = hal_buffer_of(source)->offset + source_offset;
  const uint64_t to = hal_buffer_of(target)->offset + target_offset;
  return from < to + length && to < from + length
             ? vm_fail(s, 3, "the source and target ranges overlap in one buffer")
             : 0;
}

/*@@ hal_command_buffer_copy_buffer_5 */
static int hal_command_buffer_copy_buffer_5(vm_state* s, vm_ref commands, uint32_t source_slot,
                                            uint32_t target_slot, vm_ref source, uint64_t source_offset,
                                            vm_ref target, uint64_t target_offset, uint64_t length) {
  return hal_command_buffer_copy_buffer(s, commands, source_slot, target_slot, source, source_offset, target,
                                        target_offset, length, 0);
}

/*@@ HAL_MAX_BINDINGS */
#define HAL_MAX_BINDINGS 32

/*@@ hal_record_dispatch */
static int hal_record_dispatch(vm_state* s, vm_ref commands, vm_ref executable, uint64_t function,
                               uint32_t kind, uint32_t indirect, uint32_t constant_count,
                               const vm_item* constants, uint32_t binding_count, const vm_item* bindings,
                               hal_command** out) {
  int status = hal_check(s, executable, &hal_executable_type);
  if (status != 0) return status;
  const hal_code* const code = hal_code_of(executable);
  if (function >= code->count)
    return vm_fail_with(s, 11, "there is no function $; the executable has $", function, code->count, 0);
  const hal_kernel* const kernel = &code->kernels[function];
  if (binding_count > HAL_MAX_BINDINGS)
    return vm_fail_with(s, 11, "$ bindings exceed the limit of $", binding_count, HAL_MAX_BINDINGS, 0);
  if (kernel->constants != constant_count)
    return vm_fail_with(s, 3, "the dispatch has $ constants, but the function takes $", constant_count,
                        kernel->constants, 0);
  if (kernel->bindings != binding_count)
    return vm_fail_with(s, 3, "the dispatch has $ bindings, but the function takes $", binding_count,
                        kernel->bindings, 0);
  hal_command* command = NULL;
  status = hal_add(s, commands, kind, binding_count + indirect, constant_count, &command);
  if (status != 0) return status;
  command->object = vm_share(executable);
  command->function = (uint32_t)function;
  for (uint32_t i = 0; i < constant_count; ++i) command->constants[i] = constants[i].i;
  for (uint32_t i = 0; i < binding_count; ++i) {
    const vm_item* const each = bindings + 5 * (size_t)i;
    status = hal_bind(s, commands, &command->bindings[i], each[2].r, each[1].i, each[3].l, each[4].l, 0xC00);
    if (status != 0) return status;
  }
  *out = command;
  return 0;
}

/*@@ hal_command_buffer_dispatch */
static int hal_command_buffer_dispatch(vm_state* s, vm_ref commands, vm_ref executable, uint64_t function,
                                       uint32_t x, uint32_t y, uint32_t z, uint64_t flags,
                                       uint32_t constant_count, const vm_item* constants,
                                       uint32_t binding_count, const vm_item* bindings) {
  (void)flags;
  hal_command* command = NULL;
  const int status = hal_record_dispatch(s, commands, executable, function, HAL_DISPATCH, 0, constant_count,
                                         constants, binding_count, bindings, &command);
  if (status != 0) return status;
  command->counts[0] = x;
  command->counts[1] = y;
  command->counts[2] = z;
  return 0;
}

/*@@ hal_command_buffer_dispatch_5 */
static int hal_command_buffer_dispatch_5(vm_state* s, vm_ref commands, vm_ref executable, uint32_t function,
                                         uint32_t x, uint32_t y, uint32_t z, uint64_t flags,
                                         uint32_t constant_count, const vm_item* constants,
                                         uint32_t binding_count, const vm_item* bindings) {
  return hal_command_buffer_dispatch(s, commands, executable, function, x, y, z, flags, constant_count,
                                     constants, binding_count, bindings);
}

/*@@ hal_command_buffer_dispatch_indirect */
/* The counts are read when the command runs. */
static int hal_command_buffer_dispatch_indirect(vm_state* s, vm_ref commands, vm_ref executable,
                                                uint64_t function, uint32_t slot, vm_ref counts,
                                                uint64_t offset, uint64_t flags, uint32_t constant_count,
                                                const vm_item* constants, uint32_t binding_count,
                                                const vm_item* bindings) {
  (void)flags;
  hal_command* command = NULL;
  int status = hal_record_dispatch(s, commands, executable, function, HAL_DISPATCH_INDIRECT, 1,
                                   constant_count, constants, binding_count, bindings, &command);
  if (status == 0 && offset % 4 != 0)
    status = vm_fail(s, 3, "the counts of workgroups are not at a multiple of 4 bytes");
  if (status == 0)
    status = hal_bind(s, commands, &command->bindings[binding_count], counts, slot, offset, 12, 0x100);
  return status;
}

/*@@ hal_command_buffer_dispatch_indirect_5 */
static int hal_command_buffer_dispatch_indirect_5(vm_state* s, vm_ref commands, vm_ref executable,
                                                  uint32_t function, uint32_t slot, vm_ref counts,
                                                  uint64_t offset, uint64_t flags, uint32_t constant_count,
                                                  const vm_item* constants, uint32_t binding_count,
                                                  const vm_item* bindings) {
  return hal_command_buffer_dispatch_indirect(s, commands, executable, function, slot, counts, offset, flags,
                                              constant_count, constants, binding_count, bindings);
}

/*@@ hal_resolve */
/* The bytes of a binding. An entry of the table is a buffer, an offset and a length. */
static int hal_resolve(vm_state* s, const hal_binding* binding, uint32_t entry_count, const vm_item* entries,
                       int writes, hal_range* range) {
  vm_ref buffer = binding->buffer;
  uint64_t offset = binding->offset;
  if (buffer == NULL) {
    if (binding->slot >= entry_count)
      return vm_fail_with(s, entry_count == 0 ? 3 : 11, "there is no slot $ in a binding table of $",
                          binding->slot, entry_count, 0);
    const vm_item* const entry = entries + 3 * (size_t)binding->slot;
    buffer = entry[0].r;
    hal_range slot = {NULL, 0, 0};
    int status = hal_range_of(s, buffer, entry[1].l, entry[2].l, &slot);
    if (status == 0) status = hal_check_usage(s, buffer, binding->usage);
    if (status != 0) return status;
    if (offset > slot.length || binding->length > slot.length - offset)
      return vm_fail_with(s, 11, "$ bytes at offset $ are not within a slot of $ bytes", binding->length,
                          offset, slot.length);
    offset += entry[1].l;
  }
  return writes ? hal_writable_range_of(s, buffer, offset, binding->length, range)
                : hal_range_of(s, buffer, offset, binding->length, range);
}

/*@@ hal_run_dispatch */
static int hal_run_dispatch(vm_state* s, const hal_command* command, uint32_t entry_count,
                            const vm_item* entries) {
  const hal_kernel* const kernel = &hal_code_of(command->object)->kernels[command->function];
  hal_range ranges[HAL_MAX_BINDINGS];
  uint32_t counts[3];
  memcpy(counts, command->counts, sizeof counts);
  for (uint32_t i = 0; i < kernel->bindings; ++i) {
    const int status = hal_resolve(s, &command->bindings[i], entry_count, entries, 0, &ranges[i]);
    if (status != 0) return status;
  }
  if (command->kind == HAL_DISPATCH_INDIRECT) {
    hal_range found = {NULL, 0, 0};
    const int status = hal_resolve(s, &command->bindings[kernel->bindings], entry_count, entries, 0, &found);
    if (status != 0) return status;
    memcpy(counts, found.data, sizeof counts);
  }
  return hal_launch(s, kernel, counts, command->constants, ranges);
}

/*@@ hal_run_command */
static int hal_run_command(vm_state* s, const hal_command* command, uint32_t entry_count,
                           const vm_item* entries) {
  hal_range from = {NULL, 0, 0};
  hal_range to = {NULL, 0, 0};
  int status = 0;
  switch (command->kind) {
    case HAL_FILL:
      status = hal_resolve(s, &command->bindings[0], entry_count, entries, 1, &to);
      if (status == 0) status = hal_check_fill(s, (uintptr_t)to.data, to.length, command->width);
      if (status == 0) hal_fill(&to, command->pattern, command->width);
      return status;
    case HAL_COPY:
      status = hal_resolve(s, &command->bindings[0], entry_count, entries, 0, &from);
      if (status == 0) status = hal_resolve(s, &command->bindings[1], entry_count, entries, 1, &to);
      if (status == 0 && to.length != 0) memmove(to.data, from.data, (size_t)to.length);
      return status;
    case HAL_UPDATE:
      status = hal_resolve(s, &command->bindings[0], entry_count, entries, 1, &to);
      if (status == 0 && to.length != 0)
        memcpy(to.data, vm_buffer_of(command->object)->data, (size_t)to.length);
      return status;
    default:
      return hal_run_dispatch(s, command, entry_count, entries);
  }
}

/*@@ hal_queue_execute_indirect */
static int hal_queue_execute_indirect(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait,
                                      vm_ref signal, vm_ref commands, uint64_t flags, uint32_t entry_count,
                                      const vm_item* entries) {
  (void)affinity;
  (void)flags;
  int status = hal_begin(s, device, wait, signal);
  if (status != 0) return status;
  status = hal_check(s, commands, &hal_command_buffer_type);
  if (status != 0) return hal_signal(signal, status);
  const hal_command_buffer* const recorded = (const hal_command_buffer*)(const void*)commands;
  if (!recorded->is_final) status = vm_fail(s, 9, "the command buffer is not finalized");
  if ((recorded->modes & 0x10) && hal_is_fence(wait))
    status = vm_fail(s, 3, "an inline command buffer waits for nothing, but it is executed after a fence");
  for (const hal_command* command = recorded->first; command != NULL && status == 0; command = command->next)
    status = hal_run_command(s, command, entry_count, entries);
  return hal_signal(signal, status);
}

/*@@ hal_queue_execute_indirect_5 */
static int hal_queue_execute_indirect_5(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait,
                                        vm_ref signal, vm_ref commands, uint32_t entry_count,
                                        const vm_item* entries) {
  return hal_queue_execute_indirect(s, device, affinity, wait, signal, commands, 0, entry_count, entries);
}

/*@@ hal_queue_execute */
static int hal_queue_execute(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                             vm_ref commands, uint64_t flags) {
  return hal_queue_execute_indirect(s, device, affinity, wait, signal, commands, flags, 0, NULL);
}

/*@@ hal_queue_execute_list */
static int hal_queue_execute_list(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                                  uint32_t count, const vm_item* list) {
  if (count == 0) return hal_queue_barrier(s, device, affinity, wait, signal, 0);
  if (count > 1) return vm_fail_with(s, 3, "expected one command buffer or none, found $", count, 0, 0);
  return hal_queue_execute(s, device, affinity, wait, signal, list[0].r, 0);
}

/*@@ hal_channel_type */
static const vm_type hal_channel_type = {"hal.channel", hal_nothing};

/*@@ hal_channel_create */
static int hal_channel_create(vm_state* s, vm_ref device, uint64_t affinity, uint64_t flags, vm_ref id,
                              vm_ref group, uint32_t rank, uint32_t count, vm_ref* out) {
  (void)affinity;
  (void)flags;
  (void)id;
  (void)group;
  (void)rank;
  (void)count;
  (void)out;
  const int status = hal_check(s, device, &hal_device_type);
  return status != 0 ? status
                     : vm_fail(s, 14, "a program without a runtime has no channels between processes");
}

/*@@ hal_channel_create_5 */
static int hal_channel_create_5(vm_state* s, vm_ref device, uint64_t affinity, uint32_t flags, vm_ref id,
                                vm_ref group, uint32_t rank, uint32_t count, vm_ref* out) {
  return hal_channel_create(s, device, affinity, flags, id, group, rank, count, out);
}

/*@@ hal_channel_split */
/* There are no channels, so the ref has another type or is null. */
static int hal_channel_split(vm_state* s, vm_ref channel, uint32_t color, uint32_t key, uint64_t flags,
                             vm_ref* out) {
  (void)color;
  (void)key;
  (void)flags;
  (void)out;
  return hal_check(s, channel, &hal_channel_type);
}

/*@@ hal_channel_split_5 */
static int hal_channel_split_5(vm_state* s, vm_ref channel, uint32_t color, uint32_t key, uint32_t flags,
                               vm_ref* out) {
  return hal_channel_split(s, channel, color, key, flags, out);
}

/*@@ hal_channel_rank_and_count */
static int hal_channel_rank_and_count(vm_state* s, vm_ref channel, uint32_t* rank, uint32_t* count) {
  *rank = 0;
  *count = 0;
  return hal_check(s, channel, &hal_channel_type);
}

/*@@ hal_command_buffer_collective */
static int hal_command_buffer_collective(vm_state* s, vm_ref commands, vm_ref channel, uint32_t operation,
                                         uint32_t parameter, uint32_t send_slot, uint32_t receive_slot,
                                         vm_ref send, vm_ref receive, uint64_t send_offset,
                                         uint64_t send_length, uint64_t receive_offset,
                                         uint64_t receive_length, uint64_t count) {
  (void)operation;
  (void)parameter;
  (void)send_slot;
  (void)receive_slot;
  (void)send;
  (void)receive;
  (void)send_offset;
  (void)send_length;
  (void)receive_offset;
  (void)receive_length;
  (void)count;
  const int status = hal_check(s, commands, &hal_command_buffer_type);
  return status != 0 ? status : hal_check(s, channel, &hal_channel_type);
}
