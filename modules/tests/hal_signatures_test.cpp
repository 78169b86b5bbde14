// Calls every signature of the table: a valid call works on each device; null or an object of another type
// for each ref is refused according to the parameters, and a refused call signals nothing. A signature in the
// table without a call here fails the test.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "hal/queue/wait.h"
#include "kernels.h"
#include "modules/hal_functions.h"
#include "testing.h"
#include "vm/object/list.h"

namespace halyard::modules {
namespace {

// The objects for calls, new for each.
struct World {
  explicit World(const std::string& uri) {
    auto opened = open_device(uri);
    EXPECT_TRUE(opened) << opened.error().text();
    device = *opened;
    hal = std::make_unique<ModuleCaller>(create_hal_module({.devices = {device}}));
    allocator = device->allocator();
    bytes = vm::Buffer::wrap(storage, true, {});
    source = allocate();
    target = allocate();
    view = *hal::BufferView::create(source, std::vector<int64_t>{16}, 0x10000020, 1);
    done = *hal::Fence::create(device);
    reached = *hal::Fence::create(device);
    EXPECT_TRUE(reached->signal());
    file = hal::File::from_memory(storage, hal::kRead | hal::kWrite, nullptr);
    kernels = assembled_kernels();
    format = text_of("vmvx-bytecode-fb");
    executable = hal->object<hal::Executable>("executable.create", "0rIrrr_r",
                                              {device, kAny, format, kernels, nullptr});
    recording = commands(4);
    finished = commands(0);
    slots = commands(4);
    EXPECT_TRUE(slots->fill({nullptr, 1, 0, 4}, 7, 1));
    EXPECT_TRUE(finished->finalize());
    EXPECT_TRUE(slots->finalize());
    name = text_of("scale");
    other = vm::List::create({});
  }
  Ref<hal::Buffer> allocate() const {
    auto made = hal::Buffer::allocate(*device, hal::kAnyQueue, 0x32, 0x3000D03, 64);
    EXPECT_TRUE(made) << made.error().text();
    const std::vector<uint32_t> ones(16, 1);
    EXPECT_TRUE((*made)->write(0, ones.data(), 64));
    return *made;
  }
  Ref<hal::CommandBuffer> commands(int capacity) const {
    return hal->object<hal::CommandBuffer>("command_buffer.create", "0riiIi_r",
                                           {device, 0, 3, kAny, capacity});
  }

  alignas(64) uint8_t storage[128] = {};
  Ref<hal::Device> device;
  std::unique_ptr<ModuleCaller> hal;
  Ref<hal::Allocator> allocator;
  Ref<vm::Buffer> bytes, kernels, format, name;
  Ref<hal::Buffer> source, target;
  Ref<hal::BufferView> view;
  Ref<hal::Fence> done, reached;
  Ref<hal::File> file;
  Ref<hal::Executable> executable;
  Ref<hal::CommandBuffer> recording, finished, slots;
  Ref<vm::List> other;  // of a type that no function takes
};

// The values that a ref argument accepts besides its type.
enum class Takes { only_its_type, null, anything };

struct Given {
  Given(int value) : argument(value) {}
  Given(Entries entries) : argument(std::move(entries)) {}
  template <typename T>
  Given(const Ref<T>& object, Takes takes = Takes::only_its_type)
      : argument(object), ref(true), takes(takes) {}
  Given(std::nullptr_t, Takes takes) : argument(nullptr), ref(true), takes(takes) {}
  Argument argument;
  bool ref = false;
  Takes takes = Takes::only_its_type;
};
template <typename T>
Given optional(const Ref<T>& object) {
  return {object, Takes::null};
}
template <typename T>
Given lenient(const Ref<T>& object) {
  return {object, Takes::anything};
}

struct Call {
  std::function<std::vector<Given>(World&)> arguments;
  Code outcome = Code::OK;
};

// The arguments of queue functions begin alike.
std::vector<Given> queued(World& w, std::vector<Given> rest) {
  std::vector<Given> arguments = {w.device, kAny, lenient(w.reached), lenient(w.done)};
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  return arguments;
}
std::vector<Given> dispatch(World& w, std::vector<Given> workgroups) {
  std::vector<Given> arguments = {w.recording, w.executable, 1};
  arguments.insert(arguments.end(), workgroups.begin(), workgroups.end());
  arguments.insert(arguments.end(), {0, Entries{2, 3}, Entries{0, 0, w.target, 0, 64}});
  return arguments;
}

#define CALL(...) []([[maybe_unused]] World& w) -> std::vector<Given> { return __VA_ARGS__; }
const std::map<std::pair<std::string_view, std::string_view>, Call> kCalls = {
    {{"allocator.select", "0iiICrID_rI"}, {CALL({0x10, 3, 0, Entries{w.device, kAny}})}},
    {{"allocator.allocate", "0rIiiI_r"}, {CALL({w.allocator, kAny, 0x30, 0xC03, 16})}},
    {{"allocator.import", "0riIiirII_r"}, {CALL({w.allocator, 0, kAny, 0x32, 0x3000C03, w.bytes, 0, 64})}},
    {{"buffer.assert", "0rrrIii_v"}, {CALL({w.source, w.name, w.allocator, 64, 2, 3})}},
    {{"buffer.allocation.preserve", "0r_v"}, {CALL({w.source})}},
    {{"buffer.allocation.discard", "0r_i"}, {CALL({w.source})}},
    {{"buffer.allocation.is_terminal", "0r_i"}, {CALL({w.source})}},
    {{"buffer.subspan", "0rII_r"}, {CALL({w.source, 4, 8})}},
    {{"buffer.length", "0r_I"}, {CALL({w.source})}},
    {{"buffer.load", "0rIi_i"}, {CALL({w.source, 4, 4})}},
    {{"buffer.store", "0irIi_v"}, {CALL({5, w.target, 4, 4})}},
    {{"buffer_view.create", "0rIIiiCID_r"}, {CALL({w.source, 0, 64, 0x10000020, 1, Entries{4, 4}})}},
    {{"buffer_view.assert", "0rriiCID_v"}, {CALL({w.view, w.name, 0x10000020, 1, Entries{16}})}},
    {{"buffer_view.buffer", "0r_r"}, {CALL({w.view})}},
    {{"buffer_view.element_type", "0r_i"}, {CALL({w.view})}},
    {{"buffer_view.encoding_type", "0r_i"}, {CALL({w.view})}},
    {{"buffer_view.rank", "0r_i"}, {CALL({w.view})}},
    {{"buffer_view.dim", "0ri_I"}, {CALL({w.view, 0})}},
    {{"buffer_view.trace", "0rCrD_v"}, {CALL({lenient(w.name), Entries{w.view}})}},
    {{"channel.create", "0rIirrii_r"},
     {CALL({w.device, kAny, 0, optional(w.bytes), optional(w.bytes), 0, 1})}},
    {{"channel.create", "0rIIrrii_r"},
     {CALL({w.device, kAny, 0, optional(w.bytes), optional(w.bytes), 0, 1})}},
    {{"channel.split", "0riii_r"},
     {CALL({{nullptr, Takes::only_its_type}, 0, 0, 0}), Code::INVALID_ARGUMENT}},
    {{"channel.split", "0riiI_r"},
     {CALL({{nullptr, Takes::only_its_type}, 0, 0, 0}), Code::INVALID_ARGUMENT}},
    {{"channel.rank_and_count", "0r_ii"}, {CALL({{nullptr, Takes::only_its_type}}), Code::INVALID_ARGUMENT}},
    {{"command_buffer.create", "0riiIi_r"}, {CALL({w.device, 0, 3, kAny, 0})}},
    {{"command_buffer.finalize", "0r_v"}, {CALL({w.recording})}},
    {{"command_buffer.begin_debug_group", "0rr_v"}, {CALL({w.recording, optional(w.name)})}},
    {{"command_buffer.end_debug_group", "0r_v"}, {CALL({w.finished}), Code::FAILED_PRECONDITION}},
    {{"command_buffer.execution_barrier", "0riii_v"}, {CALL({w.recording, 28, 13, 0})}},
    {{"command_buffer.execution_barrier", "0riiI_v"}, {CALL({w.recording, 28, 13, 0})}},
    {{"command_buffer.advise_buffer", "0rrIIIi_v"}, {CALL({w.recording, optional(w.target), 0, 0, 0, 0})}},
    {{"command_buffer.fill_buffer", "0rrIIiii_v"}, {CALL({w.recording, optional(w.target), 0, 8, 0, 7, 4})}},
    {{"command_buffer.fill_buffer", "0rrIIiIiI_v"},
     {CALL({w.recording, optional(w.target), 0, 8, 0, 7, 4, 0})}},
    {{"command_buffer.update_buffer", "0rrIrIIi_v"},
     {CALL({w.recording, w.bytes, 0, optional(w.target), 0, 8, 0})}},
    {{"command_buffer.update_buffer", "0rrIrIIiI_v"},
     {CALL({w.recording, w.bytes, 0, optional(w.target), 0, 8, 0, 0})}},
    {{"command_buffer.copy_buffer", "0riirIrII_v"},
     {CALL({w.recording, 0, 1, optional(w.source), 0, optional(w.target), 0, 8})}},
    {{"command_buffer.copy_buffer", "0riirIrIII_v"},
     {CALL({w.recording, 0, 1, optional(w.source), 0, optional(w.target), 0, 8, 0})}},
    {{"command_buffer.collective", "0rriiiirrIIIII_v"},
     {CALL({w.recording,
            {nullptr, Takes::only_its_type},
            0,
            0,
            0,
            0,
            lenient(w.source),
            lenient(w.target),
            0,
            8,
            0,
            8,
            2}),
      Code::INVALID_ARGUMENT}},
    {{"command_buffer.dispatch", "0rriiiiICiDCiirIID_v"}, {CALL(dispatch(w, {4, 1, 1}))}},
    {{"command_buffer.dispatch", "0rrIiiiICiDCiirIID_v"}, {CALL(dispatch(w, {4, 1, 1}))}},
    {{"command_buffer.dispatch.indirect", "0rriirIICiDCiirIID_v"},
     {CALL(dispatch(w, {0, optional(w.source), 0}))}},
    {{"command_buffer.dispatch.indirect", "0rrIirIICiDCiirIID_v"},
     {CALL(dispatch(w, {0, optional(w.source), 0}))}},
    {{"device.allocator", "0r_r"}, {CALL({w.device})}},
    {{"device.query.i64", "0rrr_iI"}, {CALL({w.device, w.name, w.name})}},
    {{"device.queue.alloca", "0rIrriiiI_r"}, {CALL(queued(w, {0, 0x30, 0xC03, 64}))}},
    {{"device.queue.alloca", "0rIrrIiiII_r"}, {CALL(queued(w, {0, 0x30, 0xC03, 64, 0}))}},
    {{"device.queue.dealloca", "0rIrrr_v"}, {CALL(queued(w, {w.target}))}},
    {{"device.queue.dealloca", "0rIrrrI_v"}, {CALL(queued(w, {w.target, 0}))}},
    {{"device.queue.fill", "0rIrrrIIIiI_v"}, {CALL(queued(w, {w.target, 0, 8, 7, 4, 0}))}},
    {{"device.queue.update", "0rIrrrIrIII_v"}, {CALL(queued(w, {w.bytes, 0, w.target, 0, 8, 0}))}},
    {{"device.queue.copy", "0rIrrrIrIII_v"}, {CALL(queued(w, {w.source, 0, w.target, 0, 8, 0}))}},
    {{"device.queue.read", "0rIrrrIrIIi_v"}, {CALL(queued(w, {w.file, 0, w.target, 0, 8, 0}))}},
    {{"device.queue.read", "0rIrrrIrIII_v"}, {CALL(queued(w, {w.file, 0, w.target, 0, 8, 0}))}},
    {{"device.queue.write", "0rIrrrIrIIi_v"}, {CALL(queued(w, {w.source, 0, w.file, 0, 8, 0}))}},
    {{"device.queue.write", "0rIrrrIrIII_v"}, {CALL(queued(w, {w.source, 0, w.file, 0, 8, 0}))}},
    {{"device.queue.barrier", "0rIrrI_v"}, {CALL(queued(w, {0}))}},
    {{"device.queue.execute", "0rIrrCrD_v"}, {CALL(queued(w, {Entries{w.finished}}))}},
    {{"device.queue.execute", "0rIrrrI_v"}, {CALL(queued(w, {w.finished, 0}))}},
    {{"device.queue.execute.indirect", "0rIrrrCrIID_v"},
     {CALL(queued(w, {w.slots, Entries{nullptr, 0, 0, w.target, 0, 64}}))}},
    {{"device.queue.execute.indirect", "0rIrrrICrIID_v"},
     {CALL(queued(w, {w.slots, 0, Entries{nullptr, 0, 0, w.target, 0, 64}}))}},
    {{"device.queue.flush", "0rI_v"}, {CALL({w.device, kAny})}},
    {{"devices.count", "0v_i"}, {CALL({})}},
    {{"devices.get", "0i_r"}, {CALL({0})}},
    {{"ex.file.from_memory", "0rIirIIi_r"}, {CALL({w.device, kAny, 1, w.bytes, 0, 8, 0})}},
    {{"executable.create", "0rrrr_r"}, {CALL({w.device, w.format, w.kernels, {nullptr, Takes::anything}})}},
    {{"executable.create", "0rIrrr_r"},
     {CALL({w.device, kAny, w.format, w.kernels, {nullptr, Takes::anything}})}},
    {{"executable.lookup.function", "0rr_I"}, {CALL({w.executable, w.name})}},
    {{"fence.create", "0ri_r"}, {CALL({w.device, 0})}},
    {{"fence.create", "0rI_r"}, {CALL({w.device, 0})}},
    {{"fence.join", "0CrD_r"}, {CALL({Entries{w.done, nullptr}})}},
    {{"fence.join", "0ICrD_r"}, {CALL({0, Entries{w.done, nullptr}})}},
    {{"fence.query", "0r_i"}, {CALL({w.reached})}},
    {{"fence.signal", "0r_v"}, {CALL({w.done})}},
    {{"fence.fail", "0ri_v"}, {CALL({w.done, 14})}},
    {{"fence.await", "0iCrD_i"}, {CALL({kAny, Entries{w.reached, nullptr}})}},
    {{"fence.await", "0iICrD_i"}, {CALL({kAny, 0, Entries{w.reached, nullptr}})}},
};
#undef CALL

struct Case {
  std::string device;
  HalSignature signature;
};
void PrintTo(const Case& of, std::ostream* out) {
  *out << of.device << ", " << of.signature.name << " " << of.signature.convention;
}

class HalSignatures : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { ASSERT_OK(open_device(GetParam().device)); }
  const Call* find() const {
    const auto found = kCalls.find({GetParam().signature.name, GetParam().signature.convention});
    return found == kCalls.end() ? nullptr : &found->second;
  }
  // With argument `index` replaced.
  static std::vector<Argument> values(const std::vector<Given>& given, size_t index = SIZE_MAX,
                                      const Argument& instead = 0) {
    std::vector<Argument> arguments;
    for (size_t i = 0; i < given.size(); ++i) arguments.push_back(i == index ? instead : given[i].argument);
    return arguments;
  }
  Status run(World& world, const std::vector<Argument>& arguments) const {
    const HalSignature& signature = GetParam().signature;
    return world.hal->status(signature.name, signature.convention, arguments);
  }
};

TEST_P(HalSignatures, DoesIt) {
  const Call* call = find();
  ASSERT_TRUE(call) << "no call for this signature; add one to kCalls";
  World world(GetParam().device);
  const Status status = run(world, values(call->arguments(world)));
  EXPECT_EQ(name(status.code()), std::string(name(call->outcome))) << status.text();
  if (GetParam().signature.name.starts_with("device.queue.") &&
      GetParam().signature.name != "device.queue.flush") {
    const Status awaited = hal::await(std::vector{world.done.get()}, hal::kWaitForever);
    EXPECT_TRUE(awaited.ok()) << awaited.text();
  }
}

TEST_P(HalSignatures, RefusesNullAndOtherTypes) {
  const Call* call = find();
  ASSERT_TRUE(call);
  const size_t count = call->arguments(*std::make_unique<World>(GetParam().device)).size();
  for (size_t i = 0; i < count; ++i) {
    for (const bool null : {true, false}) {
      World world(GetParam().device);
      const std::vector<Given> given = call->arguments(world);
      if (!given[i].ref || given[i].takes == Takes::anything || (null && given[i].takes == Takes::null))
        continue;
      SCOPED_TRACE(fmt::format("argument {} is {}", i, null ? "null" : "a vm.list"));
      const Argument instead = null ? Argument(nullptr) : Argument(world.other);
      EXPECT_FAILS(INVALID_ARGUMENT, null ? "null" : "expected a ", run(world, values(given, i, instead)));
      EXPECT_EQ(static_cast<int>(world.done->query().code()), kNotReached)
          << "a refused call signals nothing";
      EXPECT_TRUE(world.other->unique()) << "a refused call keeps nothing";
    }
  }
}

// Each entry of a span is checked.
TEST_P(HalSignatures, RefusesOtherTypesInSpans) {
  const Call* call = find();
  ASSERT_TRUE(call);
  const vm::Convention types = *vm::Convention::parse(GetParam().signature.convention);
  for (size_t i = 0; i < types.arguments.size(); ++i) {
    const size_t ref = types.arguments[i].span.find('r');
    if (types.arguments[i].type != 'C' || ref == std::string::npos) continue;
    World world(GetParam().device);
    std::vector<Argument> arguments = values(call->arguments(world));
    arguments[i].entries[ref] = Argument(world.other);
    const Status status = run(world, arguments);
    // Without a sink a trace is not checked.
    if (GetParam().signature.name == "buffer_view.trace") continue;
    EXPECT_FAILS(INVALID_ARGUMENT, "expected a ", status);
    EXPECT_EQ(static_cast<int>(world.done->query().code()), kNotReached);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* device : {"local-sync", "local-task"})
    for (const HalSignature& signature : hal_signatures()) all.push_back({device, signature});
  return all;
}
std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name =
      fmt::format("{}_{}_{}", info.param.device, info.param.signature.name, info.param.signature.convention);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Table, HalSignatures, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace halyard::modules
