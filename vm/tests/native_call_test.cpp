// Functions in C++: reading arguments and writing results with bind<>, and the effect of a call on the
// caller's registers. Specified by calling-convention.md, section 6, and isa.md, sections 3 and 5.9.

#include "machine_testing.h"

namespace halyard::vm::test {
namespace {

struct Probe {
  int* alive = nullptr;  // live things
  int calls = 0;
  int defer = 0;  // number of deferrals
  std::vector<bool> resumed;
};

Result<std::tuple<double, int64_t, float, int32_t>> reversed(int32_t a, float b, int64_t c, double d) {
  return std::tuple(d, c, b, a);
}
Result<uint32_t> unsigned_sum(uint32_t a, uint64_t b) { return a + static_cast<uint32_t>(b); }
Result<int32_t> alive(Probe& probe) { return *probe.alive; }
Result<Ref<Thing>> make_thing(Probe& probe) { return make<Thing>(probe.alive); }
Result<int32_t> required(Thing& thing) { return thing.unique(); }
Result<int32_t> nullable(Thing* thing) { return thing != nullptr; }
Result<int32_t> lenient(Lenient<Thing> thing) { return static_cast<bool>(thing); }
Result<int32_t> any(Object& object, Object* other) { return &object == other; }
Result<Ref<Object>> same(Object* object) { return Ref<Object>::share(object); }
Result<int64_t> weighted(Probe& probe, int32_t start, Span<Thing*, int64_t, int32_t> items,
                         Span<int32_t> more, int64_t end) {
  ++probe.calls;
  int64_t sum = start;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto [thing, weight, factor] = items[i];
    if (thing) sum += weight * factor;
  }
  for (size_t i = 0; i < more.size(); ++i) sum += std::get<0>(more[i]);
  return sum * 1000 + end;
}
Result<int32_t> refuse(Probe& probe) {
  ++probe.calls;
  return fail(Code::UNAVAILABLE, "not now");
}
Result<int32_t> deferring(Probe& probe, CallContext& call, int32_t value, Thing* thing) {
  ++probe.calls;
  probe.resumed.push_back(call.resumed());
  if (probe.defer > 0) {
    --probe.defer;
    call.defer();
    return -1;
  }
  return value + (thing ? 1 : 0);
}
Result<> deferring_void(Probe& probe, CallContext& call) {
  probe.resumed.push_back(call.resumed());
  if (probe.defer > 0) {
    --probe.defer;
    call.defer();
  }
  return {};
}

static_assert(std::string_view(convention_of<&reversed>) == "0ifIF_FIfi");
static_assert(std::string_view(convention_of<&unsigned_sum>) == "0iI_i");
static_assert(std::string_view(convention_of<&alive>) == "0v_i");
static_assert(std::string_view(convention_of<&any>) == "0rr_i");
static_assert(std::string_view(convention_of<&weighted>) == "0iCrIiDCiDI_I");
static_assert(std::string_view(convention_of<&deferring>) == "0ir_i");
static_assert(std::string_view(convention_of<&deferring_void>) == "0v_v");

#define EXPORT(function) {#function, convention_of<&function>, bind<&function>}

class NativeCalls : public testing::Test {
 protected:
  NativeCalls() {
    probe_.alive = &machine_.alive;
    machine_.add_native("native",
                        {EXPORT(reversed), EXPORT(unsigned_sum), EXPORT(alive), EXPORT(make_thing),
                         EXPORT(required), EXPORT(nullable), EXPORT(lenient), EXPORT(any), EXPORT(same),
                         EXPORT(weighted), EXPORT(refuse), EXPORT(deferring), EXPORT(deferring_void)},
                        &probe_);
  }
  // A module with one exported function f that imports this function.
  void add(const std::string& import, const std::string& function, uint32_t version = 17) {
    const auto exported = ASSERT_VALUE(machine_.context->find("native", import));
    machine_.add(
        fmt::format(
            "vm.module @m\nvm.import @native.{} cconv \"{}\"\nvm.import @native.alive cconv \"0v_i\"\n"
            "vm.export @f\nvm.func @f{}\n}}\n",
            import, exported.function->convention, function),
        version);
  }

  Machine machine_;
  Probe probe_;
};

TEST_F(NativeCalls, ValuesOfEveryType) {
  add("reversed", R"((%i0:1: i64, %i2:3: f64, %i4: i32, %i5: f32) -> (f64, i64, f32, i32) {
    %i6:7, %i8:9, %i10, %i11 = vm.call @native.reversed(%i4, %i5, %i0:1, %i2:3)
    vm.return %i6:7, %i8:9, %i10, %i11)");
  machine_.expect("f", {i64(-5), f64(2.5), i32(-7), f32(1.5)}, {f64(2.5), i64(-5), f32(1.5), i32(-7)});
}

TEST_F(NativeCalls, UnsignedValues) {
  add("unsigned_sum", R"((%i0:1: i64, %i2: i32) -> (i32) {
    %i2 = vm.call @native.unsigned_sum(%i2, %i0:1)
    vm.return %i2)");
  machine_.expect("f", {i64(2), i32(-1)}, {i32(1)});
}

TEST_F(NativeCalls, FromOutside) {
  machine_.expect("native.reversed", {i32(-7), f32(1.5), i64(-5), f64(2.5)},
                  {f64(2.5), i64(-5), f32(1.5), i32(-7)});
  const Variant thing = machine_.thing();
  machine_.expect("native.same", {thing}, {thing});
  EXPECT_TRUE(thing.object()->unique());
  const std::string text = machine_.expect_failure("native.refuse", {}, Code::UNAVAILABLE);
  EXPECT_EQ(text, "UNAVAILABLE; not now; in native function native.refuse; in the call of function 'refuse'");
  // Only modules can pass a variable number of arguments.
  machine_.expect_failure("native.weighted", {i32(1), i64(1)}, Code::INVALID_ARGUMENT);
  probe_.defer = 2;
  machine_.expect("native.deferring", {i32(5), thing}, {i32(6)});
  EXPECT_EQ(probe_.resumed, (std::vector<bool>{false, true, true}));
  EXPECT_TRUE(thing.object()->unique());
}

TEST_F(NativeCalls, RefsAreChecked) {
  const Variant thing = machine_.thing();
  const Variant list = Variant::ref(List::create({}));
  const auto message = [&](const char* name, const Values& arguments) {
    return machine_.expect_failure(name, arguments, Code::INVALID_ARGUMENT);
  };
  EXPECT_TRUE(
      message("native.required", {null()}).starts_with("INVALID_ARGUMENT; expected a ref, found null; "));
  EXPECT_TRUE(message("native.required", {list})
                  .starts_with("INVALID_ARGUMENT; expected a test.thing, found vm.list; "));
  EXPECT_TRUE(message("native.nullable", {list}).starts_with("INVALID_ARGUMENT; expected a "));
  EXPECT_TRUE(
      message("native.any", {null(), thing}).starts_with("INVALID_ARGUMENT; expected a ref, found null; "));
  machine_.expect("native.required", {thing}, {i32(0)});  // the caller has a reference too
  machine_.expect("native.nullable", {thing}, {i32(1)});
  machine_.expect("native.nullable", {null()}, {i32(0)});
  machine_.expect("native.lenient", {thing}, {i32(1)});
  machine_.expect("native.lenient", {list}, {i32(0)});
  machine_.expect("native.lenient", {null()}, {i32(0)});
  machine_.expect("native.any", {thing, thing}, {i32(1)});
  machine_.expect("native.any", {list, null()}, {i32(0)});
}

TEST_F(NativeCalls, Spans) {
  add("weighted",
      R"((%i0:1: i64, %i2:3: i64, %i4: i32, %i5: i32, %r0: !test.thing, %r1: !test.thing) -> (i64, i64, i64) {
    %i6:7 = vm.call.variadic @native.weighted segments[65535, 2, 1, 65535](%i4, %r0, %i0:1, %i4, %r1, %i2:3, %i5, %i5, %i0:1)
    %i8:9 = vm.call.variadic @native.weighted segments[65535, 0, 3, 65535](%i4, %i4, %i5, %i5, %i2:3)
    %i10:11 = vm.call.variadic @native.weighted segments[65535, 0, 0, 65535](%i4, %i0:1)
    vm.return %i6:7, %i8:9, %i10:11)");
  const Variant thing = machine_.thing();
  machine_.expect(
      "f", {i64(100), i64(7), i32(2), i32(3), thing, thing},
      {i64((2 + 200 + 21 + 3) * 1000 + 100), i64((2 + 2 + 3 + 3) * 1000 + 7), i64(2 * 1000 + 100)});
  machine_.expect("f", {i64(100), i64(7), i32(2), i32(3), thing, null()},
                  {i64((2 + 200 + 3) * 1000 + 100), i64((2 + 2 + 3 + 3) * 1000 + 7), i64(2 * 1000 + 100)});
  // Every entry is checked before the function runs.
  probe_.calls = 0;
  const std::string text = machine_.expect_failure(
      "f", {i64(1), i64(2), i32(3), i32(4), thing, Variant::ref(List::create({}))}, Code::INVALID_ARGUMENT);
  EXPECT_EQ(probe_.calls, 0);
  EXPECT_TRUE(text.contains("; in native function native.weighted; called as an import; at m.f+")) << text;
}

// A moved argument is released after the call; bytecode 15 lends it.
TEST_F(NativeCalls, MovedArgumentsAreReleasedAfterwards) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    add("nullable", R"((%r0: !test.thing, %r1: !test.thing) -> (i32, i32, i32) {
      %i0 = vm.call @native.nullable(%R0)
      %i1 = vm.call @native.nullable(%r1)
      %i1 = vm.cmp.nz.ref %r0
      %i2 = vm.cmp.nz.ref %r1
      vm.return %i0, %i1, %i2)",
        version);
    machine_.expect("f", {machine_.thing(), machine_.thing()}, {i32(1), i32(version == 15), i32(1)});
    EXPECT_EQ(machine_.alive, 0);
  }
}

// A result in the register of a moved argument is kept; the old ref is released.
TEST_F(NativeCalls, AResultMayTakeTheArgumentsRegister) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    add("same", R"((%r0: !test.thing) -> (!test.thing) {
      %r0 = vm.call @native.same(%R0)
      vm.return %R0)",
        version);
    const Variant thing = machine_.thing();
    machine_.expect("f", {thing}, {thing});
    EXPECT_TRUE(thing.object()->unique());
  }
}

TEST_F(NativeCalls, ResultsReleaseWhatTheyOverwrite) {
  add("make_thing", R"(() -> (i32, i32, i32) {
    %r0 = vm.call @native.make_thing()
    %i0 = vm.call @native.alive()
    %r0 = vm.call @native.make_thing()
    %r1 = vm.call @native.make_thing()
    %i1 = vm.call @native.alive()
    vm.discard.refs %r0
    %r1 = vm.const.ref.zero
    %i2 = vm.call @native.alive()
    vm.return %i0, %i1, %i2)");
  machine_.expect("f", {}, {i32(1), i32(2), i32(0)});
}

TEST_F(NativeCalls, FailuresAreAnnotatedAndWriteNothing) {
  add("refuse", R"(() -> (i32) {
    %i0 = vm.call @native.refuse()
    vm.return %i0)");
  const std::string text = machine_.expect_failure("f", {}, Code::UNAVAILABLE);
  EXPECT_EQ(text,
            "UNAVAILABLE; not now; in native function native.refuse; called as an import; at "
            "m.f+00000001; "
            "in the call of function 'f'");
}

TEST_F(NativeCalls, YieldableCallsWaitForTheirResults) {
  add("deferring", R"((%i0: i32, %r0: !test.thing) -> (i32, i32) {
    vm.call.yieldable @native.deferring(%i0, %R0) -> ^bb1(%i1)
  ^bb1:
    %i2 = vm.cmp.nz.ref %r0
    vm.return %i1, %i2)");
  probe_.defer = 2;
  const Callable callee = *machine_.find("f");
  Invocation invocation(machine_.context);
  for (int i = 0; i < 2; ++i) {
    const Result<Outcome> outcome =
        i == 0 ? invocation.begin(callee, Values{i32(5), machine_.thing()}) : invocation.resume();
    ASSERT_TRUE(outcome && *outcome == Outcome::yielded);
    EXPECT_EQ(machine_.alive, 1);  // the argument stays until the call has finished
  }
  const Result<Outcome> outcome = invocation.resume();
  ASSERT_TRUE(outcome && *outcome == Outcome::done);
  EXPECT_EQ(machine_.alive, 0);
  Values results(2);
  invocation.take_results(results);
  EXPECT_EQ(results[0].as_i32(), 6);
  EXPECT_EQ(results[1].as_i32(), 0);
  EXPECT_EQ(probe_.resumed, (std::vector<bool>{false, true, true}));
}

TEST_F(NativeCalls, AnInvocationDroppedWhileDeferredReleasesItsArguments) {
  add("deferring", R"((%i0: i32, %r0: !test.thing) -> (i32) {
    vm.call.yieldable @native.deferring(%i0, %R0) -> ^bb1(%i1)
  ^bb1:
    vm.return %i1)");
  probe_.defer = 1;
  {
    Invocation invocation(machine_.context);
    ASSERT_TRUE(invocation.begin(*machine_.find("f"), Values{i32(5), machine_.thing()}));
    EXPECT_EQ(machine_.alive, 1);
  }
  EXPECT_EQ(machine_.alive, 0);
}

TEST_F(NativeCalls, PlainCallsWaitOnlyWithoutResults) {
  add("deferring_void", R"(() -> (i32) {
    %i0 = vm.const.i32 1
    vm.call @native.deferring_void()
    vm.return %i0)");
  probe_.defer = 2;
  machine_.expect("f", {}, {i32(1)});
  EXPECT_EQ(probe_.resumed, (std::vector<bool>{false, true, true}));
  machine_.expect("native.deferring_void", {}, {});

  add("deferring", R"((%i0: i32, %r0: !test.thing) -> (i32) {
    %i0 = vm.call @native.deferring(%i0, %r0)
    vm.return %i0)");
  machine_.expect("f", {i32(5), null()}, {i32(5)});
  probe_.defer = 1;
  machine_.expect_failure("f", {i32(5), null()}, Code::UNIMPLEMENTED);
}

// One name with several signatures: the import's signature selects one.
Result<int32_t> one_argument(int32_t a) { return a; }
Result<int32_t> two_arguments(int32_t a, int32_t b) { return a * b; }

// The list may be longer than the results, because the import determines their number.
TEST_F(NativeCalls, ResultsThatAreListedButNotGiven) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    machine_.add(R"(
vm.module @spare
vm.import @native.deferring_void cconv "0v_v"
vm.import @native.nullable cconv "0r_i"
vm.func @wait(%i0: i32) -> (i32) {
  %i0 = vm.call @native.deferring_void()
  vm.return %i0
}
vm.func @move(%r0: !test.thing) -> (i32, i32) {
  %i0, %r0 = vm.call @native.nullable(%R0)
  %i1 = vm.cmp.nz.ref %r0
  vm.return %i0, %i1
}
)",
                 version);
    // The function has no results, so its caller may wait for it.
    probe_.defer = 2;
    machine_.expect("wait", {i32(7)}, {i32(7)});
    // From 16 on, a moved argument is released after the call; 15 borrows it.
    machine_.expect("move", {machine_.thing()}, {i32(1), i32(version == 15)});
  }
  EXPECT_EQ(machine_.alive, 0);
}

TEST(NativeModules, OverloadsByConvention) {
  Machine machine;
  machine.add_native("native", {{"f", convention_of<&one_argument>, bind<&one_argument>},
                                {"f", convention_of<&two_arguments>, bind<&two_arguments>}});
  for (const bool two : {false, true}) {
    machine.add(fmt::format(
        "vm.module @m\nvm.import @native.f cconv \"0{0}_i\"\nvm.export @g\nvm.func @g(%i0: i32) -> (i32) {{\n"
        "%i0 = vm.call @native.f({1})\nvm.return %i0\n}}\n",
        two ? "ii" : "i", two ? "%i0, %i0" : "%i0"));
    machine.expect("g", {i32(7)}, {i32(two ? 49 : 7)});
  }
}

// A function that is told the export by which it was called.
Status named_number(NativeCall& call) {
  call.values[call.results[0]] = *static_cast<const uint32_t*>(call.function_data);
  return {};
}

TEST(NativeModules, ExportsShareAFunctionWithDataOfTheirOwn) {
  static constexpr uint32_t kSeven = 7;
  static constexpr uint32_t kNine = 9;
  Machine machine;
  machine.add_native("native",
                     {{"seven", "0v_i", &named_number, &kSeven}, {"nine", "0v_i", &named_number, &kNine}});
  machine.add(
      "vm.module @m\nvm.import @native.seven cconv \"0v_i\"\nvm.import @native.nine cconv \"0v_i\"\n"
      "vm.export @f\nvm.func @f() -> (i32, i32) {\n%i0 = vm.call @native.nine()\n"
      "%i1 = vm.call @native.seven()\nvm.return %i0, %i1\n}\n");
  machine.expect("f", {}, {i32(9), i32(7)});
  machine.expect("native.seven", {}, {i32(7)});
  machine.expect("native.nine", {}, {i32(9)});
}

}  // namespace
}  // namespace halyard::vm::test
