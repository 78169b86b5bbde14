// Functions that become native code: as the options of an instance say, and with the same results.
#include <gtest/gtest.h>

#include <chrono>
#include <iterator>
#include <string_view>

#include "halyard/halyard.h"

namespace {

// 0 + 1 + ... + 999
constexpr std::string_view kText =
    "vm.module @m\n"
    "vm.export @sum\n"
    "vm.func @sum() -> (i32) {\n"
    "  %i0 = vm.const.i32.zero\n"
    "  %i1 = vm.const.i32.zero\n"
    "  %i2 = vm.const.i32 1\n"
    "  %i3 = vm.const.i32 1000\n"
    "  vm.br ^bb1\n"
    "^bb1:\n"
    "  %i1 = vm.add.i32 %i1, %i0\n"
    "  %i0 = vm.add.i32 %i0, %i2\n"
    "  %i4 = vm.cmp.lt.i32.s %i0, %i3\n"
    "  vm.cond_br %i4, ^bb1, ^bb2\n"
    "^bb2:\n"
    "  vm.return %i1\n"
    "}\n";

halyard_status_code_t create(uint32_t flags, halyard_instance_t* instance) {
  halyard_instance_options_t options = {
      .struct_size = sizeof options,
      .flags = flags | HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS};
  halyard_status_t status = halyard_instance_create(&options, instance);
  const halyard_status_code_t code = halyard_status_code(status);
  halyard_status_release(status);
  return code;
}

bool has_compiler() {
  halyard_status_t status = halyard_compiler_find(nullptr, nullptr);
  const bool found = !status;
  halyard_status_release(status);
  return found;
}

halyard_compiler_stats_t stats() {
  halyard_compiler_stats_t stats = {.struct_size = sizeof stats};
  EXPECT_EQ(halyard_compiler_stats(&stats), nullptr);
  return stats;
}

// 0.1 * (0 + 1 + ... + 99999) in f32, whose bits depend on the order of the sum
constexpr std::string_view kFloats =
    "vm.module @m\n"
    "vm.type f32\n"
    "vm.export @sum\n"
    "vm.func @sum() -> (f32) {\n"
    "  .requires ext_f32\n"
    "  %i0 = vm.const.f32.zero\n"
    "  %i1 = vm.const.i32.zero\n"
    "  %i2 = vm.const.i32 1\n"
    "  %i3 = vm.const.i32 100000\n"
    "  %i6 = vm.const.f32 0.1\n"
    "  vm.br ^bb1\n"
    "^bb1:\n"
    "  %i5 = vm.cast.si32.f32 %i1\n"
    "  %i5 = vm.mul.f32 %i5, %i6\n"
    "  %i0 = vm.add.f32 %i0, %i5\n"
    "  %i1 = vm.add.i32 %i1, %i2\n"
    "  %i4 = vm.cmp.lt.i32.s %i1, %i3\n"
    "  vm.cond_br %i4, ^bb1, ^bb2\n"
    "^bb2:\n"
    "  vm.return %i0\n"
    "}\n";

// Calls @sum of the module so many times, and checks each result.
template <typename Check>
void call(halyard_instance_t instance, std::string_view text, int times, Check&& check) {
  void* bytes = nullptr;
  size_t size = 0;
  halyard_module_t module = nullptr;
  halyard_context_t context = nullptr;
  halyard_function_t function = nullptr;
  halyard_call_t call = nullptr;
  halyard_context_options_t options = {.struct_size = sizeof options, .modules = &module, .module_count = 1};
  ASSERT_EQ(halyard_assemble(text.data(), text.size(), nullptr, &bytes, &size), nullptr);
  ASSERT_EQ(halyard_module_load_memory(instance, bytes, size, 0, &module), nullptr);
  ASSERT_EQ(halyard_context_create(instance, &options, &context), nullptr);
  ASSERT_EQ(halyard_context_find(context, nullptr, "sum", &function), nullptr);
  ASSERT_EQ(halyard_call_create(context, &call), nullptr);
  for (int i = 0; i < times; ++i) {
    halyard_value_t result = {};
    ASSERT_EQ(halyard_call_invoke(call, function, nullptr, 0, &result, 1), nullptr);
    ASSERT_NO_FATAL_FAILURE(check(result));
  }
  halyard_release(call);
  halyard_release(function);
  halyard_release(context);
  halyard_release(module);
  halyard_free(bytes);
}

void sum(halyard_instance_t instance, int times) {
  call(instance, kText, times, [](const halyard_value_t& result) { ASSERT_EQ(result.i32, 499500); });
}

TEST(InstanceJitTest, IsOffUnlessWanted) {
  halyard_instance_t instance = nullptr;
  ASSERT_EQ(create(0, &instance), HALYARD_OK);
  const uint64_t before = stats().functions;
  sum(instance, 500);
  EXPECT_EQ(stats().functions, before);
  size_t compiling = 1;
  EXPECT_EQ(halyard_instance_compiling(instance, &compiling), nullptr);
  EXPECT_EQ(compiling, 0u);
  halyard_release(instance);
}

TEST(InstanceJitTest, Always) {
  halyard_instance_t instance = nullptr;
  if (!has_compiler()) {
    EXPECT_EQ(create(HALYARD_INSTANCE_JIT_ALWAYS, &instance), HALYARD_NOT_FOUND);
    GTEST_SKIP() << "this build has no compiler";
  }
  ASSERT_EQ(create(HALYARD_INSTANCE_JIT_ALWAYS, &instance), HALYARD_OK);
  const halyard_compiler_stats_t before = stats();
  sum(instance, 1);
  EXPECT_EQ(stats().functions, before.functions + 1);
  EXPECT_GT(stats().compile_ns, before.compile_ns);
  EXPECT_GT(stats().object_bytes, before.object_bytes);
  EXPECT_EQ(stats().cached, before.cached);
  halyard_release(instance);
}

TEST(InstanceJitTest, WhatIsHot) {
  halyard_instance_t instance = nullptr;
  ASSERT_EQ(create(HALYARD_INSTANCE_JIT_AUTO, &instance), HALYARD_OK);
  const uint64_t before = stats().functions;
  sum(instance, 1);
  EXPECT_EQ(stats().functions, before);
  // It is asked for after some 100 ms of calls of one module, and done when a thread has come to it.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(has_compiler() ? 300 : 0);
  do {
    sum(instance, 100'000);
  } while (stats().functions == before && std::chrono::steady_clock::now() < end);
  size_t compiling = 1;
  while (compiling > 0 && std::chrono::steady_clock::now() < end)
    ASSERT_EQ(halyard_instance_compiling(instance, &compiling), nullptr);
  EXPECT_TRUE(compiling == 0 || !has_compiler());
  halyard_release(instance);
  EXPECT_EQ(stats().functions > before, has_compiler());
}

TEST(InstanceJitTest, FastMathReordersSums) {
  if (!has_compiler()) GTEST_SKIP() << "this build has no compiler";
  float sums[3] = {};
  const uint32_t ways[] = {0, HALYARD_INSTANCE_JIT_ALWAYS,
                           HALYARD_INSTANCE_JIT_ALWAYS | HALYARD_INSTANCE_JIT_FAST_MATH};
  for (size_t i = 0; i < std::size(ways); ++i) {
    halyard_instance_t instance = nullptr;
    ASSERT_EQ(create(ways[i], &instance), HALYARD_OK);
    call(instance, kFloats, 1, [&](const halyard_value_t& result) {
      ASSERT_EQ(result.kind, HALYARD_VALUE_F32);
      sums[i] = result.f32;
    });
    halyard_release(instance);
  }
  EXPECT_EQ(sums[1], sums[0]);
  EXPECT_NE(sums[2], sums[0]);
  EXPECT_NEAR(sums[2], 499'995'000.0f, 5'000.0f);
}

TEST(InstanceJitTest, NotBoth) {
  halyard_instance_t instance = nullptr;
  EXPECT_EQ(create(HALYARD_INSTANCE_JIT_ALWAYS | HALYARD_INSTANCE_JIT_AUTO, &instance),
            HALYARD_INVALID_ARGUMENT);
}

}  // namespace
