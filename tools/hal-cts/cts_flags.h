// The flags of hal-cts.
#pragma once

#include "common/flags.h"

namespace halyard::cts::flag {

inline constexpr tools::Text driver = {"driver", "FILE", "The driver to test: a halyard-driver-NAME.so.",
                                       "--driver=build/halyard-driver-mine.so"};
inline constexpr tools::List device = {
    "device", "URI",
    "A device to test, as KIND://PATH?KEY=VALUE&...; without it, every device that the driver lists.",
    "--device=mine://0"};
inline constexpr tools::List executable = {
    "executable", "FORMAT=FILE",
    "A program in a format of the device, with the functions that docs/hal-cts.md names.",
    "--executable=vulkan-spirv-fb=cts.spv"};
inline constexpr tools::List filter = {"filter", "GLOB", "Runs the cases with such names.",
                                       "--filter='memory.*'"};
inline constexpr tools::List tag = {
    "tag", "TAG", "Runs the cases with this tag; 'hal-cts --list' shows them.", "--tag=queue"};
inline constexpr tools::List skip_tag = {"skip_tag", "TAG", "Leaves out the cases with this tag.",
                                         "--skip_tag=slow"};
inline constexpr tools::Toggle list = {
    "list", "Lists the cases with tags and rules, and exits; as JSON with --json.", "--list --tag=queue"};
inline constexpr tools::Duration timeout = {
    "timeout", "TIME", "The longest time that one case may take (20s).", "--timeout=60s"};
inline constexpr tools::Number max_timeouts = {
    "max_timeouts", "N", "Stops the run when N cases have failed because of the time limit (5). 0: never.",
    "--max_timeouts=0", 5};
inline constexpr tools::Toggle leaks = {
    "leaks",
    "Looks after each case for memory that the driver has lost, with LeakSanitizer (liblsan), which is "
    "preloaded:\n"
    "nothing has to be rebuilt. Cases take longer.",
    "--leaks --filter='list.*'"};
inline constexpr tools::Toggle no_fork = {
    "no_fork",
    "Runs the cases in this process, for a debugger. A crash ends the run, and there is no time limit.",
    "--no_fork --filter=queue.flush"};
inline constexpr tools::Text expect_failures = {
    "expect_failures", "FILE",
    "A file with the cases that are known to fail, one a line: NAME or DEVICE NAME, with * and ?. Their "
    "failure counts as\nskipped, their success as a failure.",
    "--expect_failures=known.txt"};
inline constexpr tools::Text junit = {"junit", "FILE", "Writes the results as JUnit's XML.",
                                      "--junit=results.xml"};
inline constexpr tools::OptionalText json = {
    "json", "FILE",
    "Writes the results as JSON to FILE; without FILE to standard output, and the text to standard error.",
    "--json"};

}  // namespace halyard::cts::flag
