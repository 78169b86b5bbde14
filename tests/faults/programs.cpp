// One run of a program: each step depends on the earlier ones, and all are undone at the end.
#include "programs.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "allocations.h"

namespace faults {

namespace {

const std::string kFaultyPath = HALYARD_TEST_DRIVERS "/halyard-driver-faulty.so";

constexpr uint64_t kMaxCall = uint64_t{100} * 1000 * 1000 * 1000;  // ns: detects hangs

// Handles in order of creation; released in reverse.
class Handles {
 public:
  Handles() { handles_.reserve(16); }  // so that the test itself does not allocate while a program runs
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    const Armed armed;
    for (size_t i = handles_.size(); i-- > 0;) halyard_release(handles_[i]);
  }
  template <typename T>
  T add(T handle) {
    handles_.push_back(handle);
    return handle;
  }

 private:
  std::vector<void*> handles_;
};

std::string taken(char* text) {
  std::string copy = text ? text : "";
  halyard_free(text);
  return copy;
}

Outcome failed_outcome(halyard_status_t status) {
  Outcome outcome;
  char* text = nullptr;
  {
    const Armed armed;
    outcome.code = halyard_status_code(status);
    text = halyard_status_text(status);
  }
  outcome.text = taken(text);
  halyard_status_release(status);
  return outcome;
}

// A step of the ABI, with the heap armed.
template <typename Function, typename... Arguments>
halyard_status_t step(Function function, Arguments... arguments) {
  const Armed armed;
  return function(arguments...);
}

struct Input {
  halyard_tensor_t* tensor = nullptr;
  explicit Input(const std::string& text) {
    EXPECT_EQ(halyard_tensor_parse({text.data(), text.size()}, &tensor), nullptr);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() { halyard_free(tensor); }
};

}  // namespace

const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"slots",
       "examples/elementwise_mul.vmasm",
       "mul",
       {"8xf32=1,2,3,4,5,6,7,8", "8xf32=10"},
       "8xf32=10 20 30 40 50 60 70 80"},
      {"recorded",
       "examples/matmul.vmasm",
       "matmul",
       {"4x3xf32=0.5", "3x2xf32=1,2,3,4,5,6"},
       "4x2xf32=[4.5 6][4.5 6][4.5 6][4.5 6]"},
      {"queue", "tests/faults/queue_work.vmasm", "main", {}, "8"},
  };
  return all;
}

std::string module_of(const Program& program) {
  std::ifstream file(std::string(HALYARD_SOURCE_DIR "/") + program.file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  void* bytes = nullptr;
  size_t size = 0;
  if (const halyard_status_t status = halyard_assemble(text.data(), text.size(), nullptr, &bytes, &size)) {
    ADD_FAILURE() << program.file << ": " << failed_outcome(status).text;
    return {};
  }
  std::string module(static_cast<const char*>(bytes), size);
  halyard_free(bytes);
  return module;
}

int64_t allocations_of(const Outcome& outcome) {
  static const size_t kOwnCapacity = std::string().capacity();  // of texts that lie within the string
  return outcome.text.capacity() > kOwnCapacity ? 1 : 0;
}

const FaultyControls& faulty() {
  static const FaultyControls* const controls = [] {
    void* const library = ::dlopen(kFaultyPath.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << ::dlerror();
    using Function = const FaultyControls* (*)();
    return reinterpret_cast<Function>(::dlsym(library, FAULTY_CONTROLS_SYMBOL))();
  }();
  return *controls;
}

void wrap(const std::string& driver, const std::string& kind) {
  faulty().wrap((HALYARD_BUILD_DIR "/lib/halyard/drivers/halyard-driver-" + driver + ".so").c_str(),
                kind.c_str());
  faulty().reset();
}

Outcome run(const Program& program, const std::string& module, const std::vector<std::string>& uris) {
  std::vector<std::unique_ptr<Input>> inputs;
  for (const std::string& input : program.inputs) inputs.push_back(std::make_unique<Input>(input));
  std::vector<halyard_device_t> devices(uris.size());
  std::vector<halyard_value_t> arguments(inputs.size());
  Handles handles;

  const char* const libraries[] = {kFaultyPath.c_str()};
  const char* const folders[] = {HALYARD_BUILD_DIR "/lib/halyard/drivers"};
  halyard_instance_options_t options = {};
  options.struct_size = sizeof options;
  options.flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS;
  options.driver_libraries = libraries;
  options.driver_library_count = 1;
  options.driver_folders = folders;
  options.driver_folder_count = 1;
  halyard_instance_t instance = nullptr;
  if (halyard_status_t status = step(halyard_instance_create, &options, &instance))
    return failed_outcome(status);
  handles.add(instance);

  halyard_device_entry_t* entries = nullptr;
  size_t entry_count = 0;
  if (halyard_status_t status =
          step(halyard_instance_devices, instance, uris[0].c_str(), &entries, &entry_count))
    return failed_outcome(status);
  halyard_free(entries);
  for (size_t i = 0; i < uris.size(); ++i) {
    if (halyard_status_t status = step(halyard_device_open, instance, uris[i].c_str(), &devices[i]))
      return failed_outcome(status);
    handles.add(devices[i]);
  }

  halyard_module_t loaded = nullptr;
  if (halyard_status_t status =
          step(halyard_module_load_memory, instance, static_cast<const void*>(module.data()), module.size(),
               uint32_t{0}, &loaded))
    return failed_outcome(status);
  handles.add(loaded);
  halyard_context_options_t context_options = {};
  context_options.struct_size = sizeof context_options;
  context_options.modules = &loaded;
  context_options.module_count = 1;
  context_options.devices = devices.data();
  context_options.device_count = devices.size();
  context_options.max_time_ns = kMaxCall;
  halyard_context_t context = nullptr;
  if (halyard_status_t status = step(halyard_context_create, instance, &context_options, &context))
    return failed_outcome(status);
  handles.add(context);
  halyard_function_t function = nullptr;
  if (halyard_status_t status = step(halyard_context_find, context, static_cast<const char*>(nullptr),
                                     program.function.c_str(), &function))
    return failed_outcome(status);
  handles.add(function);
  halyard_call_t call = nullptr;
  if (halyard_status_t status = step(halyard_call_create, context, &call)) return failed_outcome(status);
  handles.add(call);

  for (size_t i = 0; i < inputs.size(); ++i) {
    const halyard_tensor_t& tensor = *inputs[i]->tensor;
    arguments[i].kind = HALYARD_VALUE_OBJECT;
    if (halyard_status_t status = step(halyard_view_create, devices[0], tensor.element_type, tensor.shape,
                                       tensor.rank, tensor.data, tensor.size, &arguments[i].object))
      return failed_outcome(status);
    handles.add(arguments[i].object);
  }
  halyard_value_t result = {};
  if (halyard_status_t status =
          step(halyard_call_invoke, call, function, static_cast<const halyard_value_t*>(arguments.data()),
               arguments.size(), &result, size_t{1}))
    return failed_outcome(status);
  if (result.kind != HALYARD_VALUE_OBJECT) return {HALYARD_OK, std::to_string(result.i32)};
  handles.add(result.object);
  char* text = nullptr;
  if (halyard_status_t status = step(halyard_view_text, result.object, uint64_t{1024}, &text))
    return failed_outcome(status);
  return {HALYARD_OK, taken(text)};
}

namespace {

std::string handles_now() {
  static const char* const kNames[] = {"instances",  "devices",     "memory",
                                       "semaphores", "executables", "command lists"};
  std::string left;
  for (int kind = 0; kind < FAULTY_HANDLES; ++kind)
    if (const int64_t live = faulty().live(kind); live != 0)
      left += std::to_string(live) + " " + kNames[kind] + " ";
  return left;
}

}  // namespace

// A device whose last reference goes in a callback is closed soon after, by another thread.
std::string handles_left() {
  constexpr int kAttempts = 30000;
  for (int i = 0; i < kAttempts && !handles_now().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return handles_now();
}

}  // namespace faults
