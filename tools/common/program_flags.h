// The flags that name a program and its devices: vm-run, vm-bench and vm-check take them alike. Specified by
// run-module-cli.md, sections 1 and 2.
#pragma once

#include "common/drivers.h"
#include "common/flags.h"

namespace halyard::tools {

inline constexpr Flag kProgramFlags[] = {
    {"module", FlagKind::list, "FILE",
     "A compiled module (.vmfb), its text (.vmasm), or a native module (.so, with an argument: "
     "library.so@TEXT); '-' reads\n"
     "standard input. Repeated: loaded in order, later ones may import from earlier ones; the last is the "
     "main module.",
     "--module=simple_mul.vmfb"},
    {"function", FlagKind::value, "NAME",
     "The exported function of the main module to call. May be left out where there is only one.",
     "--function=simple_mul"},
    {"input", FlagKind::list, "VALUE",
     "An argument: a number, a tensor as text (2x2xf32=1,2,3,4; one element fills the shape), @file.npy, "
     "+file.npy, *file.npy\n"
     "(all arrays), 2x2xf32=@file.bin, (null); a leading & passes the buffer. Once for each argument, in "
     "order.",
     "--input=4xf32=1,2,3,4"},
    {"inputs_from", FlagKind::value, "FOLDER",
     "The arguments are the .npy files of FOLDER, sorted by their names (numbers in them as numbers), one "
     "array "
     "after another.",
     "--inputs_from=inputs"},
};

// How programs are loaded, what they are given, what they may take.
inline constexpr Flag kLoadingFlags[] = {
    {"parameters", FlagKind::list, "[SCOPE=]FILE",
     "A file (.irpa, .gguf, .safetensors) with the parameters of a scope. Repeated: of several files of a "
     "scope, the first\n"
     "that has a name counts.",
     "--parameters=model=weights.irpa"},
    {"parameter_mode", FlagKind::value, "file|preload",
     "file (the default) maps parameter files, which must not change then; preload reads them into memory.",
     "--parameter_mode=preload"},
    {"module_mode", FlagKind::value, "preload|mmap",
     "preload (the default) reads modules into memory; mmap maps their files, which must not change then.",
     "--module_mode=mmap"},
    {"verify", FlagKind::value, "eager|lazy",
     "eager verifies every function when a module is loaded; lazy (the default) each when it is first "
     "called.",
     "--verify=eager"},
    {"max_memory", FlagKind::value, "SIZE",
     "What the program may take of memory, on the host and on devices together: 512MiB. No limit if left "
     "out.",
     "--max_memory=512MiB"},
    {"timeout", FlagKind::value, "TIME",
     "How long the call may take: 1.5s, 200ms. Its kernels are stopped, too, where the device can. No limit "
     "if left out.",
     "--timeout=10s"},
    {"trace", FlagKind::value, "FILE",
     "Writes what happens when to FILE, for ui.perfetto.dev: functions, imports, queue work and its fences, "
     "dispatches, memory.",
     "--trace=run.perfetto"},
};

inline constexpr Flag kDeviceFlags[] = {
    {"device", FlagKind::list, "URI",
     "A device that the program may use: driver[://path][?key=value&...]. Repeated: in the order in which "
     "the program counts\n"
     "them. Left out: local-task where there is such a driver, else local-sync.",
     "--device=local-sync"},
    {"allow_native", FlagKind::value, "yes|no",
     "Whether local devices may run machine code that a module carries (yes, the default). It can do "
     "whatever "
     "this process\ncan: say no where the module's maker is not trusted.",
     "--allow-native=no"},
    {"executable_plugin", FlagKind::list, "FILE[&KEY=VALUE...]",
     "A library with functions that native executables import, for local devices. Repeated: asked in order.",
     "--executable_plugin=./ukernels.so"},
    {"device_lead_allocator", FlagKind::value, "N",
     "Which device (counted from 0, in the order of --device) gives memory that several devices use, where "
     "the program leaves\n"
     "it open. Left out: the program's first choice whose memory all of them can use.",
     "--device_lead_allocator=1"},
    {"task_topology_group_count", FlagKind::value, "N",
     "Worker threads of local-task devices whose URI does not say (local-task?workers=N).",
     "--task_topology_group_count=4"},
    {"task_topology_max_group_count", FlagKind::value, "N",
     "The same, but not more than there are processors for this process.",
     "--task_topology_max_group_count=8"},
    kDriverFlag,
};

// What commands written for other runtimes say, and what becomes of it.
inline constexpr const char* kWorkersNoEffect =
    "Taken, without effect: workers run where the system puts them, never spin, and give kernels the memory "
    "that these "
    "ask for.";
inline constexpr const char* kVulkanNoEffect =
    "Taken, without effect: what a Vulkan device has is used where it helps (docs/vulkan.md).";

inline constexpr Flag kForeignFlags[] = {
    {"task_topology_mode", FlagKind::value, "MODE", kWorkersNoEffect, "--task_topology_mode=physical_cores"},
    {"task_topology_cpu_ids", FlagKind::value, "IDS", kWorkersNoEffect, "--task_topology_cpu_ids=0,1"},
    {"task_topology_nodes", FlagKind::value, "NODES", kWorkersNoEffect, "--task_topology_nodes=all"},
    {"task_topology_performance_level", FlagKind::value, "LEVEL", kWorkersNoEffect,
     "--task_topology_performance_level=high"},
    {"task_topology_distribution", FlagKind::value, "HOW", kWorkersNoEffect,
     "--task_topology_distribution=latency"},
    {"task_topology_favor", FlagKind::value, "WHAT", kWorkersNoEffect, "--task_topology_favor=latency"},
    {"task_worker_stack_size", FlagKind::value, "BYTES", kWorkersNoEffect, "--task_worker_stack_size=131072"},
    {"task_worker_spin_us", FlagKind::value, "TIME", kWorkersNoEffect, "--task_worker_spin_us=0"},
    {"task_worker_local_memory", FlagKind::value, "BYTES", kWorkersNoEffect,
     "--task_worker_local_memory=131072"},
    {"task_abort_on_failure", FlagKind::toggle, "", kWorkersNoEffect, "--task_abort_on_failure"},
    {"device_allocator", FlagKind::list, "NAME",
     "Taken, without effect: each device has one allocator, which keeps what is given back for the next who "
     "asks.",
     "--device_allocator=caching"},
    {"vulkan_validation_layers", FlagKind::toggle, "",
     "Opens Vulkan devices with the validation layers, as their option validate=1 does.",
     "--vulkan_validation_layers"},
    {"vulkan_debug_utils", FlagKind::toggle, "", kVulkanNoEffect, "--vulkan_debug_utils"},
    {"vulkan_debug_verbosity", FlagKind::value, "N", kVulkanNoEffect, "--vulkan_debug_verbosity=2"},
    {"vulkan_robust_buffer_access", FlagKind::toggle, "",
     "Vulkan devices bound what kernels reach beyond their bindings; on where the device can do it. As "
     "?robust=0 in the URI:\n--vulkan_robust_buffer_access=false.",
     "--vulkan_robust_buffer_access=false"},
    {"vulkan_sparse_binding", FlagKind::toggle, "", kVulkanNoEffect, "--vulkan_sparse_binding"},
    {"vulkan_sparse_residency", FlagKind::toggle, "", kVulkanNoEffect, "--vulkan_sparse_residency"},
    {"vulkan_buffer_device_addresses", FlagKind::toggle, "", kVulkanNoEffect,
     "--vulkan_buffer_device_addresses"},
    {"vulkan_dedicated_compute_queue", FlagKind::toggle, "", kVulkanNoEffect,
     "--vulkan_dedicated_compute_queue"},
};

}  // namespace halyard::tools
