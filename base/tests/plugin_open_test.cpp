// Opening libraries: what is none, and what lacks the function.
#include <gtest/gtest.h>

#include "base/plugin.h"
#include "fixtures.h"
#include "status_testing.h"

namespace halyard {
namespace {

constexpr PluginKind kKindToOpen = {
    "driver", "driver ABI", 1, 8, "NOTE_MACRO", "halyard_no_such_function", "EXPORT_MACRO"};

TEST(PluginOpen, WhatIsNoLibrarySaysWhy) {
  const TemporaryFolder folder;
  const std::string path = folder.write("text.so", "no library");
  EXPECT_FAILS(UNAVAILABLE, "cannot load driver '" + path + "'", open_plugin(path, kKindToOpen));
}

TEST(PluginOpen, ALibraryWithoutTheFunctionIsNone) {
  EXPECT_FAILS(INCOMPATIBLE,
               "does not export halyard_no_such_function; expected a function marked EXPORT_MACRO",
               open_plugin("libm.so.6", kKindToOpen));
  PluginKind other = kKindToOpen;
  other.negotiate_symbol = "cos";
  EXPECT_NE(ASSERT_VALUE(open_plugin("libm.so.6", other)), nullptr);
}

TEST(PluginOpen, TheOwnFolderIsThatOfTheProgram) {
  EXPECT_EQ(own_folder(), std::filesystem::canonical("/proc/self/exe").parent_path());
  EXPECT_EQ(own_folder(), own_folder());
}

TEST(PluginOpen, APathInAFolderThatIsGoneIsNone) {
  const std::filesystem::path before = std::filesystem::current_path();
  {
    const TemporaryFolder folder;
    std::filesystem::current_path(folder.path());
  }
  const Result<std::string> path = plugin_path("b.so", kKindToOpen);
  std::filesystem::current_path(before);
  EXPECT_FAILS(INVALID_ARGUMENT, "'b.so' is not the path of a driver", path);
}

TEST(PluginNoteOfAFile, IsReadFromIt) {
  const TemporaryFolder folder;
  EXPECT_FAILS(INVALID_ARGUMENT, "is not a shared library",
               read_plugin_note(folder.write("text.so", "no library"), kKindToOpen));
}

}  // namespace
}  // namespace halyard
