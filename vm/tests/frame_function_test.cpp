// Frame functions: their view of a call, spans, and calls that take several attempts.
#include <algorithm>
#include <thread>

#include "native_definition.h"
#include "vm/native/module_services.h"
#include "vm/object/value.h"

namespace halyard::vm::test {
namespace {

// The recorded call.
struct Probe {
  uint32_t size = 0;
  std::vector<uint32_t> kinds;
  std::vector<uint32_t> result_kinds;
  std::vector<uint32_t> spans;
  std::vector<uint32_t> resumed;
  std::vector<const void*> invocations;
  int defer = 0;  // number of deferrals
  halyard_wakeup_t wakeup = nullptr;
  Code second_wait = Code::OK;
  bool change_of_mind = false;
  const halyard_module_services_t* services = nullptr;
  uint32_t argument_count = 0;
  uint32_t export_index = UINT32_MAX;
  halyard_value_t answer[3] = {};  // values for `answer`
};

Probe& look(void* state, const halyard_module_call_t* call) {
  Probe& probe = *static_cast<Probe*>(state);
  probe.size = call->struct_size;
  probe.services = call->services;
  probe.export_index = call->export_index;
  probe.argument_count = call->argument_count;
  probe.kinds.clear();
  for (uint32_t i = 0; i < call->argument_count; ++i) probe.kinds.push_back(call->arguments[i].kind);
  probe.result_kinds.clear();
  for (uint32_t i = 0; i < call->result_count; ++i) probe.result_kinds.push_back(call->results[i].kind);
  probe.spans.assign(call->spans, call->spans + call->span_count);
  probe.resumed.push_back(call->resumed);
  probe.invocations.push_back(call->invocation);
  return probe;
}

halyard_status_t reversed(void* state, halyard_module_call_t* call) {
  look(state, call);
  for (uint32_t i = 0; i < call->result_count; ++i) {
    call->results[i] = call->arguments[call->argument_count - 1 - i];
    if (call->results[i].kind == HALYARD_VALUE_OBJECT) call->services->object_retain(call->results[i].object);
  }
  return nullptr;
}

halyard_status_t weighted(void* state, halyard_module_call_t* call) {
  look(state, call);
  const halyard_value_t* value = call->arguments;
  int64_t sum = (value++)->i32;
  for (uint32_t n = 0; n < call->spans[0]; ++n, value += 3)
    if (value[0].object) sum += value[1].i64 * value[2].i32;
  for (uint32_t n = 0; n < call->spans[1]; ++n) sum += (value++)->i32;
  call->results[0].i64 = sum * 1000 + value->i64;
  return nullptr;
}

halyard_status_t refuse(void*, halyard_module_call_t* call) {
  call->results[0].i32 = 7;
  return call->services->status_create(HALYARD_UNAVAILABLE, "not now");
}

halyard_status_t answer(void* state, halyard_module_call_t* call) {
  std::ranges::copy(static_cast<Probe*>(state)->answer, call->results);
  return nullptr;
}

halyard_status_t patient(void* state, halyard_module_call_t* call) {
  Probe& probe = look(state, call);
  if (probe.defer-- > 0) {
    call->deferred = 1;
    return nullptr;
  }
  call->results[0].i32 = call->arguments[0].i32 + 1;
  return nullptr;
}

// Waits once, until the test wakes it.
halyard_status_t sleepy(void* state, halyard_module_call_t* call) {
  Probe& probe = look(state, call);
  const halyard_module_services_t& services = *call->services;
  if (probe.defer-- > 0) {
    if (halyard_status_t status = services.call_wait(call, &probe.wakeup)) return status;
    halyard_wakeup_t second = nullptr;
    probe.second_wait = Status::adopt(services.call_wait(call, &second)).code();
    if (probe.change_of_mind) call->deferred = 0;
  }
  call->results[0].i32 = call->arguments[0].i32 + 1;
  return nullptr;
}

class FrameFunctions : public testing::Test {
 protected:
  FrameFunctions()
      : definition_({frame("reversed", "0iIfFr_rFfIi", reversed),
                     frame("weighted", "0iCrIiDCiDI_I", weighted), frame("refuse", "0v_i", refuse),
                     frame("patient", "0i_i", patient), frame("sleepy", "0i_i", sleepy),
                     frame("answer", "0v_irf", answer)}) {
    definition_.user = &probe_;
    add_module(machine_, definition_);
  }
  Machine machine_;
  Probe probe_;
  Definition definition_;
};

TEST_F(FrameFunctions, ValuesOfEveryKind) {
  const Variant thing = machine_.thing();
  machine_.expect("native.reversed", {i32(-7), i64(INT64_C(1) << 40), f32(1.5), f64(2.5), thing},
                  {thing, f64(2.5), f32(1.5), i64(INT64_C(1) << 40), i32(-7)});
  EXPECT_TRUE(thing.object()->unique());
  EXPECT_EQ(probe_.size, sizeof(halyard_module_call_t));
  EXPECT_EQ(probe_.services, &module_services());
  EXPECT_EQ(probe_.kinds, (std::vector<uint32_t>{HALYARD_VALUE_I32, HALYARD_VALUE_I64, HALYARD_VALUE_F32,
                                                 HALYARD_VALUE_F64, HALYARD_VALUE_OBJECT}));
  EXPECT_EQ(probe_.result_kinds,
            (std::vector<uint32_t>{HALYARD_VALUE_OBJECT, HALYARD_VALUE_F64, HALYARD_VALUE_F32,
                                   HALYARD_VALUE_I64, HALYARD_VALUE_I32}));
  EXPECT_TRUE(probe_.spans.empty());
  EXPECT_EQ(probe_.export_index, 0U);
  machine_.expect("native.reversed", {i32(0), i64(0), f32(0), f64(0), null()},
                  {null(), f64(0), f32(0), i64(0), i32(0)});
  EXPECT_EQ(probe_.kinds.back(), static_cast<uint32_t>(HALYARD_VALUE_NULL));
}

TEST_F(FrameFunctions, Spans) {
  machine_.add(R"(
vm.module @m
vm.import @native.weighted cconv "0iCrIiDCiDI_I"
vm.func @f(%i0:1: i64, %i2:3: i64, %i4: i32, %i5: i32, %r0: !test.thing, %r1: !test.thing) -> (i64, i64, i64) {
  %i6:7 = vm.call.variadic @native.weighted segments[65535, 2, 1, 65535](%i4, %r0, %i0:1, %i4, %r1, %i2:3, %i5, %i5, %i0:1)
  %i8:9 = vm.call.variadic @native.weighted segments[65535, 0, 3, 65535](%i4, %i4, %i5, %i5, %i2:3)
  %i10:11 = vm.call.variadic @native.weighted segments[65535, 0, 0, 65535](%i4, %i0:1)
  vm.return %i6:7, %i8:9, %i10:11
}
)");
  const Variant thing = machine_.thing();
  machine_.expect(
      "f", {i64(100), i64(7), i32(2), i32(3), thing, thing},
      {i64((2 + 200 + 21 + 3) * 1000 + 100), i64((2 + 2 + 3 + 3) * 1000 + 7), i64(2 * 1000 + 100)});
  EXPECT_EQ(probe_.export_index, 1U);
  EXPECT_EQ(probe_.spans, (std::vector<uint32_t>{0, 0}));
  EXPECT_EQ(probe_.argument_count, 2u);
  machine_.expect("f", {i64(100), i64(7), i32(2), i32(3), thing, null()},
                  {i64((2 + 200 + 3) * 1000 + 100), i64((2 + 2 + 3 + 3) * 1000 + 7), i64(2 * 1000 + 100)});
  machine_.expect_failure("native.weighted", {i32(1), i64(1)}, Code::INVALID_ARGUMENT);
}

// More values than the storage on the C stack.
TEST_F(FrameFunctions, LongSpans) {
  constexpr int kCount = 3000;
  std::string arguments = "%i0";
  for (int i = 0; i < kCount; ++i) arguments += ", %i1";
  machine_.add(
      fmt::format("vm.module @m\nvm.import @native.weighted cconv \"0iCrIiDCiDI_I\"\nvm.export @f\n"
                  "vm.func @f(%i0: i32, %i1: i32, %i2:3: i64) -> (i64) {{\n"
                  "%i4:5 = vm.call.variadic @native.weighted segments[65535, 0, {}, 65535]({}, %i2:3)\n"
                  "vm.return %i4:5\n}}\n",
                  kCount, arguments));
  machine_.expect("f", {i32(1), i32(2), i64(3)}, {i64((1 + 2 * kCount) * 1000 + 3)});
  EXPECT_EQ(probe_.spans, (std::vector<uint32_t>{0, kCount}));
}

TEST_F(FrameFunctions, FailuresWriteNothing) {
  EXPECT_EQ(machine_.expect_failure("native.refuse", {}, Code::UNAVAILABLE),
            "UNAVAILABLE; not now; in native function native.refuse; in the call of function 'refuse'");
}

// Results are checked like the embedder's arguments: another kind is accepted only without loss.
TEST_F(FrameFunctions, ResultsOfOtherKinds) {
  const Variant thing = machine_.thing();
  auto& [number, object, real] = probe_.answer;
  const auto give_thing = [&] { object = to_value(thing); };  // another reference
  number = {.kind = HALYARD_VALUE_F64, .reserved = 0, .f64 = -3};
  real = {.kind = HALYARD_VALUE_I64, .reserved = 0, .i64 = 1 << 20};
  give_thing();
  machine_.expect("native.answer", {}, {i32(-3), thing, f32(1 << 20)});

  const auto refused = [&](std::string_view expected) {
    const std::string text = machine_.expect_failure("native.answer", {}, Code::INVALID_ARGUMENT);
    EXPECT_TRUE(text.find(expected) != std::string::npos && text.find("native.answer") != std::string::npos)
        << text;
    EXPECT_TRUE(thing.object()->unique());  // the other results are released
  };
  give_thing();
  number.f64 = 2.5;
  refused("result 0 must be an i32, found f64 2.5, which it cannot hold exactly");
  give_thing();
  number = {.kind = HALYARD_VALUE_I64, .reserved = 0, .i64 = 5000000000};
  refused("found i64 5000000000");
  give_thing();
  number = to_value(thing);
  refused("result 0 must be an i32, found a test.thing");
  give_thing();
  number = {.kind = HALYARD_VALUE_I32, .reserved = 1, .i32 = 1};
  refused("result 0 has 0x1 in the field `reserved`");
  number = {.kind = 77, .reserved = 0, .i32 = 1};
  give_thing();
  refused("found a value of kind 77, which does not exist");
  number = {.kind = HALYARD_VALUE_I32, .reserved = 0, .i32 = 1};
  object = {.kind = HALYARD_VALUE_I64, .reserved = 0, .i64 = 8};  // not an address
  refused("result 1 must be an object or null, found i64 8");
  object = {.kind = HALYARD_VALUE_NULL, .reserved = 0, .i64 = 8};
  refused("result 1 is of kind HALYARD_VALUE_NULL, but has an object");
  object = {.kind = HALYARD_VALUE_NULL, .reserved = 0, .i64 = 0};
  machine_.expect("native.answer", {}, {i32(1), null(), f32(1 << 20)});
}

TEST_F(FrameFunctions, DeferredUntilTheInvocationIsResumed) {
  machine_.add(R"(
vm.module @m
vm.import @native.patient cconv "0i_i"
vm.func @f(%i0: i32) -> (i32) {
  vm.call.yieldable @native.patient(%i0) -> ^bb1(%i0)
^bb1:
  vm.return %i0
}
)");
  probe_.defer = 2;
  const Callable callee = *machine_.find("f");
  Invocation invocation(machine_.context);
  Result<Outcome> outcome = invocation.begin(callee, Values{i32(5)});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(outcome && *outcome == Outcome::yielded);
    outcome = invocation.resume();
  }
  ASSERT_TRUE(outcome && *outcome == Outcome::done);
  Values results(1);
  invocation.take_results(results);
  EXPECT_EQ(results[0].as_i32(), 6);
  EXPECT_EQ(probe_.resumed, (std::vector<uint32_t>{0, 1, 1}));
  EXPECT_EQ(probe_.invocations[0], probe_.invocations[2]);
  EXPECT_NE(probe_.invocations[0], nullptr);
  probe_.defer = 1;
  machine_.expect("native.patient", {i32(1)}, {i32(2)});  // from outside
}

constexpr const char* kSleeper = R"(
vm.module @m
vm.import @native.sleepy cconv "0i_i"
vm.func @f(%i0: i32) -> (i32) {
  vm.call.yieldable @native.sleepy(%i0) -> ^bb1(%i0)
^bb1:
  vm.return %i0
}
vm.func @g(%i0: i32) -> (i32) {
  %i0 = vm.call @native.sleepy(%i0)
  vm.return %i0
}
)";

TEST_F(FrameFunctions, AWaitEndsWhenItIsWoken) {
  machine_.add(kSleeper);
  probe_.defer = 1;
  const Callable callee = *machine_.find("f");
  Invocation invocation(machine_.context);
  Result<Outcome> outcome = invocation.begin(callee, Values{i32(5)});
  ASSERT_TRUE(outcome && *outcome == Outcome::waiting);
  EXPECT_EQ(probe_.second_wait, Code::FAILED_PRECONDITION);
  EXPECT_EQ(invocation.resume().error().code(), Code::FAILED_PRECONDITION);
  std::thread([this] { module_services().wakeup_wake(probe_.wakeup); }).join();
  outcome = invocation.resume();
  ASSERT_TRUE(outcome && *outcome == Outcome::done);
  Values results(1);
  invocation.take_results(results);
  EXPECT_EQ(results[0].as_i32(), 6);
  EXPECT_EQ(probe_.resumed, (std::vector<uint32_t>{0, 1}));
  module_services().wakeup_wake(probe_.wakeup);  // long after the end of the call
  module_services().wakeup_release(probe_.wakeup);
}

TEST_F(FrameFunctions, AWaitThatIsNotTakenUpIsForgotten) {
  machine_.add(kSleeper);
  probe_.defer = 1;
  probe_.change_of_mind = true;
  machine_.expect("m.f", {i32(5)}, {i32(6)});
  module_services().wakeup_release(probe_.wakeup);
  probe_.defer = 1;
  probe_.change_of_mind = false;
  machine_.expect_failure("m.g", {i32(5)}, Code::FAILED_PRECONDITION, "call.yieldable");
}

}  // namespace
}  // namespace halyard::vm::test
