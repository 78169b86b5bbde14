// The flags that only vm-run has.
#pragma once

#include "common/program.h"
#include "common/program_flags.h"
#include "common/ranks.h"

namespace halyard::tools {

// The tolerances for comparing floating-point elements.
enum class EqualityMode { approximate, absolute, relative, exact };

namespace flag {

// ---- Results

inline constexpr List output = {
    "output", "WHERE",
    "What to do with a result: '-' prints it, an empty value drops it, @file.npy or @file.bin writes it, "
    "+file appends it to a file. Once for each result, in order. Default: prints all results.",
    "--output=@product.npy"};
inline constexpr List expected_output = {
    "expected_output", "VALUE",
    "The expected value of a result, in the form of --input, or (ignored). Once for each result. Prints the "
    "outcome instead of the results; the exit code is 1 if a result differs.",
    "--expected_output=4xf32=2,4,6,8"};
inline constexpr Choice equality_mode = {
    "equality_mode", "approximate|absolute|relative|exact",
    "How to compare floating-point elements. approximate (the default) accepts an "
    "element within either limit.",
    "--equality_mode=exact", EqualityMode::approximate};
inline constexpr Threshold expected_f16_threshold = {
    "expected_f16_threshold", "The maximum difference of f16 elements from the expected ones (0.001).",
    "--expected_f16_threshold=0.01", 0.001};
inline constexpr Threshold expected_bf16_threshold = {
    "expected_bf16_threshold", "The same limit for bf16 (0.01).", "--expected_bf16_threshold=0.1", 0.01};
inline constexpr Threshold expected_f32_threshold = {
    "expected_f32_threshold", "The same limit for f32 (0.0001).", "--expected_f32_threshold=0.001", 0.0001};
inline constexpr Threshold expected_f64_threshold = {
    "expected_f64_threshold", "The same limit for f64 (0.0001).", "--expected_f64_threshold=0.001", 0.0001};
inline constexpr Threshold expected_rtol = {
    "expected_rtol", "An additional difference, as a fraction of the expected element (0.00001).",
    "--expected_rtol=0.001", 0.00001};
inline constexpr Number output_max_element_count = {
    "output_max_element_count", "N",
    "The maximum number of elements of a tensor that are printed (1024); '...' replaces the others.",
    "--output_max_element_count=16", kDefaultMaxElements};

// ---- Records

inline constexpr Toggle print_statistics = {
    "print_statistics", "Prints the memory statistics of each device to standard error after the results.",
    "--print_statistics"};
inline constexpr Text trace_tensors = {
    "trace_tensors", "PATTERN",
    "Writes the buffers before and after dispatches as npy files, for functions whose names match "
    "(wildcards: * and ?). Each of these dispatches runs alone, and the files are as large as the buffers.",
    "--trace_tensors='*matmul*'"};
inline constexpr Text trace_tensors_folder = {"trace_tensors_folder", "FOLDER",
                                              "The folder for these files (tensors).",
                                              "--trace_tensors_folder=/tmp/tensors", "tensors"};

// ---- Lists

inline constexpr Toggle list_drivers = {
    "list_drivers",
    "Lists the working drivers and exits. Each driver is tried in a separate process, for at most --timeout "
    "(10s); standard error lists the others, with the reasons.",
    "--list_drivers"};
inline constexpr Toggle explain = {"explain",
                                   "With --list_drivers: lists every place and file of the search, whether "
                                   "it was taken or refused, and why.",
                                   "--list_drivers --explain"};
inline constexpr OptionalText list_devices = {
    "list_devices", "DRIVER", "Lists the devices of one driver, or of all drivers, and exits.",
    "--list_devices=local-sync"};
inline constexpr OptionalText dump_devices = {
    "dump_devices", "DRIVER", "Describes the devices of one driver, or of all drivers, and exits.",
    "--dump_devices=local-sync"};
inline constexpr Toggle dump_task_topologies = {"dump_task_topologies",
                                                "Prints the number of worker threads of a local-task device, "
                                                "and exits. They are not bound to processors.",
                                                "--dump_task_topologies"};
inline constexpr Toggle list_functions = {"list_functions",
                                          "Lists the exported functions of the main module, and exits.",
                                          "--module=simple_mul.vmfb --list_functions"};

}  // namespace flag

}  // namespace halyard::tools
