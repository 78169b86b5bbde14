// The flags that only vm-run has.
#pragma once

#include "common/program.h"
#include "common/program_flags.h"
#include "common/ranks.h"

namespace halyard::tools {

// Which tolerances apply when floating-point elements are compared.
enum class EqualityMode { approximate, absolute, relative, exact };

namespace flag {

// ---- Results

inline constexpr List output = {
    "output", "WHERE",
    "Where a result goes: '-' prints it, nothing drops it, @file.npy or @file.bin writes it, +file appends "
    "to a file. Once for each result, in order. Without it all results are printed.",
    "--output=@product.npy"};
inline constexpr List expected_output = {
    "expected_output", "VALUE",
    "The expected value of a result, as text like that of --input, or (ignored). Once for each result. "
    "Prints the outcome instead of the results; the exit code is 1 if a result differs.",
    "--expected_output=4xf32=2,4,6,8"};
inline constexpr Choice equality_mode = {"equality_mode", "approximate|absolute|relative|exact",
                                         "How floating-point elements are compared. approximate, the "
                                         "default, accepts an element that is within either limit.",
                                         "--equality_mode=exact", EqualityMode::approximate};
inline constexpr Threshold expected_f16_threshold = {
    "expected_f16_threshold", "How far f16 elements may be from the expected ones (0.001).",
    "--expected_f16_threshold=0.01", 0.001};
inline constexpr Threshold expected_bf16_threshold = {"expected_bf16_threshold", "The same for bf16 (0.01).",
                                                      "--expected_bf16_threshold=0.1", 0.01};
inline constexpr Threshold expected_f32_threshold = {"expected_f32_threshold", "The same for f32 (0.0001).",
                                                     "--expected_f32_threshold=0.001", 0.0001};
inline constexpr Threshold expected_f64_threshold = {"expected_f64_threshold", "The same for f64 (0.0001).",
                                                     "--expected_f64_threshold=0.001", 0.0001};
inline constexpr Threshold expected_rtol = {
    "expected_rtol", "How much further they may be, as a fraction of the expected element (0.00001).",
    "--expected_rtol=0.001", 0.00001};
inline constexpr Number output_max_element_count = {
    "output_max_element_count", "N",
    "The number of elements of a tensor that are printed before '...' (1024).",
    "--output_max_element_count=16", kDefaultMaxElements};

// ---- Records

inline constexpr Toggle print_statistics = {
    "print_statistics", "Prints the memory statistics of each device to standard error after the results.",
    "--print_statistics"};
inline constexpr Text trace_tensors = {
    "trace_tensors", "PATTERN",
    "Writes the buffers that dispatches read and wrote as npy files, for functions whose names match (* and "
    "? are wildcards). Each dispatch then runs alone, and the files are as large as the buffers.",
    "--trace_tensors='*matmul*'"};
inline constexpr Text trace_tensors_folder = {"trace_tensors_folder", "FOLDER",
                                              "The folder for these files (tensors).",
                                              "--trace_tensors_folder=/tmp/tensors", "tensors"};

// ---- Lists

inline constexpr Toggle list_drivers = {
    "list_drivers",
    "Lists the drivers that work, and exits. Each is tried in a process of its own, for at most --timeout "
    "(10s); standard error says which do not work, and why.",
    "--list_drivers"};
inline constexpr Toggle explain = {
    "explain",
    "With --list_drivers: lists every place and file of the search, and why it was taken or refused.",
    "--list_drivers --explain"};
inline constexpr OptionalText list_devices = {"list_devices", "DRIVER",
                                              "Lists devices, of one driver or of all, and exits.",
                                              "--list_devices=local-sync"};
inline constexpr OptionalText dump_devices = {
    "dump_devices", "DRIVER", "Lists devices with their descriptions, of one driver or of all, and exits.",
    "--dump_devices=local-sync"};
inline constexpr Toggle dump_task_topologies = {
    "dump_task_topologies",
    "Prints the number of workers of a local-task device, and exits; they are not bound to processors.",
    "--dump_task_topologies"};
inline constexpr Toggle list_functions = {"list_functions",
                                          "Lists the functions that the main module exports, and exits.",
                                          "--module=simple_mul.vmfb --list_functions"};

}  // namespace flag

}  // namespace halyard::tools
