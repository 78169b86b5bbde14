// The compiler library and its host: which of them is too old or too new is told before any code is compiled.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "vm/decode/jit_abi.h"
#include "vm/decode/words.h"

namespace halyard::jit {
namespace {

class NegotiateTest : public testing::Test {
 public:
  void SetUp() override {
    library_ = ::dlopen(HALYARD_BUILD_DIR "/lib/halyard/halyard-jit-llvm.so", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    negotiate_ = reinterpret_cast<halyard_jit_negotiate_fn>(::dlsym(library_, "halyard_jit_negotiate"));
    ASSERT_NE(negotiate_, nullptr);
  }
  void TearDown() override { ::dlclose(library_); }

  void expect_refusal(const std::string& part) {
    EXPECT_EQ(negotiate_(&request_, &reply_), 0);
    EXPECT_EQ(reply_.table, nullptr);
    EXPECT_NE(std::string(reply_.refusal).find(part), std::string::npos) << reply_.refusal;
  }

  void* library_ = nullptr;
  halyard_jit_negotiate_fn negotiate_ = nullptr;
  halyard_jit_request_t request_ = {
      .struct_size = sizeof request_, .abi = HALYARD_JIT_ABI, .code_format = vm::kCodeFormat};
  halyard_jit_reply_t reply_ = {.struct_size = sizeof reply_, .table = nullptr, .refusal = {}};
};

TEST_F(NegotiateTest, TheHostOfThisBuildGetsTheTable) {
  ASSERT_EQ(negotiate_(&request_, &reply_), 1);
  ASSERT_NE(reply_.table, nullptr);
  EXPECT_EQ(std::string(reply_.table->compiler).find("LLVM "), 0u) << reply_.table->compiler;
  halyard_jit_stats_t stats = {};
  stats.struct_size = sizeof stats;
  reply_.table->stats(&stats);
  EXPECT_GE(stats.functions, stats.cached);
}

TEST_F(NegotiateTest, OthersGetTheReason) {
  request_.abi = HALYARD_JIT_ABI + 1;
  expect_refusal("another version of the compiler ABI");
  request_.abi = HALYARD_JIT_ABI;
  request_.struct_size -= 1;
  expect_refusal("another version of the compiler ABI");
  request_.struct_size += 1;
  reply_.struct_size -= 1;
  expect_refusal("another version of the compiler ABI");
  reply_.struct_size += 1;
  request_.code_format += 1;
  expect_refusal("its decoded code has another format");
  request_.struct_size += 8;  // a newer host of the same version
  request_.code_format -= 1;
  EXPECT_EQ(negotiate_(&request_, &reply_), 1);
}

TEST_F(NegotiateTest, ReasonsFitTheirPlace) {
  ASSERT_EQ(negotiate_(&request_, &reply_), 1);
  halyard_jit_function_t function = {};
  function.struct_size = sizeof function;
  halyard_jit_host_t host = {};
  host.struct_size = sizeof host;
  halyard_jit_code_t code = {};
  code.struct_size = sizeof code;
  char reason[20] = {};
  EXPECT_EQ(reply_.table->compile(&function, &host, nullptr, &code, reason, sizeof reason), 0);
  EXPECT_STREQ(reason, "it has no instructi");  // truncated, and ended
}

}  // namespace
}  // namespace halyard::jit
