"""Programs with native device code, from the command line: results, refusal, plugins, damaged code."""
import os

import vmrun

LIBRARIES = os.path.join(vmrun.BUILD, "tests", "libraries")
INPUTS = ["--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2"]
EXPECTED = "EXEC @mul\nresult[0]: hal.buffer_view\n8xf32=2 4 6 8 10 12 14 16\n"


def program(format_name, code):
    """examples/elementwise_mul.vmasm with other device code."""
    text = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"))
    text = text.replace('vm.rodata[1] = "vmvx-bytecode-fb"', 'vm.rodata[1] = "%s"' % format_name)
    begin = text.index("vm.rodata[6] = module {")
    end = text.index("\n}\n", text.index("\n  }\n", begin)) + 3
    return text[:begin] + "vm.rodata[6] = " + code.hex() + "\n" + text[end:]


def main(folder):
    architecture = vmrun.ARCHITECTURES.get(vmrun.processor())
    if not architecture:
        vmrun.skip("no native executables on " + vmrun.processor())
    failed = []

    def expect(what, done, *parts):
        if parts:
            wrong = vmrun.why_bad_failure(done, *parts)
        else:
            wrong = None if (done.returncode, done.stdout) == (0, EXPECTED) else "another result"
        if wrong:
            failed.append(what)
            print(f"{what}: {wrong}\n  exit {done.returncode}\n  {done.stdout!r}\n  {done.stderr!r}")

    def module(kind, code, name):
        vmrun.assemble(program(f"{kind}-elf-{architecture}", code), folder, name)
        return "--module=" + os.path.join(folder, name + ".vmfb")

    for kind in "embedded", "system":
        for revision in 5, 6:
            code = vmrun.read(os.path.join(LIBRARIES, f"mul{revision}.{kind}.so"))
            if kind == "embedded":
                code_of_embedded = code
            good = module(kind, code, f"{kind}{revision}")
            for device in "local-sync", "local-task", "local-task?workers=1":
                run = ["vm-run", good, "--device=" + device, *INPUTS]
                expect(f"{kind} {revision} on {device}", vmrun.run(*run))
                expect("allowed", vmrun.run(*run, "--allow-native=yes"))
                # A program that searches for a device with its format finds none.
                expect("refused", vmrun.run(*run, "--allow-native=no"), "no device runs")
        # Truncated, with a damaged header, for another processor: an error, and no code of the module runs.
        for name, bad in {"cut": code[:200], "magic": b"\x7fELG" + code[4:],
                          "machine": code[:18] + b"\x02\x00" + code[20:], "empty": b""}.items():
            expect(f"{kind} {name}", vmrun.run("vm-run", module(kind, bad, name), "--device=local-sync", *INPUTS),
                   "FAILED_PRECONDITION")
    # Compilers write the target processor into the text of a failure.
    target = ('#hal.executable.target<\\"llvm-cpu\\", \\"%s\\", {cpu = \\"x\\", cpu_features = \\"+%s,-x\\"}>')
    features = ["sse3", "xop", "fma4", "sse4a", "amx-tile", "fp-armv8", "sme2p1"]
    for feature in features if vmrun.starts_itself() else []:  # hal-info asks the driver in a process of its own
        answer = vmrun.run("hal-info", "query", "local-sync", "hal.cpu", feature).stdout.split()
        text = program(f"embedded-elf-{architecture}", code_of_embedded)
        text = text.replace('"no device runs vmvx', 'e"' + target % (f"embedded-elf-{architecture}", feature) + " vmvx")
        vmrun.assemble(text, folder, feature)
        done = vmrun.run("vm-run", "--module=" + os.path.join(folder, feature + ".vmfb"), "--device=local-sync", *INPUTS)
        if answer and answer[-1] == "0":
            expect("for a processor with " + feature, done, "INCOMPATIBLE", feature)
        else:
            expect("for a processor with " + feature, done)
    # A compiled program with code for another processor: the device names that processor and its own.
    fixtures = vmrun.fixtures()
    if fixtures:
        other, name = (("arm_64", "compiled-arm64/simple_mul.llvm-cpu-arm64") if architecture != "arm_64" else
                       ("x86_64", "compiled/simple_mul.llvm-cpu"))
        done = vmrun.run("vm-run", f"--module={fixtures}/{name}.vmfb", "--device=local-sync", "--function=simple_mul",
                         "--input=4xf32=1", "--input=4xf32=1")
        expect("code for another processor", done, "INCOMPATIBLE", f"is for {other} processors",
               f"this device is {architecture}")
    plugin = "--executable_plugin=" + os.path.join(LIBRARIES, "plugin.so")
    run = ["vm-run", good, "--device=local-sync", *INPUTS]
    expect("a plugin that is not needed", vmrun.run(*run, plugin, plugin + "&add=3"))
    expect("no plugin", vmrun.run(*run, "--executable_plugin=/no/such/plugin.so"), "NOT_FOUND", "/no/such/plugin.so")
    expect("plugin of nothing", vmrun.run(*run, plugin, "--allow-native=no"), "INVALID_ARGUMENT", "plugin.so")
    expect("neither", vmrun.run(*run, "--allow-native=perhaps"), "INVALID_ARGUMENT", "perhaps")
    # VMVX code is not native code.
    done = vmrun.run("vm-run", "--module=examples/elementwise_mul.vmasm", "--device=local-sync", *INPUTS,
                     "--allow-native=no")
    expect("vmvx", done)
    return len(failed)
