// The flags that only vm-check has.
#pragma once

#include "common/flags.h"

namespace halyard::tools::flag {

// ---- Tests

inline constexpr List test_module = {
    "module", "FILE",
    "A module with tests (.vmfb, .vmasm), like a FILE without a flag. May be "
    "repeated: each module's tests run with only that module.",
    "--module=tests.vmfb"};
inline constexpr List import_from = {
    "import", "FILE",
    "A module from which modules with tests may import (.vmfb, .vmasm, or a native module, .so). May be "
    "repeated: modules are loaded in order, and later ones may import from earlier ones.",
    "--import=library.vmfb"};
inline constexpr Text filter = {
    "filter", "PATTERNS",
    "Runs only tests whose names, MODULE.TEST, match a pattern. '*' and '?' are wildcards, ':' separates "
    "patterns, and patterns after a '-' exclude tests.",
    "--filter='*.add*:*.mul*-*slow*'"};
inline constexpr Toggle list = {
    "list", "Lists the selected tests and exits; as JSON with --json. Opens no device.", "--list"};
inline constexpr Toggle expect_failure = {
    "expect_failure",
    "For modules that must fail: succeeds if at least one test of each module "
    "fails. A test that cannot begin is still a failure.",
    "--expect_failure"};
inline constexpr Number jobs = {"jobs", "N",
                                "The number of tests that run at once, on threads of this process (1). They "
                                "share only the devices.",
                                "--jobs=4", 1};

// ---- Reports

inline constexpr Text junit = {"junit", "FILE", "Writes the results as XML in JUnit's form, like GoogleTest.",
                               "--junit=results.xml"};
inline constexpr OptionalText json = {"json", "FILE",
                                      "Writes the results as JSON to FILE. Without FILE, writes JSON to "
                                      "standard output and text to standard error.",
                                      "--json"};

}  // namespace halyard::tools::flag
