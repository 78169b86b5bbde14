/* Captures from C: a context that writes one, looking into it, replaying it, files that are none. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "halyard/halyard.h"
#include "program.h"

static char folder[] = "/tmp/halyard-test-XXXXXX";
static char path[64];

static halyard_instance_t make_instance(void) {
  const char* const drivers = HALYARD_BUILD_DIR "/lib/halyard/drivers";
  halyard_instance_options_t options = {
      .struct_size = sizeof options,
      .flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS,
      .driver_folders = &drivers,
      .driver_folder_count = 1};
  halyard_instance_t instance = NULL;
  OK(halyard_instance_create(&options, &instance));
  return instance;
}

/* 4 x 4, on local-sync. */
static int multiply(halyard_instance_t instance, halyard_device_t device, const char* capture) {
  halyard_module_t module = NULL;
  if (!OK(halyard_module_load_file(instance, HALYARD_SOURCE_DIR "/examples/elementwise_mul.vmasm", 0,
                                   &module)))
    return 0;
  halyard_context_options_t options = {.struct_size = sizeof options,
                                       .modules = &module,
                                       .module_count = 1,
                                       .devices = &device,
                                       .device_count = 1,
                                       .capture_path = capture};
  halyard_context_t context = NULL;
  halyard_tensor_t* tensor = NULL;
  const halyard_text_t text = {"8xf32=3", 7};
  halyard_object_t view = NULL;
  int good = OK(halyard_context_create(instance, &options, &context)) &&
             OK(halyard_tensor_parse(text, &tensor)) &&
             OK(halyard_view_create(device, tensor->element_type, tensor->shape, tensor->rank, tensor->data,
                                    tensor->size, &view));
  if (good) {
    const halyard_value_t arguments[2] = {object(view), object(view)};
    halyard_value_t result = {.kind = HALYARD_VALUE_NULL};
    good = OK(call_once(context, NULL, "mul", arguments, 2, &result, 1));
    float values[8] = {0};
    if (good && OK(halyard_view_read(result.object, 0, values, sizeof values))) EXPECT(values[7] == 9.0f);
    if (good) halyard_release(result.object);
  }
  halyard_free(tensor);
  RELEASE(view, context, module);
  return good;
}

static void look(halyard_capture_t capture) {
  halyard_capture_info_t info = {.struct_size = sizeof info};
  OK(halyard_capture_info(capture, &info));
  EXPECT(info.is_complete && info.execution_count == 1 && info.executable_count == 1);
  halyard_captured_execution_t execution = {.struct_size = sizeof execution};
  OK(halyard_capture_execution(capture, 0, &execution));
  EXPECT(execution.outcome == HALYARD_EXECUTION_DONE && execution.command_count > 0);
  EXPECT(execution.device.size == 13 && memcmp(execution.device.data, "local-sync://", 13) == 0);
  FAILS(halyard_capture_execution(capture, 1, &execution), HALYARD_OUT_OF_RANGE, "execution 1");
  char* text = NULL;
  size_t size = 0;
  if (OK(halyard_capture_describe(capture, HALYARD_EVERY_EXECUTION, HALYARD_DESCRIBE_TEXT, &text, &size))) {
    EXPECT(size == strlen(text));
    EXPECT(strstr(text, "dispatch executable0.0 'mul'") != NULL);
    halyard_free(text);
  }
  if (OK(halyard_capture_describe(capture, 0, HALYARD_DESCRIBE_JSON, &text, NULL))) {
    EXPECT(strstr(text, "\"kind\": \"dispatch\"") != NULL);
    halyard_free(text);
  }
  text = NULL;
  FAILS(halyard_capture_describe(capture, 1, HALYARD_DESCRIBE_TEXT, &text, NULL), HALYARD_OUT_OF_RANGE,
        "execution 1");
  FAILS(halyard_capture_describe(capture, 0, 7, &text, NULL), HALYARD_INVALID_ARGUMENT, "7");
  EXPECT(text == NULL);
}

static void replay(halyard_capture_t capture, halyard_device_t device) {
  halyard_replay_t replay = NULL;
  if (!OK(halyard_replay_create(capture, device, &replay))) return;
  for (int i = 0; i < 2; ++i) {
    halyard_replay_result_t result = {.struct_size = sizeof result, .outcome = 99};
    OK(halyard_replay_execute(replay, 0, &result));
    EXPECT(result.outcome == HALYARD_REPLAY_SAME && result.total == 0);
  }
  halyard_replay_result_t result = {.struct_size = sizeof result};
  FAILS(halyard_replay_execute(replay, 1, &result), HALYARD_OUT_OF_RANGE, "execution 1");
  result.struct_size = 0;
  FAILS(halyard_replay_execute(replay, 0, &result), HALYARD_INVALID_ARGUMENT, "struct_size");
  halyard_release(replay);
}

/* A step with the bytes before and after it. */
struct seen {
  int count;
  int changed;
  float last;
};
static halyard_status_t see(void* user, const halyard_traced_tensor_t* tensor) {
  struct seen* const seen = user;
  EXPECT(tensor->struct_size >= sizeof *tensor && tensor->before != NULL && tensor->size == 32);
  EXPECT(tensor->execution == 0 && tensor->command == 0 && tensor->binding == 2 * tensor->buffer);
  EXPECT(tensor->operation.size == 8 && memcmp(tensor->operation.data, "dispatch", 8) == 0);
  EXPECT(tensor->function.size == 3 && memcmp(tensor->function.data, "mul", 3) == 0);
  EXPECT(tensor->workgroups[0] == 2 && tensor->workgroups[1] == 1 && tensor->workgroups[2] == 1);
  EXPECT(tensor->after == (memcmp(tensor->before, tensor->data, 32) != 0));
  ++seen->count;
  seen->changed += tensor->after != 0;
  memcpy(&seen->last, tensor->data + 28, 4);
  return NULL;
}

static void replay_with_options(halyard_capture_t capture, halyard_device_t device) {
  struct seen seen = {0, 0, 0};
  halyard_replay_options_t options = {.struct_size = sizeof options, .tensor = see, .tensor_user = &seen};
  halyard_replay_t replay = NULL;
  if (!OK(halyard_replay_create_with(capture, device, &options, &replay))) return;
  halyard_replay_result_t result = {.struct_size = sizeof result};
  OK(halyard_replay_execute_to(replay, 0, 0, &result));
  EXPECT(result.outcome == HALYARD_REPLAY_SAME);
  EXPECT(seen.count == 2 && seen.changed == 1 && seen.last == 9.0f); /* both arguments are one buffer */
  FAILS(halyard_replay_execute_to(replay, 0, 9, &result), HALYARD_OUT_OF_RANGE, "command 9");
  halyard_release(replay);

  replay = NULL;
  const halyard_replay_executable_t executable = {.number = 1, .format = {"x", 1}, .data = "x", .size = 1};
  halyard_replay_options_t other = {
      .struct_size = sizeof other, .executables = &executable, .executable_count = 1};
  FAILS(halyard_replay_create_with(capture, device, &other, &replay), HALYARD_OUT_OF_RANGE, "executable 1");
  if (!OK(halyard_replay_create_with(capture, device, NULL, &replay))) return;
  halyard_replay_times_t times = {.struct_size = sizeof times};
  OK(halyard_replay_measure(replay, 0, HALYARD_EVERY_COMMAND, 1000, &times));
  EXPECT(times.count > 0 && times.fastest_ns <= times.median_ns && times.total_ns >= 1000);
  FAILS(halyard_replay_measure(replay, 7, 0, 0, &times), HALYARD_OUT_OF_RANGE, "execution 7");
  char small[80];
  snprintf(small, sizeof small, "%s.small", path);
  OK(halyard_replay_cut(replay, 0, 0, small));
  halyard_capture_t cut = NULL;
  if (OK(halyard_capture_open(small, 0, &cut))) {
    halyard_captured_execution_t execution = {.struct_size = sizeof execution};
    OK(halyard_capture_execution(cut, 0, &execution));
    EXPECT(execution.command_count == 1 && execution.outcome == HALYARD_EXECUTION_DONE);
    halyard_release(cut);
  }
  remove(small);
  FAILS(halyard_replay_cut(replay, 0, 9, small), HALYARD_OUT_OF_RANGE, "command 9");
  halyard_release(replay);

  float values[2] = {0, 0};
  OK(halyard_capture_read(capture, 0, 0, 24, 0, values, sizeof values));
  EXPECT(values[0] == 3.0f && values[1] == 3.0f);
  OK(halyard_capture_read(capture, 0, 1, 24, 1, values, sizeof values));
  EXPECT(values[0] == 9.0f && values[1] == 9.0f);
  FAILS(halyard_capture_read(capture, 0, 1, 28, 1, values, sizeof values), HALYARD_OUT_OF_RANGE, "[28, +8)");
  FAILS(halyard_capture_read(capture, 0, 1, UINT64_MAX, 1, values, sizeof values), HALYARD_OUT_OF_RANGE,
        "buffer1");
  FAILS(halyard_capture_read(capture, 0, 9, 0, 1, values, sizeof values), HALYARD_OUT_OF_RANGE, "buffer 9");
  FAILS(halyard_capture_read(capture, 9, 0, 0, 1, values, sizeof values), HALYARD_OUT_OF_RANGE,
        "execution 9");
}

int main(void) {
  if (!mkdtemp(folder)) return 1;
  snprintf(path, sizeof path, "%s/mul.hycap", folder);
  halyard_instance_t instance = make_instance();
  halyard_device_t device = NULL;
  if (!OK(halyard_device_open(instance, "local-sync", &device))) return 1;
  halyard_capture_t capture = NULL;
  if (multiply(instance, device, path) && OK(halyard_capture_open(path, 0, &capture))) {
    look(capture);
    replay(capture, device);
    replay_with_options(capture, device);
    halyard_release(capture);
  }

  capture = NULL;
  FAILS(halyard_capture_open("/none/such.hycap", 0, &capture), HALYARD_NOT_FOUND, "/none/such.hycap");
  if (truncate(path, 100) == 0) {
    FAILS(halyard_capture_open(path, 0, &capture), HALYARD_DATA_LOSS, path);
    if (OK(halyard_capture_open(path, HALYARD_CAPTURE_INCOMPLETE, &capture))) {
      halyard_capture_info_t info = {.struct_size = sizeof info, .is_complete = 1};
      OK(halyard_capture_info(capture, &info));
      EXPECT(!info.is_complete && info.execution_count == 0);
      halyard_release(capture);
    }
  }
  remove(path);
  rmdir(folder);
  RELEASE(device, instance);
  return failures != 0;
}
