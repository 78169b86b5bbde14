"""--max_memory holds: programs that allocate in every possible way, each in a process of its own.

A way is the body of a loop that makes something and keeps it, or makes something that holds more and more. Each must
end in RESOURCE_EXHAUSTED, with a message that names the limit and the flag, before the process has grown by more than
1.25 times the limit: in what is resident, and, by a limit of the system on its writable memory, in what is reserved
and never touched. The fixed part of a process, what it takes before the program begins, is not counted."""
import os
import resource
import subprocess
import threading

import installed
import vmrun

MIB = 1 << 20
LIMIT = 48 * MIB
MOST = 1.25 * LIMIT
# Writable memory that the process has besides: its own, the tools' and libraries' data, stacks of threads.
FIXED = {"local-sync": 16 * MIB, "local-task": 16 * MIB + 4 * 9 * MIB}
ENDLESS = "2000000000"

# A kernel with two constants and a binding.
KERNEL = """vm.rodata[{ordinal}] = module {{
  vm.module @kernels
  vm.export @mul
  vm.attr @mul "binding_count" "1"
  vm.attr @mul "constant_count" "2"
  vm.func @mul(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {{
{work}    vm.return
  }}
}}
"""

HEAD = """vm.module @takes
vm.type i8
vm.type i64
vm.type !vm.list<i8>
vm.type !vm.list<i64>
vm.type !vm.list<!vm.opaque>
vm.type !vm.list<!vm.buffer>
vm.type !vm.buffer
vm.rodata[0] = "vmvx-bytecode-fb"
vm.rodata[1] = "a label of some length, as a compiler may give to a group of commands"
""" + KERNEL.format(ordinal=2, work="") + KERNEL.format(
    ordinal=3, work="".join(f"    %i{10 + i % 50} = vm.add.i32 %i{i % 9}, %i{(i + 1) % 9}\n" for i in range(4000)))

IMPORTS = {
    "hal.devices.get": "0i_r",
    "hal.device.allocator": "0r_r",
    "hal.allocator.allocate": "0rIiiI_r",
    "hal.allocator.import": "0riIiirII_r",
    "hal.buffer.subspan": "0rII_r",
    "hal.buffer_view.create": "0rIIiiCID_r",
    "hal.command_buffer.create": "0riiIi_r",
    "hal.command_buffer.begin_debug_group": "0rr_v",
    "hal.command_buffer.end_debug_group": "0r_v",
    "hal.command_buffer.execution_barrier": "0riiI_v",
    "hal.command_buffer.fill_buffer": "0rrIIiIiI_v",
    "hal.command_buffer.update_buffer": "0rrIrIIiI_v",
    "hal.command_buffer.copy_buffer": "0riirIrII_v",
    "hal.command_buffer.dispatch": "0rrIiiiICiDCiirIID_v",
    "hal.command_buffer.finalize": "0r_v",
    "hal.device.queue.alloca": "0rIrrIiiII_r",
    "hal.device.queue.barrier": "0rIrrI_v",
    "hal.device.queue.fill": "0rIrrrIIIiI_v",
    "hal.device.queue.update": "0rIrrrIrIII_v",
    "hal.device.queue.copy": "0rIrrrIrIII_v",
    "hal.device.queue.read": "0rIrrrIrIII_v",
    "hal.device.queue.execute": "0rIrrrI_v",
    "hal.executable.create": "0rIrrr_r",
    "hal.ex.file.from_memory": "0rIirIIi_r",
    "hal.fence.create": "0rI_r",
    "hal.fence.join": "0ICrD_r",
    "hal.fence.fail": "0ri_v",
    "hal.fence.signal": "0r_v",
}

# What every program has: %i0 turns left, %i1 the place of the next object, %i30 = 1, %i31 = 0, %i32:33 = 0,
# %i34:35 = -1, %i36:37 = 64, %i38 = host and device memory, %i39 = usage, %r0 the list of kept objects, %r31 null.
# The body makes %r1, which is kept.
SETUP = """
vm.export @{name}
vm.func @{name}(%i0: i32) -> (i32) {{
  %i1 = vm.const.i32.zero
  %i30 = vm.const.i32 1
  %i31 = vm.const.i32.zero
  %i32:33 = vm.const.i64.zero
  %i34:35 = vm.const.i64 -1
  %i36:37 = vm.const.i64 64
  %i38 = vm.const.i32 0x36
  %i39 = vm.const.i32 0x3000C03
  %i40 = vm.const.i32 -1
  %r31 = vm.const.ref.zero
  %r0 = vm.list.alloc %i30 : !vm.list<!vm.opaque>
{before}
  vm.br ^bb1
^bb1:
  vm.cond_br %i0, ^bb2, ^bb3
^bb2:
{body}
  %i2 = vm.add.i32 %i1, %i30
  vm.list.resize %r0, %i2
  vm.list.set.ref %r0, %i1, %r1
  %i1 = vm.or.i32 %i2, %i2
  %i0 = vm.add.i32 %i0, %i40
  vm.br ^bb1
^bb3:
  vm.return %i1
}}
"""

DEVICE = "  %r2 = vm.call @hal.devices.get(%i31)\n"
ALLOCATOR = DEVICE + "  %r3 = vm.call @hal.device.allocator(%r2)\n"
BUFFER = ALLOCATOR + "  %r4 = vm.call @hal.allocator.allocate(%r3, %i34:35, %i38, %i39, %i36:37)\n"
# %r5 is never signalled: work that waits for %r5 is held.
HELD = BUFFER + "  %r5 = vm.call @hal.fence.create(%r2, %i32:33)\n"
COMMANDS = BUFFER + """  %i5 = vm.const.i32 3
  %r6 = vm.call @hal.command_buffer.create(%r2, %i31, %i5, %i34:35, %i31)
"""
BYTES = """  %i10:11 = vm.const.i64 60000
  %r7 = vm.buffer.alloc %i10:11, %i30
"""
# Two constants, one binding.
DISPATCH = """  vm.call.variadic @hal.command_buffer.dispatch segments[65535, 65535, 65535, 65535, 65535, 65535, 65535, 2, 1](\
{commands}, {executable}, %i32:33, %i30, %i30, %i30, %i32:33, %i30, %i30, %i31, %i31, %r4, %i32:33, %i36:37)"""
EXECUTABLE = """  %r8 = vm.const.ref.rodata 0
  %r9 = vm.const.ref.rodata 2
"""
LARGE_EXECUTABLE = EXECUTABLE.replace("rodata 2", "rodata 3")
# The first run decodes the code and prepares the threads.
RUN_EXECUTABLE = """  %r1 = vm.call @hal.executable.create(%r2, %i34:35, %r8, %r9, %r31)
  %r10 = vm.call @hal.command_buffer.create(%r2, %i30, %i5, %i34:35, %i31)
""" + DISPATCH.format(commands="%r10", executable="%r1") + """
  vm.call @hal.command_buffer.finalize(%r10)
  vm.call @hal.device.queue.execute(%r2, %i34:35, %r31, %r31, %r10, %i32:33)"""
KEEP_NOTHING = "  %r1 = vm.const.ref.zero"

# name: (the text before the loop, the body)
HOST = {
    "empty_buffers": ("", "  %r1 = vm.buffer.alloc %i32:33, %i30"),
    "small_buffers": ("", "  %r1 = vm.buffer.alloc %i36:37, %i30"),
    "aligned_buffers": ("  %i5 = vm.const.i32 65536", "  %r1 = vm.buffer.alloc %i36:37, %i5"),
    "cloned_buffers": ("  %r2 = vm.buffer.alloc %i36:37, %i30",
                       "  %r1 = vm.buffer.clone %r2, %i32:33, %i36:37, %i30"),
    "untouched_buffers": ("  %i10:11 = vm.const.i64 1000000", "  %r1 = vm.buffer.alloc %i10:11, %i30"),
    "empty_lists": ("", "  %r1 = vm.list.alloc %i31 : !vm.list<i8>"),
    "reserved_lists": ("  %i5 = vm.const.i32 100", "  %r1 = vm.list.alloc %i5 : !vm.list<!vm.buffer>"),
    "nested_lists": ("  %r2 = vm.const.ref.zero", """  %r1 = vm.list.alloc %i30 : !vm.list<!vm.opaque>
  vm.list.resize %r1, %i30
  vm.list.set.ref %r1, %i31, %r2
  %r2 = vm.assign.ref %r1"""),
    "a_list_that_grows": ("  %r2 = vm.list.alloc %i31 : !vm.list<i64>\n  %i5 = vm.const.i32 1000", """
  %i6 = vm.mul.i32 %i1, %i5
  vm.list.resize %r2, %i6
""" + KEEP_NOTHING),
}
DEVICES = {
    "device_buffers": (ALLOCATOR, "  %r1 = vm.call @hal.allocator.allocate(%r3, %i34:35, %i38, %i39, %i32:33)"),
    "odd_device_buffers": (ALLOCATOR + "  %i10:11 = vm.const.i64 2049",
                           "  %r1 = vm.call @hal.allocator.allocate(%r3, %i34:35, %i38, %i39, %i10:11)"),
    "imported_buffers": (ALLOCATOR + "  %i5 = vm.const.i32 64\n  %r4 = vm.buffer.alloc %i36:37, %i5",
                         "  %r1 = vm.call @hal.allocator.import(%r3, %i31, %i34:35, %i38, %i39, %r4, %i32:33, %i36:37)"),
    "subspans": (BUFFER + "  %i10:11 = vm.const.i64 4", "  %r1 = vm.call @hal.buffer.subspan(%r4, %i10:11, %i10:11)"),
    "views": (BUFFER + "  %i5 = vm.const.i32 0x21000020",
              "  %r1 = vm.call.variadic @hal.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 8]"
              "(%r4, %i32:33, %i36:37, %i5, %i30, %i36:37, %i36:37, %i36:37, %i36:37, %i36:37, %i36:37, %i36:37, %i36:37)"),
    "files": (DEVICE + BYTES, "  %r1 = vm.call @hal.ex.file.from_memory(%r2, %i34:35, %i30, %r7, %i32:33, %i36:37, %i31)"),
    "fences": (DEVICE, "  %r1 = vm.call @hal.fence.create(%r2, %i32:33)"),
    "failed_fences": (DEVICE, "  %r1 = vm.call @hal.fence.create(%r2, %i32:33)\n  vm.call @hal.fence.fail(%r1, %i30)"),
    "joined_fences": (DEVICE + """  %r3 = vm.call @hal.fence.create(%r2, %i32:33)
  %r4 = vm.call @hal.fence.create(%r2, %i32:33)
  %r5 = vm.call @hal.fence.create(%r2, %i32:33)""",
                      "  %r1 = vm.call.variadic @hal.fence.join segments[65535, 3](%i32:33, %r3, %r4, %r5)"),
    "executables": (DEVICE + EXECUTABLE, "  %r1 = vm.call @hal.executable.create(%r2, %i34:35, %r8, %r9, %r31)"),
    "large_executables": (DEVICE + LARGE_EXECUTABLE, "  %r1 = vm.call @hal.executable.create(%r2, %i34:35, %r8, %r9, %r31)"),
    "large_executables_that_ran": (COMMANDS + LARGE_EXECUTABLE, RUN_EXECUTABLE),
    "executables_that_ran": (COMMANDS + EXECUTABLE, RUN_EXECUTABLE),
    "command_buffers": (DEVICE + "  %i5 = vm.const.i32 3",
                        "  %r1 = vm.call @hal.command_buffer.create(%r2, %i31, %i5, %i34:35, %i31)"),
    "finished_command_buffers": (DEVICE + "  %i5 = vm.const.i32 3", """  %r1 = vm.call @hal.command_buffer.create(%r2, %i31, %i5, %i34:35, %i31)
  vm.call @hal.command_buffer.execution_barrier(%r1, %i30, %i30, %i32:33)
  vm.call @hal.command_buffer.finalize(%r1)"""),
    "barriers": (COMMANDS, "  vm.call @hal.command_buffer.execution_barrier(%r6, %i30, %i30, %i32:33)\n" + KEEP_NOTHING),
    "labels": (COMMANDS + "  %r7 = vm.const.ref.rodata 1", """  vm.call @hal.command_buffer.begin_debug_group(%r6, %r7)
  vm.call @hal.command_buffer.end_debug_group(%r6)
""" + KEEP_NOTHING),
    "fills": (COMMANDS, "  vm.call @hal.command_buffer.fill_buffer(%r6, %r4, %i32:33, %i36:37, %i31, %i32:33, %i30, %i32:33)\n"
              + KEEP_NOTHING),
    "updates": (COMMANDS + BYTES, "  vm.call @hal.command_buffer.update_buffer(%r6, %r7, %i32:33, %r4, %i32:33, %i36:37, %i31, %i32:33)\n"
                + KEEP_NOTHING),
    "copies_of_many": (COMMANDS + "  %i10:11 = vm.const.i64 32", """  %r1 = vm.call @hal.allocator.allocate(%r3, %i34:35, %i38, %i39, %i36:37)
  vm.call @hal.command_buffer.copy_buffer(%r6, %i31, %i31, %r1, %i32:33, %r4, %i32:33, %i10:11, %i32:33)
  %r1 = vm.const.ref.zero"""),
    "dispatches": (COMMANDS + EXECUTABLE + "  %r10 = vm.call @hal.executable.create(%r2, %i34:35, %r8, %r9, %r31)",
                   DISPATCH.format(commands="%r6", executable="%r10") + "\n" + KEEP_NOTHING),
    "slots": (DEVICE + "  %i5 = vm.const.i32 3\n  %i6 = vm.const.i32 65535\n  %i7 = vm.const.i32 65536",
              """  %r1 = vm.call @hal.command_buffer.create(%r2, %i31, %i5, %i34:35, %i7)
  vm.call @hal.command_buffer.fill_buffer(%r1, %r31, %i32:33, %i36:37, %i6, %i32:33, %i30, %i32:33)"""),
    "held_barriers": (HELD, """  %r1 = vm.call @hal.fence.create(%r2, %i32:33)
  vm.call @hal.device.queue.barrier(%r2, %i34:35, %r5, %r1, %i32:33)"""),
    "held_barriers_alone": (HELD, "  vm.call @hal.device.queue.barrier(%r2, %i34:35, %r5, %r31, %i32:33)\n" + KEEP_NOTHING),
    "held_fills": (HELD, "  vm.call @hal.device.queue.fill(%r2, %i34:35, %r5, %r31, %r4, %i32:33, %i36:37, %i32:33, %i30, %i32:33)\n"
                   + KEEP_NOTHING),
    "held_updates": (HELD + BYTES + """  %r11 = vm.call @hal.allocator.allocate(%r3, %i34:35, %i38, %i39, %i10:11)
  %i12:13 = vm.const.i64 20000
""", "  vm.call @hal.device.queue.update(%r2, %i34:35, %r5, %r31, %r7, %i32:33, %r11, %i32:33, %i12:13, %i32:33)\n"
                     + KEEP_NOTHING),
    "held_reads": (HELD + BYTES + "  %r10 = vm.call @hal.ex.file.from_memory(%r2, %i34:35, %i30, %r7, %i32:33, %i36:37, %i31)",
                   "  vm.call @hal.device.queue.read(%r2, %i34:35, %r5, %r31, %r10, %i32:33, %r4, %i32:33, %i36:37, %i32:33)\n"
                   + KEEP_NOTHING),
    "held_executions": (HELD + """  %i5 = vm.const.i32 3
  %r6 = vm.call @hal.command_buffer.create(%r2, %i31, %i5, %i34:35, %i31)
  vm.call @hal.command_buffer.execution_barrier(%r6, %i30, %i30, %i32:33)
  vm.call @hal.command_buffer.finalize(%r6)
""", "  vm.call @hal.device.queue.execute(%r2, %i34:35, %r5, %r31, %r6, %i32:33)\n" + KEEP_NOTHING),
    "held_allocations": (HELD, "  %r1 = vm.call @hal.device.queue.alloca(%r2, %i34:35, %r5, %r31, %i32:33, %i38, %i39, %i36:37, %i32:33)"),
    "allocations": (HELD, "  %r1 = vm.call @hal.device.queue.alloca(%r2, %i34:35, %r31, %r31, %i32:33, %i38, %i39, %i36:37, %i32:33)"),
    # Buffers of one size after another, all given back in between: memory that a device keeps for reuse counts, too.
    "sizes_in_turn": (ALLOCATOR + """  %i10:11 = vm.const.i64 512
  %i12:13 = vm.const.i64 256
  %i14 = vm.const.i32 16383
  %i15 = vm.const.i32 300000""", """  %r1 = vm.call @hal.allocator.allocate(%r3, %i34:35, %i38, %i39, %i10:11)
  %i16 = vm.and.i32 %i1, %i14
  vm.cond_br %i16, ^bb4, ^bb5
^bb5:
  vm.list.resize %r0, %i31
  vm.list.resize %r0, %i1
  %i10:11 = vm.add.i64 %i10:11, %i12:13
  vm.br ^bb4
^bb4:"""),
}


def program(ways):
    text = "".join(SETUP.format(name=name, before=before, body=body) for name, (before, body) in ways.items())
    used = [f'vm.import @{name} cconv "{convention}"\n' for name, convention in IMPORTS.items() if f"@{name}(" in text
            or f"@{name} " in text]
    lines = HEAD.split("\n", 1)
    return lines[0] + "\n" + "".join(used) + lines[1] + text


class Process:
    """A tool that ran under a limit of the system on its writable memory, and the most that was resident."""

    def __init__(self, arguments, writable):
        self.args = [os.path.join(vmrun.BIN, "vm-run"), *arguments]
        child = subprocess.Popen(self.args, cwd=vmrun.SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (writable, writable)))
        kill = threading.Timer(vmrun.TIMEOUT, child.kill)
        kill.start()
        self.stdout, self.stderr = child.stdout.read(), child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        kill.cancel()
        child.returncode = self.returncode = os.waitstatus_to_exitcode(status)
        child.stdout.close()
        child.stderr.close()
        self.resident = usage.ru_maxrss * 1024


def check(checks, name, flags, device, base):
    """One program; `base` is what a process like it takes that does nothing."""
    writable = int(MOST) + FIXED[device.partition("?")[0]]
    done = Process([*flags, f"--max_memory={LIMIT}"], writable)
    grown = done.resident - base
    wrong = vmrun.why_bad_failure(done, "RESOURCE_EXHAUSTED", f"memory limit is {LIMIT} bytes", "max_memory")
    if wrong is None and grown > MOST:
        wrong = f"grew by {grown / MIB:.1f} MiB under a limit of {LIMIT / MIB:.0f} MiB"
    if os.environ.get("HALYARD_VERBOSE"):
        print(f"{device:24} {name:28} grew by {grown / LIMIT:.2f} of the limit")
    checks.check(f"{device} {name}", wrong, done)


def check_ways(checks, path, device, names):
    for name in names:
        flags = [f"--module={path}", f"--device={device}", f"--function={name}"]
        nothing = Process([*flags, "--input=0"], resource.RLIM_INFINITY)
        checks.check(f"{device} {name}: nothing", None if nothing.returncode == 0 else "failed", nothing)
        check(checks, name, [*flags, f"--input={ENDLESS}"], device, nothing.resident)


# Programs of the fixtures: file, function, arguments.
ATTACKS = [("a", "deep", [ENDLESS]), ("a", "many", []), ("align", "f", ["200000", "65536"]),
           *[("hal", function, [ENDLESS]) for function in ("held", "executables", "cmds", "cmdbufs", "fences", "zerobufs")]]


def check_attacks(checks, folder, like):
    base = Process([f"--module={like}", "--device=local-sync", "--function=fences", "--input=0"], resource.RLIM_INFINITY)
    for file, function, arguments in ATTACKS:
        flags = [f"--module={os.path.join(folder, file)}.vmasm", "--device=local-sync", f"--function={function}"]
        check(checks, f"{file} {function}", flags + [f"--input={argument}" for argument in arguments], "local-sync",
              base.resident)


# Parameters that stay in their file are not charged, and what the host notes about them must not grow. %i0 times, a call loads
# ten thousand parts of one byte from two places of a parameter, and drops them.
PARAMETERS = """vm.module @parameters
vm.import @hal.devices.get cconv "0i_r"
vm.import @io_parameters.load cconv "0rIrrrIiirrr_r"
vm.rodata[0] = "m"
vm.rodata[1] = "a"
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 -1
  %i6:7 = vm.const.i64 80000
  %i8:9 = vm.const.i64 240000
  %i10:11 = vm.const.i64 10000
  %i12:13 = vm.const.i64 0x0000000100000000
  %i14 = vm.const.i32 64
  %i15 = vm.const.i32 0x80C03
  %i16:17 = vm.const.i64 1
  %i18:19 = vm.const.i64 6
  %i22:23 = vm.const.i64 30000
  %i24 = vm.const.i32 1
  %i28:29 = vm.const.i64.zero
  %i30:31 = vm.const.i64 524288
  %r0 = vm.call @hal.devices.get(%i1)
  %r1 = vm.const.ref.zero
  %r2 = vm.const.ref.rodata 0
  %r3 = vm.const.ref.rodata 1
  %r4 = vm.buffer.alloc %i6:7, %i14
  vm.buffer.fill.i64 %r4, %i2:3, %i10:11, %i12:13
  %r5 = vm.buffer.alloc %i8:9, %i14
  vm.br ^bb1
^bb1:
  %i25 = vm.cmp.lt.i64.u %i28:29, %i22:23
  vm.cond_br %i25, ^bb2, ^bb3
^bb2:
  // Offset in the parameter, offset in the buffer, length: two spans.
  %i32:33 = vm.const.i64 2
  %i32:33 = vm.add.i64 %i28:29, %i32:33
  vm.buffer.store.i64 %i16:17, %r5, %i32:33
  %i34:35 = vm.const.i64 3
  %i32:33 = vm.add.i64 %i28:29, %i34:35
  vm.buffer.store.i64 %i30:31, %r5, %i32:33
  %i34:35 = vm.const.i64 5
  %i32:33 = vm.add.i64 %i28:29, %i34:35
  vm.buffer.store.i64 %i16:17, %r5, %i32:33
  %i28:29 = vm.add.i64 %i28:29, %i18:19
  vm.br ^bb1
^bb3:
  vm.cond_br %i0, ^bb4, ^bb5
^bb4:
  %r6 = vm.call @io_parameters.load(%r0, %i4:5, %r1, %r1, %r2, %i4:5, %i1, %i15, %r4, %r3, %r5)
  vm.discard.refs %r6
  %i0 = vm.sub.i32 %i0, %i24
  vm.br ^bb3
^bb5:
  vm.return %i0
}
"""


def check_parameters(checks, folder):
    program, file = os.path.join(folder, "parameters.vmasm"), os.path.join(folder, "p.safetensors")
    vmrun.write(program, PARAMETERS)
    header = b'{"a":{"dtype":"U8","shape":[1000000],"data_offsets":[0,1000000]}}'.ljust(120)  # the data begins at byte 128
    limit = 12 * MIB
    vmrun.write(file, len(header).to_bytes(8, "little") + header + bytes(1000000))
    flags = [f"--module={program}", "--device=local-sync", f"--parameters=m={file}", f"--max_memory={limit}"]
    nothing = Process([*flags, "--input=0"], resource.RLIM_INFINITY)
    checks.check("parameters: nothing", None if nothing.returncode == 0 else "failed", nothing)
    done = Process([*flags, "--input=150"], resource.RLIM_INFINITY)
    wrong = None if done.returncode == 0 else "failed"
    grown = done.resident - nothing.resident
    if wrong is None and grown > 1.25 * limit:
        wrong = f"grew by {grown / MIB:.1f} MiB under a limit of {limit / MIB:.0f} MiB"
    checks.check("parameters in place", wrong, done)


def main(checks, folder):
    if installed.cache("HALYARD_SANITIZE"):
        vmrun.skip("sanitizers take memory of their own")
    def written(name, ways):
        path = os.path.join(folder, name + ".vmasm")
        vmrun.write(path, program(ways))
        return path

    check_parameters(checks, folder)
    check_ways(checks, written("host", HOST), "local-sync", HOST)
    path = written("devices", DEVICES)
    check_ways(checks, path, "local-sync", DEVICES)
    check_ways(checks, path, "local-task?workers=2", [name for name in DEVICES if "held" in name or "ran" in name])
    attacks = os.path.join(vmrun.fixtures() or "", "attacks")
    if os.path.isdir(attacks):
        check_attacks(checks, attacks, path)
