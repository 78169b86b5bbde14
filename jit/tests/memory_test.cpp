// The memory of compiled code, as the kernel tells it in /proc/self/maps while code is compiled and runs.

#include <atomic>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "program.h"

namespace halyard::vm::test {
namespace {

constexpr std::string_view kEndlessLoop = R"(
vm.module @m
vm.export @f
vm.func @f(%i0:1: i64) -> (i64) {
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 1
  vm.br ^bb1
^bb1:
  %i2:3 = vm.add.i64 %i2:3, %i4:5
  %i6 = vm.cmp.lt.i64.u %i2:3, %i0:1
  vm.cond_br %i6, ^bb1, ^bb2
^bb2:
  vm.return %i2:3
}
)";

TestProgram compiled() {
  TestProgram program(kEndlessLoop, {.verify_eagerly = true, .compiler = *Compiler::find()});
  EXPECT_TRUE(program.is_compiled());
  return program;
}

struct Maps {
  size_t writable_code = 0;  // mappings that may be written to and executed
  size_t nameless_code = 0;  // that may be executed, and are of no file: where compiled code is
  std::set<uintptr_t> code;  // where those begin
};
Maps read_maps() {
  Maps maps;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, name;
    words >> range >> rights >> offset >> device >> inode >> name;
    if (!rights.contains('x')) continue;
    maps.writable_code += rights.contains('w');
    maps.nameless_code += name.empty();
    if (name.empty()) maps.code.insert(std::stoull(range, nullptr, 16));
  }
  return maps;
}

TEST(CompiledMemory, IsNeverWritableAndExecutable) {
  const TestProgram program = compiled();
  Invocation invocation(program.context);
  std::atomic<bool> ended = false;
  std::jthread running([&] {
    const std::array<Variant, 1> arguments = {Variant::i64(-1)};
    std::array<Variant, 1> results;
    EXPECT_FALSE(invocation.call(program.function, arguments, results));
    ended = true;
  });
  std::jthread looking([&](const std::stop_token& done) {
    while (!done.stop_requested()) {
      const Maps maps = read_maps();
      EXPECT_EQ(maps.writable_code, 0u);
      EXPECT_GT(maps.nameless_code, 0u);
    }
  });
  // Meanwhile code comes and goes.
  for (int i = 0; i < 5; ++i) compiled();
  looking.request_stop();
  looking.join();
  while (!ended) {
    invocation.interrupt(Code::CANCELLED);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Callers built with Clang's -fsanitize=function read the 8 bytes before a function. When code began where
// its mapping does, that was an access to invalid memory.
TEST(CompiledMemory, HasBytesBeforeItsFunctions) {
  compiled();
  const Maps before = read_maps();
  std::vector<TestProgram> programs;
  for (int i = 0; i < 3; ++i) programs.push_back(compiled());
  size_t seen = 0;
  for (const uintptr_t begin : read_maps().code) {
    if (before.code.contains(begin)) continue;
    const auto* const bytes = reinterpret_cast<const uint8_t*>(begin);
    for (int i = 0; i < 16; ++i) EXPECT_EQ(bytes[i], 0) << i;
    EXPECT_NE(bytes[16], 0);  // the function
    ++seen;
  }
  EXPECT_GT(seen, 0u);
}

TEST(CompiledMemory, GoesWithItsModule) {
  compiled();  // what the compiler keeps for itself is there now
  const size_t before = read_maps().nameless_code;
  {
    std::vector<TestProgram> programs;
    for (int i = 0; i < 20; ++i) programs.push_back(compiled());
    EXPECT_GT(read_maps().nameless_code, before);
  }
  EXPECT_LE(read_maps().nameless_code, before);
}

}  // namespace
}  // namespace halyard::vm::test
