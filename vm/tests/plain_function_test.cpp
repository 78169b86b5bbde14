// Plain C functions through libffi: arguments and results of every type, in every position, from programs and
// from outside. halyard/module.h defines how a convention maps to C parameters.
#include <cmath>

#include "native_definition.h"
#include "vm/native/ffi_call.h"
#include "vm/native/native_registers.h"
#include "vm/object/list.h"
#include "vm/object/value.h"

namespace halyard::vm::test {
namespace {

int32_t add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
int64_t negate(int64_t a) { return -a; }
float half(float a) { return a / 2; }
double twice(double a) { return a * 2; }

TEST(PlainFunctions, OneResultIsTheReturnValue) {
  NativeMachine machine({plain("add", "0ii_i", add), plain("negate", "0I_I", negate),
                         plain("half", "0f_f", half), plain("twice", "0F_F", twice),
                         plain("hypot", "0FF_F", static_cast<double (*)(double, double)>(std::hypot))});
  machine.expect("native.add", {i32(-7), i32(3)}, {i32(-4)});
  machine.expect("native.add", {i32(INT32_MAX), i32(1)}, {i32(INT32_MIN)});
  machine.expect("native.negate", {i64(INT64_C(1) << 40)}, {i64(-(INT64_C(1) << 40))});
  machine.expect("native.half", {f32(3)}, {f32(1.5)});
  machine.expect("native.twice", {f64(0.1)}, {f64(0.2)});
  machine.expect("native.hypot", {f64(3), f64(4)}, {f64(5)});
}

int calls = 0;
void nothing() { ++calls; }
int32_t answer() { return 42; }

TEST(PlainFunctions, NoArgumentsAndNoResults) {
  NativeMachine machine({plain("nothing", "0v_v", nothing), plain("also_nothing", "0", nothing),
                         plain("answer", "0v_i", answer)});
  calls = 0;
  machine.expect("native.nothing", {}, {});
  machine.expect("native.also_nothing", {}, {});
  EXPECT_EQ(calls, 2);
  machine.expect("native.answer", {}, {i32(42)});
}

// More of each kind than fit in registers, so that the rest is passed on the C stack.
struct Mixed {
  int32_t i[5];
  int64_t l[5];
  float f[6];
  double d[6];
};
Mixed seen;
double mixed(int32_t i0, int64_t l0, float f0, double d0, int32_t i1, int64_t l1, float f1, double d1,
             int32_t i2, int64_t l2, float f2, double d2, int32_t i3, int64_t l3, float f3, double d3,
             int32_t i4, int64_t l4, float f4, double d4, float f5, double d5) {
  seen = {{i0, i1, i2, i3, i4}, {l0, l1, l2, l3, l4}, {f0, f1, f2, f3, f4, f5}, {d0, d1, d2, d3, d4, d5}};
  return d5;
}

TEST(PlainFunctions, ArgumentsThatGoOverTheStack) {
  NativeMachine machine({plain("mixed", "0iIfFiIfFiIfFiIfFiIfFfF_F", mixed)});
  Values values;
  for (int n = 0; n < 5; ++n) {
    values.push_back(i32(-n - 1));
    values.push_back(i64((INT64_C(1) << 33) + n));
    values.push_back(f32(static_cast<float>(n) + 0.5f));
    values.push_back(f64(n - 0.25));
  }
  values.push_back(f32(5.5));
  values.push_back(f64(1e100));
  machine.expect("native.mixed", values, {f64(1e100)});
  for (int n = 0; n < 5; ++n) {
    EXPECT_EQ(seen.i[n], -n - 1);
    EXPECT_EQ(seen.l[n], (INT64_C(1) << 33) + n);
    EXPECT_EQ(seen.f[n], static_cast<float>(n) + 0.5f);
    EXPECT_EQ(seen.d[n], n - 0.25);
  }
  EXPECT_EQ(seen.f[5], 5.5f);
}

void split(double value, double* whole, float* rest, int32_t* sign, int64_t* bits) {
  *whole = std::trunc(value);
  *rest = static_cast<float>(value - *whole);
  *sign = value < 0 ? -1 : 1;
  *bits = std::bit_cast<int64_t>(value);
}
void silent(int32_t, int32_t*, int64_t*) {}

TEST(PlainFunctions, SeveralResultsGoThroughPointers) {
  NativeMachine machine({plain("split", "0F_FfiI", split), plain("silent", "0i_iI", silent)});
  machine.add(R"(
vm.module @m
vm.import @native.split cconv "0F_FfiI"
vm.func @f(%i0:1: f64) -> (i64, i32, f32, f64) {
  %i0:1, %i8, %i3, %i6:7 = vm.call @native.split(%i0:1)
  vm.return %i6:7, %i3, %i8, %i0:1
}
)");
  machine.expect("f", {f64(-2.5)}, {i64(std::bit_cast<int64_t>(-2.5)), i32(-1), f32(-0.5), f64(-2)});
  machine.expect("native.silent", {i32(9)}, {i32(0), i64(0)});  // unwritten results are zero
}

halyard_status_t checked(const halyard_module_services_t* host, void* state, int32_t value, int32_t* result) {
  *result = value + *static_cast<int32_t*>(state);
  if (value < 0) return host->status_create(HALYARD_OUT_OF_RANGE, "negative; expected 0 or more");
  return nullptr;
}
halyard_status_t only_checked(const halyard_module_services_t* host, int32_t value) {
  return value ? host->status_create(HALYARD_ABORTED, "not zero") : nullptr;
}
int32_t from_state(void* state) { return *static_cast<int32_t*>(state); }

TEST(PlainFunctions, StateHostAndStatus) {
  Machine machine;
  int32_t hundred = 100;
  Definition definition(
      {plain("checked", "0i_i", checked, HALYARD_PLAIN_HOST | HALYARD_PLAIN_STATE | HALYARD_PLAIN_STATUS),
       plain("only_checked", "0i_v", only_checked, HALYARD_PLAIN_HOST | HALYARD_PLAIN_STATUS),
       plain("from_state", "0v_i", from_state, HALYARD_PLAIN_STATE)});
  definition.user = &hundred;  // no create_state: `user` is the state
  add_module(machine, definition);
  machine.expect("native.checked", {i32(5)}, {i32(105)});
  machine.expect("native.only_checked", {i32(0)}, {});
  machine.expect("native.from_state", {}, {i32(100)});
  const std::string text = machine.expect_failure("native.checked", {i32(-1)}, Code::OUT_OF_RANGE);
  EXPECT_EQ(text,
            "OUT_OF_RANGE; negative; expected 0 or more; in native function native.checked; "
            "in the call of function 'checked'");
  machine.expect_failure("native.only_checked", {i32(1)}, Code::ABORTED);
  // A failure leaves the caller's registers unchanged.
  machine.add(R"(
vm.module @m
vm.import @native.checked cconv "0i_i"
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.call @native.checked(%i0)
  vm.return %i0
}
)");
  machine.expect("f", {i32(1)}, {i32(101)});
  machine.expect_failure("f", {i32(-1)}, Code::OUT_OF_RANGE);
}

// ---- Objects

halyard_object_t same(halyard_object_t object) {
  retain(from_handle(object));
  return object;
}
int32_t is_null(halyard_object_t object) { return object == nullptr; }
halyard_object_t none() { return nullptr; }
halyard_status_t swap(halyard_object_t a, halyard_object_t b, halyard_object_t* first,
                      halyard_object_t* second) {
  *first = same(b);
  *second = same(a);
  return nullptr;
}

class PlainObjects : public testing::Test {
 protected:
  PlainObjects()
      : definition_({plain("same", "0r_r", same), plain("is_null", "0r_i", is_null),
                     plain("none", "0v_r", none), plain("swap", "0rr_rr", swap, HALYARD_PLAIN_STATUS)}) {
    add_module(machine_, definition_);
  }
  Machine machine_;
  Definition definition_;
};

TEST_F(PlainObjects, AreBorrowedAndGiven) {
  const Variant thing = machine_.thing();
  machine_.expect("native.same", {thing}, {thing});
  EXPECT_TRUE(thing.object()->unique());
  machine_.expect("native.is_null", {thing}, {i32(0)});
  machine_.expect("native.is_null", {null()}, {i32(1)});
  machine_.expect("native.none", {}, {null()});
  const Variant other = machine_.thing();
  machine_.expect("native.swap", {thing, other}, {other, thing});
  EXPECT_TRUE(thing.object()->unique() && other.object()->unique());
  EXPECT_EQ(machine_.alive, 2);
}

TEST_F(PlainObjects, ResultsReleaseWhatTheyOverwrite) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    machine_.add(R"(
vm.module @m
vm.import @native.swap cconv "0rr_rr"
vm.import @native.none cconv "0v_r"
vm.func @f(%r0: !test.thing, %r1: !test.thing) -> (!test.thing) {
  %r0, %r1 = vm.call @native.swap(%R0, %R1)
  %r1 = vm.call @native.none()
  vm.return %R0
}
)",
                 version);
    const Variant first = machine_.thing();
    const Variant second = machine_.thing();
    machine_.expect("f", {first, second}, {second});
    EXPECT_TRUE(first.object()->unique() && second.object()->unique());
  }
  EXPECT_EQ(machine_.alive, 0);
}

// ---- Limits

template <size_t kIndex, typename T>
using Same = T;  // a parameter for each index

template <size_t... kIndex>
auto sum_of(std::index_sequence<kIndex...>) {
  return +[](Same<kIndex, int32_t>... values) { return (values + ...); };
}
template <size_t... kIndex>
auto fill_all(std::index_sequence<kIndex...>) {
  return +[](Same<kIndex, int64_t*>... results) {
    int64_t next = 0;
    ((*results = next++), ...);
  };
}

TEST(PlainFunctions, AsManyAsThereMayBe) {
  const auto sum = sum_of(std::make_index_sequence<kMaxNativeArguments>());
  const auto fill = fill_all(std::make_index_sequence<kMaxNativeResults>());
  const std::string many_arguments = "0" + std::string(kMaxNativeArguments, 'i') + "_i";
  const std::string many_results = "0v_" + std::string(kMaxNativeResults, 'I');
  NativeMachine machine(
      {plain("sum", many_arguments.c_str(), sum), plain("fill", many_results.c_str(), fill)});
  Values arguments;
  Values results;
  for (int n = 0; n < 256; ++n) {
    arguments.push_back(i32(n));
    results.push_back(i64(n));
  }
  machine.expect("native.sum", arguments, {i32(255 * 256 / 2)});
  machine.expect("native.fill", {}, results);
}

// ---- The same function through libffi and through the typed wrapper

Result<double> weighted(int32_t a, float b, int64_t c, double d) {
  return static_cast<double>(a) * b + static_cast<double>(c) * d;
}
double weighted_in_c(int32_t a, float b, int64_t c, double d) { return *weighted(a, b, c, d); }

TEST(PlainFunctions, AgreeWithTheTypedWrapper) {
  NativeMachine machine({plain("weighted", "0ifIF_F", weighted_in_c)});
  machine.add_native("typed", {{"weighted", convention_of<&weighted>, bind<&weighted>}});
  machine.add(R"(
vm.module @m
vm.import @typed.weighted cconv "0ifIF_F"
vm.import @native.weighted cconv "0ifIF_F"
vm.func @f(%i0:1: i64, %i2:3: f64, %i4: i32, %i5: f32) -> (f64, f64) {
  %i6:7 = vm.call @typed.weighted(%i4, %i5, %i0:1, %i2:3)
  %i8:9 = vm.call @native.weighted(%i4, %i5, %i0:1, %i2:3)
  vm.return %i6:7, %i8:9
}
)");
  uint64_t random = 88172645463325252;
  for (int i = 0; i < 200; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const auto a = static_cast<int32_t>(random);
    const auto b = static_cast<float>(static_cast<int32_t>(random >> 20));
    const auto c = static_cast<int64_t>(random >> 11);
    const auto d = static_cast<double>(static_cast<int64_t>(random)) / 7;
    const Variant expected = f64(*weighted(a, b, c, d));
    machine.expect("f", {i64(c), f64(d), i32(a), f32(b)}, {expected, expected});
  }
}

}  // namespace
}  // namespace halyard::vm::test
