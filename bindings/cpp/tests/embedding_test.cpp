// halyard/halyard.hpp with exceptions: values, tensors, fences, modules, contexts, failures.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>

#include "program.h"

namespace {

using namespace halyard;
using std::chrono::milliseconds;

TEST(Calls, HaveTypedResults) {
  Program program;
  const Function add = program.context.find("add");
  EXPECT_EQ(add.call<float>(2.0f, 0.5f), 2.5f);
  EXPECT_EQ(add.call<float>(1, 2), 3.0f);  // integers that an f32 holds
  const Function mix = program.context.find("mix");
  const auto [a, b, c, d] = mix.call<float, int32_t, double, int64_t>(int64_t{1} << 40, -2.5, 41, 1.5f);
  EXPECT_EQ(a, 1.5f);
  EXPECT_EQ(b, 41);
  EXPECT_EQ(c, -2.5);
  EXPECT_EQ(d, int64_t{1} << 40);
  program.context.find("none").call<>();
  const Value any = add.call<Value>(2.0f, 3.0f);
  EXPECT_EQ(any.as<float>(), 5.0f);
  EXPECT_EQ(code_of([&] { any.as<int32_t>(); }), StatusCode::INVALID_ARGUMENT);
}

TEST(Calls, FailWithWhatIsWrong) {
  Program program;
  const Function add = program.context.find("add");
  std::string text;
  EXPECT_EQ(code_of([&] { add.call<float>(1.0f); }, &text), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(text.find("expected 2 arguments"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { add.call<int32_t>(1.0f, 1.0f); }, &text), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(text.find("result 0 is an f32, but the program expects an i32"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { add.call<float>(1.0f, 0.1); }, &text), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(text.find("argument 1 ('%y')"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { add.call<>(1.0f, 1.0f); }), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { program.context.find("ad"); }, &text), StatusCode::NOT_FOUND);
  EXPECT_NE(text.find("did you mean 'add'"), std::string::npos) << text;
  EXPECT_EQ(text.rfind("NOT_FOUND; ", 0), 0u) << text;
  EXPECT_EQ(add.call<float>(1.0f, 1.0f), 2.0f);
  // An object among results of which another one is wrong is released (leak checkers see it).
  const Tensor tensor = Tensor::create<float>(program.device, {1}, {1});
  EXPECT_EQ(code_of([&] { program.context.find("pass").call<float>(tensor); }), StatusCode::INVALID_ARGUMENT);
}

TEST(Calls, OfCopiesAreSeparate) {
  Program program(HALYARD_CONTEXT_CONCURRENT_CALLS);
  const Function add = program.context.find("add");
  add.call<float>(0.0f, 0.0f);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([copy = add, i] {
      for (int turn = 0; turn < 1000; ++turn)
        EXPECT_EQ(copy.call<float>(static_cast<float>(i), 1.0f), static_cast<float>(i) + 1.0f);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Calls, InSteps) {
  Program program;
  const Function wait = program.context.find("wait");
  const Call call = Call::create(program.context);
  const Fence fence = Fence::create(program.device);
  int ready = 0;
  call.on_ready([](void* user) { ++*static_cast<int*>(user); }, &ready);
  EXPECT_EQ(call.begin(wait, fence, -1), CallState::waiting);
  EXPECT_EQ(call.state(), CallState::waiting);
  EXPECT_EQ(call.wait_deadline(), Call::Clock::time_point::max());
  fence.signal();
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(call.resume(), CallState::done);
  EXPECT_EQ(call.results<int32_t>(), 0);
  // Cancelled; past its deadline; with values that are known at run time.
  const Fence never = Fence::create(program.device);
  EXPECT_EQ(call.begin(wait, never, -1), CallState::waiting);
  call.cancel();
  EXPECT_EQ(code_of([&] { call.resume(); }), StatusCode::CANCELLED);
  call.set_deadline(Call::Clock::now() + milliseconds(20));
  EXPECT_EQ(code_of([&] { call.invoke<int32_t>(wait, never, -1); }), StatusCode::DEADLINE_EXCEEDED);
  std::vector<Value> results(1);
  call.invoke_with(wait, std::vector<Value>{fence, -1}, results);
  EXPECT_EQ(results[0].as<int32_t>(), 0);
  EXPECT_EQ(call.begin_with(wait, std::vector<Value>{fence, -1}), CallState::done);
  call.results_into(results);
  EXPECT_EQ(results[0].as<int32_t>(), 0);
}

TEST(Values, OwnTheirObjects) {
  Program program;
  const Function pass = program.context.find("pass");
  const Tensor tensor = Tensor::create<float>(program.device, {2}, {1, 2});
  Value value = tensor;
  const Value copy = value;
  value = Value();
  EXPECT_TRUE(value.is_null());
  EXPECT_FALSE(value.object());
  EXPECT_EQ(copy.object(), tensor);
  EXPECT_EQ(copy.as<Tensor>(), tensor);
  EXPECT_EQ(pass.call<Tensor>(copy), tensor);
  EXPECT_FALSE(pass.call<Object>(nullptr));
  EXPECT_TRUE(pass.call<Value>(Tensor()).is_null());
  EXPECT_EQ(tensor.type(), "hal.buffer_view");
  const List list = program.context.find("list").call<List>();
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].as<int32_t>(), 2);
  EXPECT_TRUE(list[1].is_null());
  EXPECT_EQ(code_of([&] { list[2]; }), StatusCode::OUT_OF_RANGE);
  const List made = List::create(HALYARD_VALUE_I64);
  made.append(int64_t{1} << 40);
  made.append(int64_t{2});
  made.set(1, int64_t{3});
  EXPECT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].as<int64_t>(), int64_t{1} << 40);
  EXPECT_EQ(made[1].as<int64_t>(), 3);
  EXPECT_EQ(code_of([&] { made.set(2, int64_t{0}); }), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(code_of([&] { made.append(list); }), StatusCode::FAILED_PRECONDITION);
  const List endless = List::create();
  endless.append(endless);
  EXPECT_EQ(code_of([&] { endless.check(); }), StatusCode::RESOURCE_EXHAUSTED);
  endless.set(0, nullptr);
  endless.check();
  EXPECT_EQ(code_of([&] { endless.check(1, 0); }), StatusCode::RESOURCE_EXHAUSTED);
}

TEST(Tensors, OfElements) {
  Program program;
  for (const Device& device : {program.device, Device()}) {
    const Tensor tensor = Tensor::create<float>(device, {2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(tensor.read<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(std::ranges::equal(tensor.shape(), std::vector<int64_t>{2, 3}));
    EXPECT_EQ(tensor.element_type(), ElementType::f32);
    EXPECT_EQ(tensor.info().byte_length, 24u);
    EXPECT_EQ(tensor.text(), "2x3xf32=[1 2 3][4 5 6]");
    float two[2];
    tensor.read(std::span<float>(two), 1);
    EXPECT_EQ(two[1], 3.0f);
    std::string text;
    EXPECT_EQ(code_of([&] { tensor.read<int32_t>(); }, &text), StatusCode::INVALID_ARGUMENT);
    EXPECT_NE(text.find("elements are f32, but they are accessed as i32"), std::string::npos) << text;
    EXPECT_EQ(code_of([&] { Tensor::create<float>(device, {3}, {1}); }), StatusCode::INVALID_ARGUMENT);
    {
      const auto mapped = tensor.map<float>();
      ASSERT_EQ(mapped.size(), 6u);
      mapped[5] = 7;
    }
    const Tensor last = tensor.part(20, ElementType::f32, {1});
    EXPECT_EQ(last.map<const float>()[0], 7.0f);
    EXPECT_EQ(tensor.map_bytes(Access::read).size(), 24u);
    EXPECT_EQ(tensor.buffer().type(), "hal.buffer");
    EXPECT_EQ(view(tensor.device().uri()), device ? "local-sync://" : "host://");
  }
  const Tensor unsigned_ints = Tensor::create<uint16_t>(program.device, {2}, {1, 65535});
  EXPECT_EQ(unsigned_ints.element_type(), ElementType::i16);
  EXPECT_EQ(unsigned_ints.read<uint16_t>()[1], 65535);
  EXPECT_EQ(unsigned_ints.read<int16_t>()[1], -1);
  const Tensor zeros = Tensor::create(program.device, ElementType::bf16, {4}, nullptr, 8);
  EXPECT_EQ(code_of([&] { zeros.read<float>(); }), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { Tensor().read<float>(); }), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(TensorText::parse("2xi32=4,5").create(program.device).read<int32_t>()[1], 5);
  EXPECT_EQ(TensorText::parse_type("2x3xf32")->size, 24u);
  EXPECT_EQ(text_of(ElementType::f8e4m3fn), "f8E4M3FN");
  static_assert(element_type_of<std::complex<float>> == ElementType::cf64);
}

struct alignas(64) Block64 {
  float elements[16];
};

TEST(Tensors, OverMemoryOfTheProgram) {
  Program program;
  auto memory = std::make_shared<Block64>();
  memory->elements[3] = 3;
  bool is_copy = true;
  {
    const Tensor tensor = Tensor::import <float>(program.device, {16}, memory->elements, memory, 0, &is_copy);
    EXPECT_FALSE(is_copy);
    EXPECT_EQ(memory.use_count(), 2);
    EXPECT_EQ(tensor.map<const float>().data(), memory->elements);
    const Tensor again = Tensor::from_dlpack(program.device, tensor.to_dlpack(), 0, &is_copy);
    EXPECT_EQ(again.map<const float>().data(), memory->elements);
    Tensor::release_dlpack(tensor.to_dlpack_unversioned());
    EXPECT_EQ(Tensor::from_dlpack(program.device, tensor.to_dlpack_unversioned()).read<float>()[3], 3.0f);
  }
  EXPECT_EQ(memory.use_count(), 1);
  const Tensor constant =
      Tensor::import <const float>(program.device, {16}, std::span<const float>(memory->elements), memory);
  EXPECT_EQ(code_of([&] { constant.map<float>(); }), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(code_of([&] { Tensor::import <float>(program.device, {99}, memory->elements, memory); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(memory.use_count(), 2);  // of the refused one nothing is left
}

TEST(Tensors, OverAFileDescriptor) {
  Program program;
  const int fd = ::memfd_create("tensor", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  const float elements[4] = {1, 2, 3, 4};
  ASSERT_EQ(::pwrite(fd, elements, sizeof elements, 4096), static_cast<ssize_t>(sizeof elements));
  bool is_copy = true;
  const Tensor tensor = Tensor::import_fd(program.device, ElementType::f32, {4},
                                          {.kind = HALYARD_FD_MAPPABLE, .fd = fd, .offset = 4096}, &is_copy);
  EXPECT_FALSE(is_copy);
  EXPECT_EQ(tensor.read<float>()[3], 4.0f);
  EXPECT_EQ(code_of([&] {
              Tensor::import_fd(program.device, ElementType::f32, {4},
                                {.kind = HALYARD_FD_MAPPABLE, .fd = -1});
            }),
            StatusCode::INVALID_ARGUMENT);
  ::close(fd);
}

TEST(Fences, AreWaitedFor) {
  Program program;
  const Fence fence = Fence::create(program.device);
  EXPECT_FALSE(fence.is_reached());
  EXPECT_EQ(code_of([&] { fence.wait(milliseconds(1)); }), StatusCode::DEADLINE_EXCEEDED);
  int calls = 0;
  fence.on_reached([&calls](halyard_status_t status) { calls += status ? 100 : 1; });
  const Fence both = Fence::join(std::vector<Fence>{fence, Fence()});
  fence.signal();
  EXPECT_TRUE(fence.is_reached() && both.is_reached());
  EXPECT_EQ(calls, 1);
  const Fence failed = Fence::create(program.device);
  failed.fail(Error(StatusCode::DATA_LOSS, "the disk is gone"));
  EXPECT_EQ(code_of([&] { failed.is_reached(); }), StatusCode::DATA_LOSS);
  EXPECT_EQ(code_of([&] { Fence::wait(std::vector<Fence>{fence, failed}); }), StatusCode::DATA_LOSS);
  EXPECT_TRUE(Fence().is_reached());
  Fence().wait();
  Fence().on_reached([&calls](halyard_status_t) { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST(Modules, AreLookedInto) {
  Program program;
  EXPECT_EQ(view(program.module.info().name), "program");
  EXPECT_EQ(program.module.info().version, 3u);
  EXPECT_EQ(view(program.module.function(0).name), "add");
  EXPECT_EQ(program.module.attribute(0, "iree.abi.declaration").substr(0, 4), "sync");
  EXPECT_EQ(code_of([&] { program.module.function(99); }), StatusCode::OUT_OF_RANGE);
  const Signature signature = program.module.signature(0);
  EXPECT_EQ(signature.argument(1).element_type, static_cast<uint32_t>(ElementType::f32));
  EXPECT_EQ(view(signature.argument(1).name), "y");
  EXPECT_EQ(signature.describe().result_count, 1u);
  EXPECT_EQ(program.context.find("add").signature().result(0).value_kind, uint32_t{HALYARD_VALUE_F32});
  program.module.prepare();
  EXPECT_EQ(program.module.warnings(), "");
  const Bytes bytes = assemble(kProgram, "program.vmasm");
  EXPECT_NE(disassemble(bytes).find("@add"), std::string::npos);
  EXPECT_NE(describe(bytes, HALYARD_DESCRIBE_JSON).find("\"program\""), std::string::npos);
  EXPECT_EQ(view(Module::load(program.instance, bytes).info().name), "program");
  std::string text;
  EXPECT_EQ(code_of([] { assemble("vm.modul @x\n", "mine.vmasm"); }, &text), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(text.find("mine.vmasm:1"), std::string::npos) << text;
}

TEST(Traces, HaveTracksOfTheCallerAndLeaveCallsOut) {
  const Trace trace = Trace::create("");
  const Instance instance = Instance::create({.trace = trace});
  const auto events = [&] { return trace.totals().events; };
  const Trace::Track requests(trace, "requests");
  const uint64_t at_first = events();
  const auto now = Trace::Track::Clock::now();
  requests.span("one", now, now + std::chrono::milliseconds(1));
  EXPECT_GT(events(), at_first);

  const auto bytes = assemble(
      "vm.module @m\nvm.export @f\nvm.func @f() -> (i32) {\n  %i0 = vm.const.i32 1\n  vm.return %i0\n}\n");
  const Context context = Context::create(instance, {.modules = {Module::load(instance, bytes)}});
  const Call call = Call::create(context);
  call.set_traced(false);
  const uint64_t before = events();
  EXPECT_EQ(call.invoke<int32_t>(context.find("f")), 1);
  EXPECT_EQ(events(), before);
  call.set_traced(true);
  EXPECT_EQ(call.invoke<int32_t>(context.find("f")), 1);
  EXPECT_GT(events(), before);
}

TEST(Instances, TellWhatTheyFound) {
  const Trace trace = Trace::create("");
  const Instance instance = Instance::create({.flags = HALYARD_INSTANCE_COUNT_OBJECTS, .trace = trace});
  const auto drivers = instance.drivers();
  const auto is_local = [](const auto& entry) { return std::strcmp(entry.name, "local-sync") == 0; };
  ASSERT_TRUE(std::any_of(drivers.begin(), drivers.end(), is_local));
  EXPECT_FALSE(instance.devices("local-sync").empty());
  EXPECT_FALSE(instance.candidates().empty());
  EXPECT_NE(view(instance.search().entry(0).path), "");
  const Device device = instance.open("local-sync");
  EXPECT_EQ(view(device.describe().driver), "local-sync");
  EXPECT_TRUE(device.query("hal.device", "concurrency"));
  EXPECT_FALSE(device.query("hal.device", "no such key"));
  EXPECT_EQ(device.judge("vmvx-bytecode-fb").fit, uint32_t{HALYARD_FIT_NATIVE});
  EXPECT_EQ(device.sharing_with(device), uint32_t{HALYARD_SHARING_SAME_DRIVER});
  {
    const Trace::Slice slice(trace, "work");
    const Tensor tensor = Tensor::create<float>(device, {1}, {1});
    const auto counts = device.objects();
    EXPECT_TRUE(std::any_of(counts.begin(), counts.end(), [](const auto& count) { return count.live > 0; }));
    device.memory();
    device.trim();
  }
  instance.objects();
  trace.finish();
  EXPECT_GT(trace.totals().phase_ns, 0u);
  const Instance run_here = Instance::create({.flags = HALYARD_INSTANCE_RUN_BY_EMBEDDER});
  EXPECT_EQ(run_here.run(std::chrono::nanoseconds(0)), 0u);
  run_here.interrupt_run();
  int steps = 0;
  probe_driver(drivers[0].library, [&](const char*) { ++steps; });
  EXPECT_GE(steps, 3);
  EXPECT_EQ(code_of([] { Instance::create({.driver_libraries = {"/none.so"}}).open("none"); }),
            StatusCode::NOT_FOUND);
  EXPECT_STREQ(version(), halyard_version());
  EXPECT_STREQ(build().version, version());
  EXPECT_STREQ(sanitizer_name(0), "no sanitizer");
  EXPECT_NE(capability_name(0), nullptr);
  EXPECT_NE(operation_name(1), nullptr);
  const StatusCode compiler = code_of([] { find_compiler(); });
  EXPECT_TRUE(compiler == StatusCode::OK || compiler == StatusCode::NOT_FOUND);
  const StatusCode explained = code_of([] {
    explain_compilation(assemble("vm.module @m\nvm.export @f\nvm.func @f() -> (i32) {\n  %i0 = vm.const.i32 "
                                 "1\n  vm.return %i0\n}\n"),
                        "f");
  });
  EXPECT_TRUE(compiler != StatusCode::OK
                  ? explained == compiler
                  : explained == StatusCode::OK || explained == StatusCode::UNAVAILABLE);
}

// Functions of the program's options live as long as anything that may call them.
TEST(Contexts, KeepTheirCallbacks) {
  const Instance instance = Instance::create();
  auto failed_functions = std::make_shared<std::string>();
  Function check;
  {
    const Module module = Module::from_text(instance, R"(
vm.module @tests
vm.import @check.expect_true cconv "0i_v"
vm.export @check
vm.func @check(%i0: i32) -> () {
  vm.call @check.expect_true(%i0)
  vm.return
}
)");
    ContextOptions options = {.modules = {module}};
    options.expectation = [failed_functions](const halyard_failed_expectation_t& failed) {
      *failed_functions += view(failed.function);
    };
    const Context context = Context::create(instance, options);
    check = context.find("check");
  }
  check.call<>(1);
  EXPECT_EQ(*failed_functions, "");
  check.call<>(0);
  EXPECT_EQ(*failed_functions, "expect_true");
  EXPECT_EQ(failed_functions.use_count(), 2);
  check = Function();
  EXPECT_EQ(failed_functions.use_count(), 1);
}

// A program whose work waits for a fence of the caller; the work outlives everything that keeps the
// callbacks.
TEST(Contexts, AreNotCalledBackByWorkThatOutlivesThem) {
  const Instance instance = Instance::create();
  const Device device = instance.open("local-sync");
  const Module module = Module::from_text(instance, R"(
vm.module @program
vm.dependency @hal 7
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.buffer_view.buffer cconv "0r_r"
vm.import @hal.device.queue.fill cconv "0rIrrrIIIiI_v"
vm.export @fill
vm.func @fill(%r0: !hal.buffer_view, %r1: !hal.fence, %r2: !hal.fence) -> () {
  %i0 = vm.const.i32.zero
  %i1 = vm.const.i32 1
  %i2:3 = vm.const.i64 -1
  %i4:5 = vm.const.i64.zero
  %i6:7 = vm.const.i64 4
  %i8:9 = vm.const.i64 7
  %r3 = vm.call @hal.devices.get(%i0)
  %r4 = vm.call @hal.buffer_view.buffer(%r0)
  vm.call @hal.device.queue.fill(%r3, %i2:3, %r1, %r2, %r4, %i4:5, %i6:7, %i8:9, %i1, %i4:5)
  vm.return
}
)");
  const auto calls = std::make_shared<int>(0);
  ContextOptions options = {.modules = {module}, .devices = {device}, .flags = HALYARD_CONTEXT_TRACE_STEPS};
  options.tensor_pattern = "*";
  options.tensor = [calls](const halyard_traced_tensor_t&) { ++*calls; };
  const Tensor tensor = Tensor::create<int8_t>(device, {4}, {1, 2, 3, 4});
  const auto fill = [&](const Fence& ready) {
    const Fence done = Fence::create(device);
    Context::create(instance, options).find("fill").call<>(tensor, ready, done);
    return done;
  };
  const Fence reached = Fence::create(device);
  reached.signal();
  fill(reached).wait();
  EXPECT_EQ(*calls, 1);

  const Fence ready = Fence::create(device);
  const Fence done = fill(ready);
  options.tensor = nullptr;
  EXPECT_EQ(calls.use_count(), 1);
  ready.signal();
  done.wait();
  EXPECT_EQ(*calls, 1);
  EXPECT_EQ(tensor.read<int8_t>(), std::vector<int8_t>(4, 7));
}

// Whatever keeps a context last, the context is destroyed before its callbacks: its destruction may wait for
// one of them.
TEST(Contexts, AreDestroyedBeforeTheirCallbacks) {
  struct Witness {  // kept by a module of the context
    std::weak_ptr<int> callback;
    bool* callback_was_there;
    Witness(std::weak_ptr<int> callback, bool* was_there)
        : callback(std::move(callback)), callback_was_there(was_there) {}
    Witness(const Witness&) = delete;
    Witness& operator=(const Witness&) = delete;
    ~Witness() { *callback_was_there = !callback.expired(); }
  };
  const Instance instance = Instance::create();
  bool was_there = false;
  std::weak_ptr<int> callback;
  const auto create = [&] {
    const auto kept = std::make_shared<int>(0);
    callback = kept;
    was_there = false;
    NativeModule builder("app");
    builder.add("none", [witness = std::make_shared<Witness>(callback, &was_there)] {});
    ContextOptions options = {.modules = {std::move(builder).create(instance)}};
    options.expectation = [kept](const halyard_failed_expectation_t&) {};
    return Context::create(instance, options);
  };
  const auto expect_order = [&] {
    EXPECT_TRUE(was_there);
    EXPECT_TRUE(callback.expired());
  };
  create();
  expect_order();
  Call::create(create());
  expect_order();
  create().find("none");
  expect_order();
  create().find("none").call<>();
  expect_order();
  Function function = create().find("none");
  function.call<>();
  EXPECT_FALSE(was_there);
  function = Function();
  expect_order();
  Call call = Call::create(create());
  EXPECT_FALSE(was_there);
  call = Call();
  expect_order();
}

// A program that reads the first 4 of the 8 bytes of a parameter.
TEST(Contexts, TellOfDoubts) {
  const std::string path = testing::TempDir() + "/halyard_cpp_doubts.safetensors";
  const std::string header = R"({"w":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  std::ofstream(path, std::ios::binary) << file + header + "abcdefgh";
  const Instance instance = Instance::create();
  const Module module = Module::from_text(instance, R"(
vm.module @doubts
vm.dependency @hal 7
vm.dependency @io_parameters 0
vm.import @hal.devices.get cconv "0i_r"
vm.import @io_parameters.load cconv "0rIrrrIiirrr_r"
vm.rodata[0] = 0000000001000000
vm.rodata[1] = "w"
vm.rodata[2] = 000000000000000000000000000000000400000000000000
vm.export @read
vm.func @read() -> () {
  %i0 = vm.const.i32.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.const.ref.zero
  %r3 = vm.const.ref.rodata 0
  %r4 = vm.const.ref.rodata 1
  %r5 = vm.const.ref.rodata 2
  %i2:3 = vm.const.i64 -1
  %i4 = vm.const.i32 50
  %i5 = vm.const.i32 150998019
  %r6 = vm.call @io_parameters.load(%r0, %i2:3, %r1, %r1, %r1, %i2:3, %i4, %i5, %r3, %r4, %r5)
  vm.return
}
)");
  ContextOptions options = {
      .modules = {module}, .devices = {instance.open("local-sync")}, .parameters = {{"", path}}};
  std::vector<std::string> warnings;
  Context::create(instance, options).find("read").call<>();  // nobody is told
  options.warning = [&](const halyard_warning_t& warning) {
    EXPECT_EQ(warning.struct_size, sizeof warning);
    EXPECT_EQ(view(warning.path), path);
    warnings.emplace_back(view(warning.text));
  };
  const Function read = Context::create(instance, options).find("read");
  read.call<>();
  read.call<>();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("'w' has 8 bytes of type F16 [4], but the program reads only the first 4"),
            std::string::npos)
      << warnings[0];
  std::remove(path.c_str());
}

TEST(Contexts, AreRanks) {
  const std::vector<Channels> ranks = Channels::create_local(2);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1].world().rank, 1u);
  EXPECT_EQ(ranks[1].world().count, 2u);
  ranks[1].set_timeout(milliseconds(100));
  EXPECT_EQ(code_of([&] { ranks[1].import("mine", "MPI_Comm", 1); }), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(code_of([] { Channels::create_local(0); }), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code_of([] { Channels::create("/none/halyard-channel-none.so"); }), StatusCode::NOT_FOUND);
  EXPECT_GE(detect_launch().count, 1u);
  const Instance instance = Instance::create();
  ContextOptions options = {.modules = {Module::from_text(instance, kProgram)},
                            .devices = {instance.open("local-sync")}};
  options.channels = ranks[1];
  EXPECT_EQ(Context::create(instance, options).find("add").call<float>(1.0f, 2.0f), 3.0f);
}

// What a callback throws comes back as the failure of the work.
TEST(Contexts, FailWithWhatCallbacksThrow) {
  const std::string path = testing::TempDir() + "/halyard_cpp_parameters.safetensors";
  std::ofstream(path, std::ios::binary) << std::string("\2\0\0\0\0\0\0\0{}", 10);
  const Instance instance = Instance::create();
  const Module module = Module::from_text(instance, kProgram);
  ContextOptions options = {.modules = {module},
                            .devices = {instance.open("local-sync")},
                            .parameters = {{"", path}},
                            .flags = HALYARD_CONTEXT_PRELOAD_PARAMETERS};
  options.progress = [](uint64_t, uint64_t) { throw Error(StatusCode::ABORTED, "enough"); };
  EXPECT_EQ(code_of([&] { Context::create(instance, options); }), StatusCode::ABORTED);
  options.progress = [](uint64_t, uint64_t) { throw std::runtime_error("broken"); };
  EXPECT_EQ(code_of([&] { Context::create(instance, options); }), StatusCode::UNKNOWN);
  options.progress = nullptr;
  EXPECT_EQ(code_of([&] { Context::create(instance, options); }), StatusCode::OK);
}

}  // namespace
