// interpret_sampled() counts branches and reads the stop word only sometimes. It must not go on for long once
// its work must stop.
#include <algorithm>

#include "machine_testing.h"
#include "vm/object/buffer.h"

namespace halyard::vm::test {
namespace {

// Each function counts its turns in the buffer, after the call that stops the work.
constexpr const char* kSampledText = R"(
vm.module @program
vm.import @work.stop cconv "0v_v"
vm.import @work.pause cconv "0v_v"
vm.func @fills(%r0: !vm.buffer, %r1: !vm.buffer, %i0: i32) -> () {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %i4:5 = vm.const.i64.zero
  %i6:7 = vm.const.i64 8
  vm.call @work.stop()
  vm.br ^bb1
^bb1:
  vm.buffer.fill.i8 %r1, %i4:5, %i6:7, %i1
  %i2 = vm.add.i32 %i2, %i1
  vm.buffer.store.i32 %i2, %r0, %i4:5
  %i3 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i3, ^bb1, ^bb2
^bb2:
  vm.return
}
vm.func @imports(%r0: !vm.buffer, %r1: !vm.buffer, %i0: i32) -> () {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %i4:5 = vm.const.i64.zero
  vm.call @work.stop()
  vm.br ^bb1
^bb1:
  vm.call @work.pause()
  %i2 = vm.add.i32 %i2, %i1
  vm.buffer.store.i32 %i2, %r0, %i4:5
  %i3 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i3, ^bb1, ^bb2
^bb2:
  vm.return
}
vm.func @turns(%r0: !vm.buffer, %r1: !vm.buffer, %i0: i32) -> () {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %i4:5 = vm.const.i64.zero
  vm.br ^bb1
^bb1:
  vm.buffer.store.i32 %i2, %r0, %i4:5
  %i2 = vm.add.i32 %i2, %i1
  %i3 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i3, ^bb1, ^bb2
^bb2:
  vm.return
}
// Each of the two loops closes after the other one has.
vm.func @nest(%r0: !vm.buffer, %r1: !vm.buffer, %i0: i32) -> () {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %i6 = vm.const.i32 2
  %i4:5 = vm.const.i64.zero
  vm.call @work.stop()
  vm.br ^bb1
^bb1:
  %i7 = vm.const.i32.zero
  vm.br ^bb2
^bb2:
  vm.buffer.store.i32 %i2, %r0, %i4:5
  %i7 = vm.add.i32 %i7, %i1
  %i3 = vm.cmp.lt.i32.s %i7, %i6
  vm.cond_br %i3, ^bb2, ^bb3
^bb3:
  %i2 = vm.add.i32 %i2, %i1
  %i3 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i3, ^bb1, ^bb4
^bb4:
  vm.return
}
)";

constexpr int32_t kTurns = 100'000;

struct Stopping {
  WorkScope scope;
  Invocation* invocation = nullptr;  // interrupted instead, if not null
  void stop() {
    if (invocation)
      invocation->interrupt(Code::CANCELLED);
    else
      scope.stop(Code::CANCELLED);
  }
};

Status stop_work(NativeCall& call) {
  static_cast<Stopping*>(call.state)->stop();
  return {};
}

Status pause_work(NativeCall&) { return {}; }

class SampledStop : public testing::TestWithParam<bool> {
 protected:
  // The turns of two calls by one invocation that fail because they must stop, of the longer one; with a
  // sample each so many branches. The second call begins where the first one was stopped, at a sample.
  int32_t turns_of(const std::string& name, uint32_t branches, bool is_stopped_before = false) {
    const bool interrupts = GetParam();
    Machine machine;
    machine.queue = std::make_shared<CompileQueue>(Sampling{.branches = branches, .hot = UINT32_MAX});
    Stopping stopping;
    machine.add_native(
        "work", {{"stop", "0v_v", &stop_work, nullptr}, {"pause", "0v_v", &pause_work, nullptr}}, &stopping);
    machine.add(kSampledText);
    Invocation invocation(machine.context);
    if (interrupts)
      stopping.invocation = &invocation;
    else
      invocation.set_stop(stopping.scope.stop_word());
    int32_t most = 0;
    for (int calls = 0; calls < 2; ++calls) {
      if (is_stopped_before) {
        invocation.arm();
        stopping.stop();
      }
      const auto counted = *Buffer::allocate(4, 16, 1000);
      const auto filled = *Buffer::allocate(8, 16, 1000);
      Values none;
      const Result<> done = invocation.call(
          *machine.find(name), Values{Variant::ref(counted), Variant::ref(filled), i32(kTurns)}, none);
      EXPECT_FAILS(CANCELLED, interrupts ? "cancelled" : "work on a device was stopped", done)
          << name << " after " << calls << " calls";
      int32_t turns = 0;
      std::memcpy(&turns, counted->data(), sizeof turns);
      most = std::max(most, turns);
    }
    return most;
  }
};

TEST_P(SampledStop, BeforeTheSecondLongInstruction) {
  for (const char* name : {"fills", "imports"}) EXPECT_EQ(turns_of(name, UINT32_MAX), 1) << name;
}

TEST_P(SampledStop, AtTheFirstBranchOfACallThatMustNotBegin) {
  EXPECT_EQ(turns_of("turns", UINT32_MAX, true), 0);
}

TEST_P(SampledStop, AtASampleAtTheLatest) { EXPECT_LE(turns_of("nest", 64), 64); }

INSTANTIATE_TEST_SUITE_P(Words, SampledStop, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "OfTheCall" : "OfOtherWork"; });

}  // namespace
}  // namespace halyard::vm::test
