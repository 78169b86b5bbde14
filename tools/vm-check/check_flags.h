// The flags that only vm-check has.
#pragma once

#include "common/flags.h"

namespace halyard::tools::flag {

// ---- Tests

inline constexpr List test_module = {"module", "FILE",
                                     "A module with tests (.vmfb, .vmasm), as FILE without a flag is. May be "
                                     "repeated: the tests of all are run, each with its own module alone.",
                                     "--module=tests.vmfb"};
inline constexpr List import_from = {
    "import", "FILE",
    "A module that modules with tests may import from (.vmfb, .vmasm, or a native module, .so). May be "
    "repeated: they are loaded in order, and later ones may import from earlier ones.",
    "--import=library.vmfb"};
inline constexpr Text filter = {
    "filter", "PATTERNS",
    "Runs the tests whose names, MODULE.TEST, match one of the patterns. '*' and '?' are wildcards, ':' "
    "separates patterns, and patterns after a '-' leave tests out.",
    "--filter='*.add*:*.mul*-*slow*'"};
inline constexpr Toggle list = {
    "list", "Lists the tests that would be run, and exits; as JSON with --json. No device is opened.",
    "--list"};
inline constexpr Toggle expect_failure = {"expect_failure",
                                          "For modules that must fail: succeeds if a test of each module "
                                          "fails. A test that cannot begin is still a failure.",
                                          "--expect_failure"};
inline constexpr Number jobs = {"jobs", "N",
                                "The number of tests that run at once, on threads of this process (1). They "
                                "share the devices and nothing else.",
                                "--jobs=4", 1};

// ---- Reports

inline constexpr Text junit = {"junit", "FILE", "Writes the results as JUnit's XML, in GoogleTest's form.",
                               "--junit=results.xml"};
inline constexpr OptionalText json = {
    "json", "FILE",
    "Writes the results as JSON to FILE; without FILE to standard output, and the text to standard error.",
    "--json"};

}  // namespace halyard::tools::flag
