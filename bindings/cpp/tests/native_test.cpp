// Native modules of C++ functions: conventions from types, tensors, failures, lifetimes.
#include <cmath>
#include <memory>
#include <stdexcept>

#include "program.h"

namespace {

using namespace halyard;

constexpr const char* kCaller = R"(
vm.module @caller
vm.import @app.hypot cconv "0FF_F"
vm.import @app.split cconv "0I_ii"
vm.import @app.count cconv "0v_v"
vm.import @app.sum cconv "0rf_f"
vm.import @app.twice cconv "0r_r"
vm.import @app.fail cconv "0i_v"
vm.export @hypot
vm.export @split
vm.export @count
vm.export @sum
vm.export @twice
vm.export @fail
vm.func @hypot(%i0:1: f64, %i2:3: f64) -> (f64) {
  %i0:1 = vm.call @app.hypot(%i0:1, %i2:3)
  vm.return %i0:1
}
vm.func @split(%i0:1: i64) -> (i32, i32) {
  %i2, %i3 = vm.call @app.split(%i0:1)
  vm.return %i2, %i3
}
vm.func @count() -> () {
  vm.call @app.count()
  vm.return
}
vm.func @sum(%r0: !vm.ref<?>, %i0: f32) -> (f32) {
  %i0 = vm.call @app.sum(%r0, %i0)
  vm.return %i0
}
vm.func @twice(%r0: !vm.ref<?>) -> (!vm.ref<?>) {
  %r0 = vm.call @app.twice(%r0)
  vm.return %R0
}
vm.func @fail(%i0: i32) -> () {
  vm.call @app.fail(%i0)
  vm.return
}
)";

double plain_hypot(double x, double y) { return std::hypot(x, y); }

TEST(NativeModules, CallFunctionsOfTheProgram) {
  const Instance instance = Instance::create();
  auto calls = std::make_shared<int>(0);
  Context context;
  {
    auto builder = NativeModule("app", 2);
    builder.add("hypot", plain_hypot);
    builder.add("split", [](int64_t number) {
      return std::tuple(static_cast<int32_t>(number >> 32), static_cast<int32_t>(number));
    });
    builder.add("count", [calls] { ++*calls; });
    builder.add("sum", [](const Tensor& tensor, float start) {
      for (float element : tensor.read<float>()) start += element;
      return start;
    });
    // NOLINTNEXTLINE(performance-unnecessary-value-param): such functions are taken, too
    builder.add("twice", [](Tensor tensor) {
      std::vector<float> elements = tensor.read<float>();
      for (float& element : elements) element *= 2;
      return Tensor::create<float>(Device(), tensor.shape(), elements);
    });
    builder.add("fail", [](int32_t how) {
      if (how == 1) throw Error(StatusCode::OUT_OF_RANGE, "no such thing");
      if (how == 2) throw std::runtime_error("broken");
      if (how == 3) throw 3;
    });
    const Module app = std::move(builder).create(instance);
    EXPECT_EQ(app.info().version, 2u);
    EXPECT_EQ(view(app.function(1).convention), "0I_ii");
    context = Context::create(instance, {.modules = {app, Module::from_text(instance, kCaller)}});
  }
  EXPECT_EQ(context.find("hypot").call<double>(3.0, 4.0), 5.0);
  EXPECT_EQ((context.find("split").call<int32_t, int32_t>((int64_t{7} << 32) + 5)), std::tuple(7, 5));
  context.find("count").call<>();
  EXPECT_EQ(*calls, 1);
  const Tensor tensor = Tensor::create<float>(Device(), {3}, {1, 2, 3});
  EXPECT_EQ(context.find("sum").call<float>(tensor, 0.5f), 6.5f);
  EXPECT_EQ(context.find("twice").call<Tensor>(tensor).read<float>(), (std::vector<float>{2, 4, 6}));
  std::string text;
  EXPECT_EQ(code_of([&] { context.find("sum").call<float>(nullptr, 1.0f); }), StatusCode::INVALID_ARGUMENT);
  context.find("fail").call<>(0);
  EXPECT_EQ(code_of([&] { context.find("fail").call<>(1); }, &text), StatusCode::OUT_OF_RANGE);
  EXPECT_NE(text.find("no such thing"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { context.find("fail").call<>(2); }, &text), StatusCode::UNKNOWN);
  EXPECT_NE(text.find("broken"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { context.find("fail").call<>(3); }), StatusCode::UNKNOWN);
  EXPECT_EQ(calls.use_count(), 2);
  context = Context();
  EXPECT_EQ(calls.use_count(), 1);
}

TEST(NativeModules, ThatAreWrongLeaveNothing) {
  const Instance instance = Instance::create();
  auto kept = std::make_shared<int>(0);
  EXPECT_EQ(code_of([&] { NativeModule("app").add("bad name", [kept] {}).create(instance); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(module_services().struct_size, sizeof(halyard_module_services_t));
}

}  // namespace
