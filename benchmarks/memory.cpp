// What tensors cost on their way into a program and out of it: by import and mapping, by DLPack, and by
// copies, at two sizes; each row takes a tensor in, calls a function that returns it, and looks at the
// result's bytes. Baselines in the same run: the call alone, with a view that exists, and memcpy there and
// back.
#include "halyard/memory.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>

#include "program.h"

// The layout of DLPack's public header, as far as it is needed here.
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  struct {
    void* data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
  } tensor;
};

namespace {

constexpr char kText[] = R"(
vm.module @passing
vm.export @pass
vm.func @pass(%r0: !hal.buffer_view) -> (!hal.buffer_view) {
  vm.return %R0
}
)";

struct Passing {
  explicit Passing(benchmark::State& state, const char* uri)
      : size(static_cast<size_t>(state.range(0))),
        bytes(static_cast<uint8_t*>(std::aligned_alloc(4096, size))),
        shape{static_cast<int64_t>(size)} {
    std::memset(bytes, 1, size);
    program.load_text(kText);
    program.open_device(uri);
    program.link("pass");
  }
  ~Passing() { std::free(bytes); }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;

  // Gives the view to the program and returns what comes back; `view` is released.
  halyard_object_t pass(halyard_object_t view) const {
    halyard_value_t argument = {};
    argument.kind = HALYARD_VALUE_OBJECT;
    argument.object = view;
    halyard_value_t result = {};
    require(halyard_call_invoke(program.call, program.function, &argument, 1, &result, 1));
    halyard_release(view);
    return result.object;
  }

  Program program;
  size_t size;
  uint8_t* bytes;
  int64_t shape[1];
};

void call_alone(benchmark::State& state, const char* uri) {
  Passing passing(state, uri);
  halyard_object_t view = nullptr;
  require(halyard_view_import(passing.program.device, HALYARD_ELEMENT_UI8, passing.shape, 1, passing.bytes,
                              passing.size, HALYARD_IMPORT_NO_COPY, nullptr, nullptr, nullptr, &view));
  for ([[maybe_unused]] auto _ : state) {
    halyard_retain(view);
    halyard_release(passing.pass(view));
  }
  halyard_release(view);
}

void import_and_map(benchmark::State& state, const char* uri) {
  Passing passing(state, uri);
  for ([[maybe_unused]] auto _ : state) {
    halyard_object_t view = nullptr;
    require(halyard_view_import(passing.program.device, HALYARD_ELEMENT_UI8, passing.shape, 1, passing.bytes,
                                passing.size, HALYARD_IMPORT_NO_COPY, nullptr, nullptr, nullptr, &view));
    const halyard_object_t result = passing.pass(view);
    void* data = nullptr;
    size_t size = 0;
    require(halyard_view_map(result, HALYARD_VIEW_READ, &data, &size));
    if (data != passing.bytes) state.SkipWithError("the bytes were copied");
    halyard_view_unmap(result);
    halyard_release(result);
  }
}

// `flags` are HALYARD_DLPACK_*.
void through_dlpack(benchmark::State& state, const char* uri, uint32_t flags) {
  Passing passing(state, uri);
  DLManagedTensorVersioned given = {};
  given.major = 1;
  given.deleter = [](DLManagedTensorVersioned*) {};
  given.tensor.data = passing.bytes;
  given.tensor.device_type = 1;
  given.tensor.rank = 1;
  given.tensor.code = 1;
  given.tensor.bits = 8;
  given.tensor.lanes = 1;
  given.tensor.shape = passing.shape;
  for ([[maybe_unused]] auto _ : state) {
    halyard_object_t view = nullptr;
    uint32_t is_copy = 0;
    require(halyard_view_from_dlpack(passing.program.device, &given, flags, &is_copy, &view));
    const halyard_object_t result = passing.pass(view);
    DLManagedTensorVersioned* tensor = nullptr;
    require(halyard_view_to_dlpack(result, flags, &tensor));
    halyard_release(result);
    if (flags == 0 && (is_copy || tensor->tensor.data != passing.bytes))
      state.SkipWithError("the bytes were copied");
    halyard_dlpack_release(tensor);
  }
}

void dlpack(benchmark::State& state, const char* uri) { through_dlpack(state, uri, 0); }
void dlpack_copies(benchmark::State& state, const char* uri) {
  through_dlpack(state, uri, HALYARD_DLPACK_COPY);
}

void copies(benchmark::State& state, const char* uri) {
  Passing passing(state, uri);
  std::unique_ptr<uint8_t[]> target(new uint8_t[passing.size]());
  for ([[maybe_unused]] auto _ : state) {
    halyard_object_t view = nullptr;
    require(halyard_view_create(passing.program.device, HALYARD_ELEMENT_UI8, passing.shape, 1, passing.bytes,
                                passing.size, &view));
    const halyard_object_t result = passing.pass(view);
    require(halyard_view_read(result, 0, target.get(), passing.size));
    halyard_release(result);
  }
}

void zeros(benchmark::State& state, const char* uri) {
  Passing passing(state, uri);
  for ([[maybe_unused]] auto _ : state) {
    halyard_object_t view = nullptr;
    require(halyard_view_create(passing.program.device, HALYARD_ELEMENT_UI8, passing.shape, 1, nullptr,
                                passing.size, &view));
    halyard_release(passing.pass(view));
  }
}

void memcpy_there_and_back(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  std::unique_ptr<uint8_t[]> from(new uint8_t[size]());
  std::unique_ptr<uint8_t[]> device(new uint8_t[size]());
  std::unique_ptr<uint8_t[]> to(new uint8_t[size]());
  for ([[maybe_unused]] auto _ : state) {
    std::memcpy(device.get(), from.get(), size);
    benchmark::ClobberMemory();
    std::memcpy(to.get(), device.get(), size);
    benchmark::ClobberMemory();
  }
}

#define ROWS(function)                                                          \
  BENCHMARK_CAPTURE(function, sync, "local-sync")->Arg(4 << 10)->Arg(64 << 20); \
  BENCHMARK_CAPTURE(function, task, "local-task")->Arg(4 << 10)->Arg(64 << 20)
ROWS(call_alone);
ROWS(import_and_map);
ROWS(dlpack);
ROWS(dlpack_copies);
ROWS(copies);
ROWS(zeros);
BENCHMARK(memcpy_there_and_back)->Arg(4 << 10)->Arg(64 << 20);

}  // namespace

BENCHMARK_MAIN();
