// The flags that describe a program and its devices, shared by vm-run, vm-bench and vm-check. Specified by
// run-module-cli.md, sections 1 and 2.
#pragma once

#include "common/drivers.h"
#include "common/flags.h"

namespace halyard::tools {

enum class ParameterMode { file, preload };
enum class ModuleMode { preload, mmap };
enum class Verify { eager, lazy };
enum class YesNo { yes, no };
enum class JitMode { hot, always, off };
enum class JitMath { exact, fast };

namespace flag {

// ---- The program

inline constexpr List module = {"module", "FILE",
                                "A compiled module (.vmfb), a module as text (.vmasm), or a native module "
                                "(.so; with an argument: library.so@TEXT). '-' reads standard input. Repeat "
                                "it for several modules: later modules may import from earlier ones, and "
                                "the last one is the main module.",
                                "--module=simple_mul.vmfb"};
inline constexpr Text function = {
    "function", "NAME",
    "The exported function of the main module to call. Optional if the module exports only one.",
    "--function=simple_mul"};
inline constexpr List input = {"input", "VALUE",
                               "An argument, in the order of the function's arguments: a number, a tensor as "
                               "text (2x2xf32=1,2,3,4; a single element fills the shape), @file.npy, "
                               "+file.npy (the next array), *file.npy (all arrays), 2x2xf32=@file.bin, or "
                               "(null). A leading & passes the buffer instead of the view.",
                               "--input=4xf32=1,2,3,4"};
inline constexpr Text inputs_from = {
    "inputs_from", "FOLDER",
    "Reads the arguments from the .npy files of FOLDER, one array after another. "
    "The files are sorted by name; numbers in names are compared as numbers.",
    "--inputs_from=inputs"};

// ---- Loading, parameters, limits

inline constexpr List parameters = {"parameters", "[SCOPE=]FILE",
                                    "A file with the parameters of a scope (.irpa, .gguf, .safetensors). May "
                                    "be repeated: if several files of "
                                    "a scope contain a parameter of the same name, the first file is used.",
                                    "--parameters=model=weights.irpa"};
inline constexpr Choice parameter_mode = {"parameter_mode", "file|preload",
                                          "file (the default) maps parameter files, which must not change "
                                          "meanwhile; preload reads them into memory.",
                                          "--parameter_mode=preload", ParameterMode::file};
inline constexpr Choice module_mode = {"module_mode", "preload|mmap",
                                       "preload (the default) reads modules into memory; mmap maps their "
                                       "files, which must not change meanwhile.",
                                       "--module_mode=mmap", ModuleMode::preload};
inline constexpr Choice verify = {
    "verify", "eager|lazy",
    "eager verifies every function when its module is loaded; lazy (the default) "
    "verifies a function at its first call.",
    "--verify=eager", Verify::lazy};
inline constexpr Size max_memory = {"max_memory", "SIZE",
                                    "The maximum memory that the program may use, on the host and on devices "
                                    "together. Default: no limit, or 1GiB with --untrusted.",
                                    "--max_memory=512MiB"};
inline constexpr Duration timeout = {
    "timeout", "TIME",
    "The maximum time of the call, such as 1.5s or 200ms. Kernels of the call are stopped too, if the device "
    "can stop them. Default: no limit, or 60s with --untrusted.",
    "--timeout=10s"};
inline constexpr Toggle untrusted = {
    "untrusted",
    "For modules that you do not trust: runs only portable code, on local devices, without the compiler "
    "unless "
    "--jit is given. Refuses machine code in modules, native modules, and libraries of the command line "
    "(plugins, drivers, channel providers). Default limits: 1 GiB of memory, 60s for a call.",
    "--untrusted"};
inline constexpr Text trace = {"trace", "FILE",
                               "Writes a timeline to FILE, for ui.perfetto.dev: functions, imports, queue "
                               "work and its fences, dispatches, memory.",
                               "--trace=run.perfetto"};

// ---- Devices

inline constexpr List device = {
    "device", "URI",
    "A device for the program: driver[://path][?key=value&...]. Repeat it for several devices, in the order "
    "of the program's device numbers. Default: local-task, or local-sync if there is no local-task.",
    "--device=local-sync"};
inline constexpr Choice allow_native = {
    "allow_native", "yes|no",
    "Whether local devices may run machine code from a module (default: yes). Such code can do anything that "
    "this process can do, so say no unless you trust the module.",
    "--allow-native=no", YesNo::yes};
inline constexpr List executable_plugin = {
    "executable_plugin", "FILE[&KEY=VALUE...]",
    "A library with functions that native executables import, for local devices. May be repeated: a function "
    "comes from the first library that has it.",
    "--executable_plugin=./ukernels.so"};
inline constexpr Choice jit = {
    "jit", "auto|always|off",
    "Compiles functions of modules and kernels of local devices to native code: hot ones while the program "
    "runs (auto, the default if the compiler is installed), all of them before their first call (always), or "
    "none (off, the default with --untrusted). The URI of a device overrides this flag: local-sync?jit=off.",
    "--jit=off", JitMode::hot};
inline constexpr Text jit_cache = {"jit_cache", "FOLDER",
                                   "Keeps compiled code in FOLDER for later runs; an empty value turns this "
                                   "off. Default: halyard/jit in the "
                                   "user's cache folder ($XDG_CACHE_HOME or ~/.cache).",
                                   "--jit_cache=/tmp/kernels"};
inline constexpr Choice jit_math = {
    "jit_math", "exact|fast",
    "exact (the default): compiled code gives the same bits as the interpreter. fast: compiled code may add "
    "floats in another order, fuse products with sums, and use less exact vector functions, so results "
    "depend on which code is compiled and when.",
    "--jit_math=fast", JitMath::exact};
inline constexpr Number device_lead_allocator = {
    "device_lead_allocator", "N",
    "The device that allocates memory for several devices if the program leaves the choice open: its index "
    "in the order of --device, counted from 0. Default: the first device of the program's list whose memory "
    "all of them can use.",
    "--device_lead_allocator=1"};
inline constexpr Number task_topology_group_count = {
    "task_topology_group_count", "N",
    "The number of worker threads of local-task devices whose URI does not set it (local-task?workers=N).",
    "--task_topology_group_count=4"};
inline constexpr Number task_topology_max_group_count = {
    "task_topology_max_group_count", "N",
    "Like --task_topology_group_count, but at most the number of processors that this process may use.",
    "--task_topology_max_group_count=8"};

inline constexpr Toggle vulkan_validation_layers = {
    "vulkan_validation_layers",
    "Opens Vulkan devices with the validation layers, like the device option validate=1.",
    "--vulkan_validation_layers"};
inline constexpr Toggle vulkan_robust_buffer_access = {
    "vulkan_robust_buffer_access",
    "Keeps kernels on Vulkan devices from accessing memory outside of their bindings. Default: on if the "
    "device can do it. --vulkan_robust_buffer_access=false turns it off, like ?robust=0 in the URI.",
    "--vulkan_robust_buffer_access=false"};

// ---- Flags of other runtimes, without effect: the system places the worker threads, which spin only
// briefly; kernels get the memory that they request; each device has one allocator, which keeps freed memory;
// a Vulkan device uses its features where they help.

inline constexpr Ignored task_topology_mode = {"task_topology_mode", "MODE",
                                               "--task_topology_mode=physical_cores"};
inline constexpr Ignored task_topology_cpu_ids = {"task_topology_cpu_ids", "IDS",
                                                  "--task_topology_cpu_ids=0,1"};
inline constexpr Ignored task_topology_nodes = {"task_topology_nodes", "NODES", "--task_topology_nodes=all"};
inline constexpr Ignored task_topology_performance_level = {"task_topology_performance_level", "LEVEL",
                                                            "--task_topology_performance_level=high"};
inline constexpr Ignored task_topology_distribution = {"task_topology_distribution", "HOW",
                                                       "--task_topology_distribution=latency"};
inline constexpr Ignored task_topology_favor = {"task_topology_favor", "WHAT",
                                                "--task_topology_favor=latency"};
inline constexpr Ignored task_worker_stack_size = {"task_worker_stack_size", "BYTES",
                                                   "--task_worker_stack_size=131072"};
inline constexpr Ignored task_worker_spin_us = {"task_worker_spin_us", "TIME", "--task_worker_spin_us=0"};
inline constexpr Ignored task_worker_local_memory = {"task_worker_local_memory", "BYTES",
                                                     "--task_worker_local_memory=131072"};
inline constexpr Ignored task_abort_on_failure = {"task_abort_on_failure", "", "--task_abort_on_failure"};
inline constexpr Ignored device_allocator = {"device_allocator", "NAME", "--device_allocator=caching"};
inline constexpr Ignored vulkan_debug_utils = {"vulkan_debug_utils", "", "--vulkan_debug_utils"};
inline constexpr Ignored vulkan_debug_verbosity = {"vulkan_debug_verbosity", "N",
                                                   "--vulkan_debug_verbosity=2"};
inline constexpr Ignored vulkan_sparse_binding = {"vulkan_sparse_binding", "", "--vulkan_sparse_binding"};
inline constexpr Ignored vulkan_sparse_residency = {"vulkan_sparse_residency", "",
                                                    "--vulkan_sparse_residency"};
inline constexpr Ignored vulkan_buffer_device_addresses = {"vulkan_buffer_device_addresses", "",
                                                           "--vulkan_buffer_device_addresses"};
inline constexpr Ignored vulkan_dedicated_compute_queue = {"vulkan_dedicated_compute_queue", "",
                                                           "--vulkan_dedicated_compute_queue"};

// ---- Profiles

inline constexpr OptionalText profile = {
    "profile", "table|all|FILE.html",
    "Prints to standard error what the time of a call went into: kernels, host code, waiting; operations, "
    "bytes "
    "and rates where they are known (docs/profiling.md). With --json, or in the JSON of vm-bench, it is a "
    "member of that. all: each function of the host, and no rows are left out on a terminal. FILE.html "
    "(vm-run): writes a page instead, with the graph of dispatches, their times, and memory over time.",
    "--profile"};

// ---- Flags of vm-run that program.cpp reads

inline constexpr Text capture = {"capture", "FILE",
                                 "Writes every executed command buffer to FILE, with the bytes before and "
                                 "after, for 'hal-info replay'. The "
                                 "run is slower, and the file is as large as these bytes.",
                                 "--capture=program.hycap"};
inline constexpr Toggle print_stats = {
    "print_stats",
    "Prints statistics of the run to standard error after the results: time by phase, memory of each device, "
    "and the objects that still exist after everything else has been released.",
    "--print_stats"};

}  // namespace flag

inline constexpr const Flag* kProgramFlags[] = {&flag::module, &flag::function, &flag::input,
                                                &flag::inputs_from};
inline constexpr const Flag* kLoadingFlags[] = {&flag::parameters, &flag::parameter_mode, &flag::module_mode,
                                                &flag::verify,     &flag::max_memory,     &flag::timeout,
                                                &flag::untrusted,  &flag::trace};
inline constexpr const Flag* kDeviceFlags[] = {&flag::device,
                                               &flag::allow_native,
                                               &flag::executable_plugin,
                                               &flag::jit,
                                               &flag::jit_cache,
                                               &flag::jit_math,
                                               &flag::device_lead_allocator,
                                               &flag::task_topology_group_count,
                                               &flag::task_topology_max_group_count,
                                               &flag::vulkan_validation_layers,
                                               &flag::vulkan_robust_buffer_access,
                                               &flag::driver};
inline constexpr const Flag* kForeignFlags[] = {&flag::task_topology_mode,
                                                &flag::task_topology_cpu_ids,
                                                &flag::task_topology_nodes,
                                                &flag::task_topology_performance_level,
                                                &flag::task_topology_distribution,
                                                &flag::task_topology_favor,
                                                &flag::task_worker_stack_size,
                                                &flag::task_worker_spin_us,
                                                &flag::task_worker_local_memory,
                                                &flag::task_abort_on_failure,
                                                &flag::device_allocator,
                                                &flag::vulkan_debug_utils,
                                                &flag::vulkan_debug_verbosity,
                                                &flag::vulkan_sparse_binding,
                                                &flag::vulkan_sparse_residency,
                                                &flag::vulkan_buffer_device_addresses,
                                                &flag::vulkan_dedicated_compute_queue};

}  // namespace halyard::tools
