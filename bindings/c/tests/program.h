/* For tests in C that run a program: values, a module from text, a function called once. */
#ifndef HALYARD_C_TESTS_PROGRAM_H_
#define HALYARD_C_TESTS_PROGRAM_H_

#include "check.h"

static inline halyard_value_t i32(int32_t value) {
  return (halyard_value_t){.kind = HALYARD_VALUE_I32, .i32 = value};
}
static inline halyard_value_t i64(int64_t value) {
  return (halyard_value_t){.kind = HALYARD_VALUE_I64, .i64 = value};
}
static inline halyard_value_t f32(float value) {
  return (halyard_value_t){.kind = HALYARD_VALUE_F32, .f32 = value};
}
static inline halyard_value_t f64(double value) {
  return (halyard_value_t){.kind = HALYARD_VALUE_F64, .f64 = value};
}
static inline halyard_value_t object(halyard_object_t handle) {
  return (halyard_value_t){.kind = handle ? HALYARD_VALUE_OBJECT : HALYARD_VALUE_NULL, .object = handle};
}

/* The module that a text assembles to; NULL after a failure, which is counted. */
static inline halyard_module_t load_text(halyard_instance_t instance, const char* text) {
  void* bytes = NULL;
  size_t size = 0;
  halyard_module_t module = NULL;
  if (OK(halyard_assemble(text, strlen(text), NULL, &bytes, &size)))
    OK(halyard_module_load_memory(instance, bytes, size, 0, &module));
  halyard_free(bytes);
  return module;
}

/* A context of one module, on this device unless it is NULL; NULL after a failure, which is counted. */
static inline halyard_context_t context_of(halyard_instance_t instance, halyard_module_t module,
                                           halyard_device_t device) {
  const halyard_context_options_t options = {.struct_size = sizeof options,
                                             .modules = &module,
                                             .module_count = 1,
                                             .devices = &device,
                                             .device_count = device != NULL};
  halyard_context_t context = NULL;
  OK(halyard_context_create(instance, &options, &context));
  return context;
}

static inline halyard_function_t find(halyard_context_t context, const char* name) {
  halyard_function_t function = NULL;
  OK(halyard_context_find(context, NULL, name, &function));
  return function;
}

/* Calls a function once; `module` NULL: the last one of the context. */
static inline halyard_status_t call_once(halyard_context_t context, const char* module, const char* name,
                                         const halyard_value_t* arguments, size_t argument_count,
                                         halyard_value_t* results, size_t result_count) {
  halyard_function_t function = NULL;
  halyard_call_t call = NULL;
  halyard_status_t status = halyard_context_find(context, module, name, &function);
  if (!status) status = halyard_call_create(context, &call);
  if (!status) status = halyard_call_invoke(call, function, arguments, argument_count, results, result_count);
  RELEASE(call, function);
  return status;
}

#endif /* HALYARD_C_TESTS_PROGRAM_H_ */
