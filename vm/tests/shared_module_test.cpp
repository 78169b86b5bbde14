// Loads native modules from files: all reasons for rejecting a file, and their messages. The libraries are
// those of tests/modules.
#include "vm/native/shared_module.h"

#include <sys/stat.h>

#include <filesystem>

#include "fixtures.h"
#include "native_definition.h"

namespace halyard::vm::test {
namespace {

std::string library(const std::string& name) {
  return std::string(HALYARD_TEST_MODULES) + "/lib" + name + ".so";
}

Result<Ref<NativeModule>> open(const std::string& path) {
  TypeRegistry types;
  return load_shared_module(path, "", types);
}

std::string fine_bytes() { return file_text(library("fine")); }

TEST(SharedModule, IsAModuleLikeAnyOther) {
  Machine machine;
  auto module = ASSERT_VALUE(load_shared_module(library("fine"), "", machine.types));
  EXPECT_EQ(module->name(), "faulty");
  EXPECT_EQ(module->kind(), ModuleKind::native);
  ASSERT_TRUE(machine.context->add(module));
  machine.expect("faulty.one", {}, {i32(1)});
  machine.add(
      "vm.module @m\nvm.import @faulty.one cconv \"0v_i\"\nvm.export @f\nvm.func @f() -> (i32) {\n"
      "%i0 = vm.call @faulty.one()\nvm.return %i0\n}\n");
  machine.expect("f", {}, {i32(1)});
}

TEST(SharedModule, MayBeLoadedAgainAndFromARelativePath) {
  auto first = open(library("fine"));
  auto second = open(std::filesystem::relative(library("fine")).string());
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->get(), second->get());
}

// These libraries abort the process when they are loaded.
TEST(SharedModule, RefusedByTheNoteWithoutRunningAnything) {
  EXPECT_FAILS(NOT_FOUND, "is not a Halyard native module", open(library("noteless")));
  EXPECT_FAILS(NOT_FOUND, "HALYARD_MODULE (halyard/module.h)", open(library("noteless")));
  EXPECT_FAILS(INCOMPATIBLE,
               "supports module ABI 0..1, this Halyard supports 1; version 0 marks an unfinished",
               open(library("zero")));
  EXPECT_FAILS(INCOMPATIBLE, "supports module ABI 2..3, this Halyard supports 1", open(library("future")));
  EXPECT_FAILS(INCOMPATIBLE, "or a newer Halyard", open(library("future")));
  EXPECT_FAILS(INVALID_ARGUMENT, "is malformed (name 'faulty', ABI 3..1)", open(library("backwards")));
  EXPECT_FAILS(INVALID_ARGUMENT, "is malformed (name 'a.b'", open(library("misnamed")));
  EXPECT_FAILS(INCOMPATIBLE, "was built with MemorySanitizer", open(library("instrumented")));
}

TEST(SharedModule, SaysWhichStepFailed) {
  EXPECT_FAILS(UNAVAILABLE, "function_that_is_nowhere", open(library("unresolved")));
  EXPECT_FAILS(INCOMPATIBLE, "does not export halyard_module_negotiate", open(library("symbolless")));
  EXPECT_FAILS(INCOMPATIBLE, "refuses this host, which supports module ABI 1: only on Sundays",
               open(library("refusing")));
  EXPECT_FAILS(INCOMPATIBLE, "gave no definition", open(library("empty_handed")));
  EXPECT_FAILS(INCOMPATIBLE, "chose module ABI 7; expected 1", open(library("liar")));
  EXPECT_FAILS(INCOMPATIBLE, "version 0 marks an unfinished", open(library("unfinished")));
  EXPECT_FAILS(INCOMPATIBLE, "set struct_size to sizeof(halyard_module_definition_t)",
               open(library("short")));
  EXPECT_FAILS(INCOMPATIBLE, "the definition has the name 'faulty', the note 'other'",
               open(library("renamed")));
  for (const char* name : {"zero", "unresolved", "symbolless", "refusing", "empty_handed", "liar", "short"}) {
    const auto module = open(library(name));
    ASSERT_FALSE(module) << name;
    EXPECT_NE(module.error().text().find(library(name)), std::string::npos) << module.error().text();
  }
}

TEST(SharedModule, FilesThatAreNoLibraries) {
  const TemporaryFolder folder;
  EXPECT_FAILS(INVALID_ARGUMENT, "", open(""));
  EXPECT_FAILS(NOT_FOUND, (folder / "none.so").string(), open(folder / "none.so"));
  EXPECT_FAILS(INVALID_ARGUMENT, "is not a file; expected a Halyard native module", open(folder.path()));
  EXPECT_FAILS(INVALID_ARGUMENT, "no ELF file", open(folder.write("empty.so", "")));
  EXPECT_FAILS(INVALID_ARGUMENT, "no ELF file", open(folder.write("text.so", "vm.module @m")));
  const std::string pipe = folder / "pipe.so";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FAILS(INVALID_ARGUMENT, "is not a file", open(pipe));
}

// A file truncated before the end of its mapped part is rejected; mapping it would kill the process.
TEST(SharedModule, CutShort) {
  const TemporaryFolder folder;
  const std::string bytes = fine_bytes();
  size_t size = 0;
  for (; size < bytes.size(); size += 509) {
    // Each file has its own name, because loaded files stay mapped.
    const std::string path = folder.write(fmt::format("cut{}.so", size), bytes.substr(0, size));
    auto module = open(path);
    if (module) break;  // only unmapped sections are truncated
    EXPECT_EQ(module.error().code(), Code::INVALID_ARGUMENT) << size << ": " << module.error().text();
  }
  EXPECT_GT(size, 8192u);
}

// A driver is not a native module, and the message names its kind.
TEST(SharedModule, PluginsOfAnotherKind) {
  std::string bytes = fine_bytes();
  const std::string record = {8, 0, 0, 0, sizeof(halyard_module_note_t), 0, 0, 0, HALYARD_NOTE_TYPE_MODULE};
  const size_t at = bytes.find(record);
  ASSERT_NE(at, std::string::npos);
  const TemporaryFolder folder;
  bytes[at + 8] = HALYARD_NOTE_TYPE_DRIVER;
  EXPECT_FAILS(INVALID_ARGUMENT, "is a Halyard driver; expected a native module",
               open(folder.write("driver.so", bytes)));
  bytes[at + 8] = 99;
  EXPECT_FAILS(INCOMPATIBLE, "a note of type 99, this Halyard supports type 2",
               open(folder.write("later.so", bytes)));
}

}  // namespace
}  // namespace halyard::vm::test
