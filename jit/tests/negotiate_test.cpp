// The compiler library and its host: which of them is too old or too new is told before any code is compiled.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

#include "fixtures.h"
#include "vm/compile/jit_explain.h"
#include "vm/decode/jit_abi.h"
#include "vm/decode/words.h"

namespace halyard::jit {
namespace {

class NegotiateTest : public testing::Test {
 public:
  void SetUp() override {
    // Beside this program, as the compiler itself is looked for.
    const auto own = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
    library_ = ::dlopen((own / "lib" / "halyard" / "halyard-jit-llvm.so").c_str(), RTLD_NOW | RTLD_LOCAL);
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

// The front finds the code generator beside itself, and says what is missing.
TEST_F(NegotiateTest, WithoutItsCodeGeneratorTheReasonIsGiven) {
  const TemporaryFolder folder;
  const std::string path = folder / "halyard-jit-llvm.so";
  std::filesystem::copy_file(HALYARD_BUILD_DIR "/lib/halyard/halyard-jit-llvm.so", path);
  void* const alone = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(alone, nullptr) << ::dlerror();
  const auto negotiate = reinterpret_cast<halyard_jit_negotiate_fn>(::dlsym(alone, "halyard_jit_negotiate"));
  const auto explain = reinterpret_cast<halyard_jit_explain_fn>(::dlsym(alone, "halyard_jit_explain"));
  ASSERT_NE(explain, nullptr);
  ASSERT_EQ(negotiate(&request_, &reply_), 1);
  std::array<vm::Word, 2> words = {};
  words[0].op = static_cast<uint16_t>(vm::DecodedOp::enter_compiled);
  words[1].op = static_cast<uint16_t>(vm::DecodedOp::return_none);
  const halyard_jit_layout_t layout = {};
  halyard_jit_function_t function = {};
  function.struct_size = sizeof function;
  function.name = "f";
  function.words = words.data();
  function.word_count = words.size();
  function.entry_count = 1;
  function.layout = &layout;
  halyard_jit_host_t host = {};
  host.struct_size = sizeof host;
  halyard_jit_code_t code = {};
  code.struct_size = sizeof code;
  // With a folder for compiled code as well: an unknown code generator keeps nothing.
  const std::string cache = folder / "cache";
  for (const char* kept : {static_cast<const char*>(nullptr), cache.c_str()}) {
    char reason[256] = {};
    EXPECT_EQ(reply_.table->compile(&function, &host, kept, &code, reason, sizeof reason), 0);
    EXPECT_NE(std::string(reason).find("halyard-jit-llvm-codegen.so"), std::string::npos) << reason;
  }
  EXPECT_FALSE(std::filesystem::exists(cache));
  halyard_jit_explanation_t explanation = {};
  explanation.struct_size = sizeof explanation;
  char reason[256] = {};
  EXPECT_EQ(explain(&function, &explanation, reason, sizeof reason), 0);
  EXPECT_NE(std::string(reason).find("halyard-jit-llvm-codegen.so"), std::string::npos) << reason;
  ::dlclose(alone);
}

}  // namespace
}  // namespace halyard::jit
