// Who runs an instance's event loop: a thread of Halyard's, the embedder, or the embedder's io_context. Seen
// by the time limit of a call that never ends by itself.
#include <dirent.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/version.hpp>
#include <string>
#include <thread>

#include "halyard/halyard.h"

namespace {

constexpr std::string_view kEndless =
    "vm.module @endless version 0\n"
    "vm.export @spin\n"
    "vm.func @spin() -> () {\n"
    "  vm.br ^bb1\n"
    "^bb1:\n"
    "  vm.br ^bb1\n"
    "^bb2:\n"
    "  vm.return\n"
    "}\n";
constexpr uint64_t kLimitNs = 20'000'000;
constexpr int64_t kLongNs = 60'000'000'000;

int thread_count() {
  int count = 0;
  if (DIR* folder = ::opendir("/proc/self/task")) {
    while (const dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.';
    ::closedir(folder);
  }
  return count;
}

std::string text_of(halyard_status_t status) {
  char* text = halyard_status_text(status);
  std::string copy = text;
  halyard_free(text);
  return copy;
}

halyard_status_t make_instance(halyard_instance_options_t options, halyard_instance_t* instance) {
  options.struct_size = sizeof options;
  options.flags |= HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS;
  return halyard_instance_create(&options, instance);
}

// The code of a call of @spin in a context with the limit; `code` is written at the end.
void spin(halyard_instance_t instance, halyard_status_code_t& code) {
  void* bytes = nullptr;
  size_t size = 0;
  halyard_module_t module = nullptr;
  halyard_context_t context = nullptr;
  halyard_function_t function = nullptr;
  halyard_call_t call = nullptr;
  halyard_context_options_t options = {
      .struct_size = sizeof options, .modules = &module, .module_count = 1, .max_time_ns = kLimitNs};
  ASSERT_EQ(halyard_assemble(kEndless.data(), kEndless.size(), nullptr, &bytes, &size), nullptr);
  ASSERT_EQ(halyard_module_load_memory(instance, bytes, size, 0, &module), nullptr);
  ASSERT_EQ(halyard_context_create(instance, &options, &context), nullptr);
  ASSERT_EQ(halyard_context_find(context, nullptr, "spin", &function), nullptr);
  ASSERT_EQ(halyard_call_create(context, &call), nullptr);
  halyard_status_t status = halyard_call_invoke(call, function, nullptr, 0, nullptr, 0);
  code = halyard_status_code(status);
  halyard_status_release(status);
  halyard_release(call);
  halyard_release(function);
  halyard_release(context);
  halyard_release(module);
  halyard_free(bytes);
}

// ThreadSanitizer starts a thread of its own with the first one of a process.
void start_a_sanitizers_thread() {
  std::thread([] {}).join();
}

TEST(InstanceLoopTest, ItsThreadStartsWithTheFirstTimeLimit) {
  start_a_sanitizers_thread();
  const int before = thread_count();
  halyard_instance_t instance = nullptr;
  ASSERT_EQ(make_instance({}, &instance), nullptr);
  EXPECT_EQ(thread_count(), before);
  halyard_status_code_t code = HALYARD_OK;
  spin(instance, code);
  EXPECT_EQ(code, HALYARD_DEADLINE_EXCEEDED);
  EXPECT_EQ(thread_count(), before + 1);
  spin(instance, code);
  EXPECT_EQ(thread_count(), before + 1);  // of the instance, not of the context
  halyard_status_t status = halyard_instance_run(instance, 0, nullptr);
  EXPECT_EQ(halyard_status_code(status), HALYARD_FAILED_PRECONDITION);
  EXPECT_NE(text_of(status).find("HALYARD_INSTANCE_RUN_BY_EMBEDDER"), std::string::npos);
  halyard_status_release(status);
  halyard_release(instance);
  EXPECT_EQ(thread_count(), before);
}

TEST(InstanceLoopTest, TheEmbedderRunsIt) {
  halyard_instance_options_t options = {.flags = HALYARD_INSTANCE_RUN_BY_EMBEDDER};
  halyard_instance_t instance = nullptr;
  ASSERT_EQ(make_instance(options, &instance), nullptr);
  size_t ran = 1;
  EXPECT_EQ(halyard_instance_run(instance, 0, &ran), nullptr);
  EXPECT_EQ(ran, 0u);
  start_a_sanitizers_thread();
  const int before = thread_count();
  int during = 0;
  halyard_status_code_t code = HALYARD_OK;
  std::thread caller([&] { spin(instance, code); });
  EXPECT_EQ(halyard_instance_run(instance, kLongNs, &ran), nullptr);
  during = thread_count();
  EXPECT_EQ(ran, 1u);
  caller.join();
  EXPECT_EQ(code, HALYARD_DEADLINE_EXCEEDED);
  EXPECT_LE(during, before + 1);  // the caller

  std::thread runner([&] { EXPECT_EQ(halyard_instance_run(instance, -1, &ran), nullptr); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::atomic<bool> over = false;
  std::thread interrupter([&] {
    while (!over) halyard_instance_interrupt_run(instance);
  });
  runner.join();
  over = true;
  interrupter.join();
  halyard_release(instance);
}

TEST(InstanceLoopTest, TheEmbeddersContextRunsIt) {
  boost::asio::io_context context;
  halyard_instance_options_t options = {.asio_context = &context, .asio_version = BOOST_ASIO_VERSION};
  halyard_instance_t instance = nullptr;
  ASSERT_EQ(make_instance(options, &instance), nullptr);
  auto guard = boost::asio::make_work_guard(context);
  std::thread runner([&] { context.run(); });
  const int before = thread_count();
  halyard_status_code_t code = HALYARD_OK;
  spin(instance, code);
  EXPECT_EQ(code, HALYARD_DEADLINE_EXCEEDED);
  EXPECT_EQ(thread_count(), before);
  guard.reset();
  runner.join();
  halyard_release(instance);
}

TEST(InstanceLoopTest, OptionsThatDoNotFit) {
  boost::asio::io_context context;
  halyard_instance_options_t options = {.asio_context = &context, .asio_version = BOOST_ASIO_VERSION + 100};
  halyard_instance_t instance = nullptr;
  halyard_status_t status = make_instance(options, &instance);
  EXPECT_EQ(halyard_status_code(status), HALYARD_FAILED_PRECONDITION);
  EXPECT_NE(text_of(status).find(std::to_string(BOOST_ASIO_VERSION)), std::string::npos);
  halyard_status_release(status);
  options.asio_version = BOOST_ASIO_VERSION;
  options.flags = HALYARD_INSTANCE_RUN_BY_EMBEDDER;
  status = make_instance(options, &instance);
  EXPECT_EQ(halyard_status_code(status), HALYARD_INVALID_ARGUMENT);
  halyard_status_release(status);
  EXPECT_EQ(instance, nullptr);
}

}  // namespace
