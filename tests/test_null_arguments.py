"""Every function of libhalyard and every service for native modules, as the headers declare them: each pointer null in turn, and
each count huge. Where null has no meaning the status is INVALID_ARGUMENT and its message says what is null; nothing ends the
process. A function that this file gives no arguments for is a failure, and so is one that does not work with those it gives."""
import os
import pathlib
import re
import signal
import sys
import traceback

import vmrun

try:
    import cffi
except ImportError:
    vmrun.skip("cffi is not installed (Debian package python3-cffi)")

OK, INVALID_ARGUMENT = 0, 3
HUGE = (2**64 - 1, 2**63, 2**61 + 1, 2**32 - 1)
MEMORY = 2**56  # bytes; no address space is larger
HANG = 60  # seconds after which a call has hung, which is a failure

PROGRAM = """
vm.module @m
vm.export @add
vm.func @add(%i0: i32, %i1: i32) -> (i32) {
  %i0 = vm.add.i32 %i0, %i1
  vm.return %i0
}
"""

# Where the headers allow null.
MAY_BE_NULL = set("""
halyard_compiler_find.name halyard_compiler_find.path halyard_retain.handle halyard_release.handle halyard_free.memory
halyard_status_create.message halyard_status_retain.status halyard_status_release.status halyard_status_code.status
halyard_status_message.status halyard_status_text.status
halyard_trace_create.path halyard_trace_begin.trace halyard_trace_begin.name halyard_trace_end.trace halyard_trace_track.trace
halyard_trace_track.name halyard_trace_span.trace halyard_trace_span.name halyard_trace_observe.observe
halyard_trace_observe.user
halyard_instance_create.options halyard_instance_run.ran halyard_instance_interrupt_run.instance
halyard_instance_devices.driver halyard_device_uri.device
halyard_driver_probe.step halyard_driver_probe.user halyard_device_sharing.owner halyard_device_sharing.user
halyard_module_warnings.out_size halyard_context_create.instance halyard_context_find.module
halyard_call_state.call halyard_call_deadline.call halyard_call_on_ready.call halyard_call_on_ready.ready
halyard_call_on_ready.user halyard_call_cancel.call halyard_call_arm.call halyard_call_trace.call halyard_object_type.object
halyard_view_create.device halyard_view_create.data halyard_assemble.options halyard_disassemble.options
halyard_disassemble.out_size halyard_module_describe.out_size halyard_compiler_explain.function
halyard_module_analyze.options halyard_module_analyze.out_size halyard_device_memory_log.out_size
halyard_compiler_explain.out_size halyard_capture_describe.out_size halyard_channels_create.options
halyard_fence_fail.failure halyard_fence_on_reached.user halyard_view_import.device halyard_view_import.release
halyard_view_import.user halyard_view_import.is_copy halyard_view_import_fd.is_copy
halyard_view_unmap.view halyard_dlpack_release.tensor halyard_dlpack_release_unversioned.tensor
halyard_view_from_dlpack.device halyard_view_from_dlpack.is_copy halyard_view_from_dlpack_unversioned.device
halyard_view_from_dlpack_unversioned.is_copy halyard_view_import_fd.device halyard_replay_create_with.options
service.wakeup_wake.wakeup service.object_create.pointer service.buffer_wrap.released service.buffer_wrap.user
service.import_is_resolved.call
""".split())

# What complete arguments cannot have here: an installed compiler, an execution in the capture, a file descriptor, a communicator,
# a call that is suspended or done, a fence that is reached, an event loop in the child of fork() that each call is made in, objects of a native module's own type (native_object_test.cpp).
NEED_NOT_WORK = set("""
halyard_compiler_find halyard_compiler_explain halyard_replay_execute halyard_replay_execute_to halyard_replay_measure
halyard_replay_cut halyard_capture_read halyard_view_import_fd halyard_capture_execution
halyard_channels_import halyard_instance_run halyard_call_resume halyard_call_results halyard_fence_wait halyard_fences_wait
service.call_wait service.object_create service.object_pointer service.import_call service.call_keep service.call_take service.call_stopped
""".split())


# Refused for another reason, which the message gives: no modules, and for services no running call and no type of a module.
REFUSED_BEFORE = {"halyard_context_create.options", "service.call_wait.out", "service.object_pointer.object",
                  "service.import_call.import_call", "service.call_keep.kept", "service.call_take.kept"}


def declarations():
    """(the header as cffi reads it, {function: [(type, name)...]} with the services of native modules under `service.`)."""
    text = pathlib.Path(vmrun.BUILD, "cdef", "halyard-cdef.h").read_text()

    def parameters(found):
        if found.strip() == "void":
            return []
        each = [" ".join(one.split()) for one in re.split(r",(?![^()]*\))", found)]
        return [("function*", re.search(r"\(\*(\w+)\)", one)[1]) if "(*" in one else
                tuple(re.fullmatch(r"(.*?[ *])(\w+)", one).groups()) for one in each]

    declared = {}
    for name, found in re.findall(r"\n[\w* ]*?\b(halyard_\w+)\s*\(([^;{}]*)\)\s*;", text):
        declared[name] = [(kind.strip(), name) for kind, name in parameters(found)]
    services = re.search(r"typedef struct halyard_module_services \{(.*?)\} halyard_module_services_t;", text, re.S)[1]
    for name, found in re.findall(r"\(\*(\w+)\)\s*\(((?:[^()]|\([^()]*\))*)\)\s*;", services):
        declared["service." + name] = [(kind.strip(), name) for kind, name in parameters(found)]
    return text, declared


class World:
    """What valid arguments are made of."""

    def __init__(self, folder):
        text, self.declared = declarations()
        self.ffi = cffi.FFI()
        self.ffi.cdef(text)
        self.lib = self.ffi.dlopen(f"{vmrun.BUILD}/lib/libhalyard.so")
        self.services = self.lib.halyard_module_services()
        self.keep = []
        ffi = self.ffi
        self.module_bytes = vmrun.assemble(PROGRAM, folder)
        self.module_path = os.path.join(folder, "m.vmfb")
        pathlib.Path(self.module_path).write_bytes(self.module_bytes)
        self.capture_path = os.path.join(folder, "m.capture")
        self.trace_path = os.path.join(folder, "m.trace")
        make = self.made
        options = self.struct("halyard_instance_options_t")
        options.flags = 1 << 2 | 1 << 3  # COUNT_OBJECTS, RUN_BY_EMBEDDER
        self.instance = make("instance_create", options)
        self.device = make("device_open", self.instance, b"local-sync")
        self.module = make("module_load_file", self.instance, self.module_path.encode(), 0)
        self.context = self.make_context(capture_path=self.capture_path)
        self.function = make("context_find", self.context, ffi.NULL, b"add")
        self.call = make("call_create", self.context)
        self.search = make("instance_search", self.instance)
        self.trace = make("trace_create", self.trace_path.encode())
        self.list = make("list_create", 0)
        self.append(self.list)
        self.lib.halyard_release(self.make_context(capture_path=self.capture_path))
        self.capture = make("capture_open", self.capture_path.encode(), 1)
        self.replay = make("replay_create", self.capture, self.device)
        self.signature = make("function_signature", self.function)
        self.channels = make("channels_create", ffi.NULL)
        self.buffer = self.service_made("buffer_create", 16, 0)

    def keeps(self, value):
        self.keep.append(value)
        return value

    def checked(self, status):
        if status:
            sys.exit("FAILED: " + self.message(status))

    def message(self, status):
        return self.ffi.string(self.lib.halyard_status_text(status)).decode()

    def made(self, name, *arguments):
        out = self.ffi.new(self.pointee("halyard_" + name, -1))
        self.checked(getattr(self.lib, "halyard_" + name)(*arguments, out))
        return out[0]

    def service_made(self, name, *arguments):
        out = self.ffi.new("halyard_object_t*")
        self.checked(getattr(self.services, name)(*arguments, out))
        return out[0]

    def pointee(self, function, at):
        return self.declared[function][at][0]

    def make_context(self, capture_path):
        options = self.struct("halyard_context_options_t")
        options.modules = self.keeps(self.ffi.new("halyard_module_t[1]", [self.module]))
        options.module_count = 1
        options.devices = self.keeps(self.ffi.new("halyard_device_t[1]", [self.device]))
        options.device_count = 1
        options.capture_path = self.keeps(self.ffi.new("char[]", capture_path.encode()))
        return self.made("context_create", self.instance, options)

    def append(self, target):
        value = self.ffi.new("halyard_value_t*")
        value.kind = 1
        self.checked(self.lib.halyard_list_append(target, value))

    def view(self):
        return self.made("view_create", self.device, 0x21000020, self.ffi.new("int64_t[1]", [4]), 1, self.ffi.NULL, 16)

    def struct(self, kind):
        value = self.keeps(self.ffi.new(kind + "*"))
        fields = dict(self.ffi.typeof(kind).fields)
        if "struct_size" in fields:
            value.struct_size = self.ffi.sizeof(kind)
        return value

    def text(self, value):
        return self.keeps(self.ffi.new("char[]", value.encode()))

    def argument(self, function, kind, name):
        """A valid value of a parameter; None: this file knows none."""
        ffi = self.ffi
        if (special := self.special(function, name)) is not None:
            return special
        by_name = {"view": self.view, "list": lambda: self.list, "object": self.view, "buffer": lambda: self.buffer,
                   "fence": lambda: self.made("fence_create", self.device)}
        if kind == "halyard_object_t":
            return by_name[name]()
        handle = re.fullmatch(r"halyard_(\w+)_t", kind)
        if handle and handle[1] in ("instance", "device", "module", "context", "function", "call", "search", "trace", "capture",
                                    "replay", "signature", "channels"):
            return getattr(self, handle[1])
        texts = {"path": self.module_path, "uri": "local-sync", "driver": "local-sync", "category": "hal.device.id",
                 "key": "*", "format": "vmvx-bytecode-fb", "module": "m", "name": "add", "message": "text", "id": "x", "kind": "x",
                 "function": "add", "text": PROGRAM, "note": "text"}
        if kind == "const char*":
            return self.text(texts[name]) if name in texts else None
        if kind == "halyard_text_t":
            text = "1xf32" if "type" in function else "1xf32=1"
            return ffi.new("halyard_text_t*", {"data": self.text(text), "size": len(text)})[0]
        if kind == "halyard_status_t":
            return self.lib.halyard_status_create(5, b"text")
        if kind == "halyard_status_code_t":
            return 5
        numbers = {"index": 0, "count": 1, "rank": 1, "size": 16, "length": 16, "offset": 0, "number": 0, "flags": 0, "form": 0,
                   "access": 1, "element_type": 0x21000020, "element_kind": 0, "timeout_ms": 0, "timeout_ns": 0, "bit": 0,
                   "operation": 1, "sanitizer": 0, "phase": 0, "track": 0, "begin_ns": 0, "end_ns": 1, "handle": 0,
                   "is_traced": 0, "deadline_ns": 2**63 - 1, "alignment": 0, "is_mutable": 1, "max_elements": 8, "max_depth": 8,
                   "argument_count": 2, "result_count": 1, "command": 0, "buffer": 0, "after": 0, "at_least_ns": 0,
                   "import": 0, "object_count": 1, "byte_count": 8}
        if "*" not in kind and kind not in ("halyard_release_fn", "halyard_fence_fn", "halyard_step_fn", "halyard_slice_fn"):
            return numbers.get(name)
        if name == "shape":
            return self.keeps(ffi.new("int64_t[1]", [4]))
        if name == "fences":
            return self.keeps(ffi.new("halyard_object_t[1]", [self.made("fence_create", self.device)]))
        if name in ("arguments", "value") and kind == "const halyard_value_t*":
            return self.keeps(ffi.new("halyard_value_t[2]", [{"kind": 1}, {"kind": 1}]))
        if name == "results":
            return self.keeps(ffi.new("halyard_value_t[1]"))
        if name in ("data", "target", "memory", "handle", "pointer", "user") and kind in ("void*", "const void*"):
            return self.keeps(ffi.new("char[64]"))
        if kind == "halyard_fence_fn":
            return self.keeps(ffi.callback("void(void*, halyard_status_t)", lambda user, status: None))
        if kind in ("halyard_release_fn", "halyard_step_fn", "halyard_slice_fn", "function*"):
            return ffi.NULL
        pointer = re.fullmatch(r"(?:const )?(?:struct )?(\w+)\*", kind)
        if pointer and re.search(r"_(info|options|totals|stats|entry|use|world|launch|fit|description|execution|result|times|build)(_t)?$",
                                 pointer[1]):
            return self.struct(pointer[1])
        if kind.endswith("*") and not kind.startswith("const"):
            return self.keeps(ffi.new(kind))
        return ffi.new(kind) if kind in ("const char**",) else None

    def special(self, function, name):
        ffi = self.ffi
        key = function + "." + name
        if key in ("halyard_retain.handle", "halyard_release.handle"):
            self.lib.halyard_retain(self.device)
            return ffi.cast("void*", self.device)
        if key == "halyard_free.memory":
            return ffi.cast("void*", self.lib.halyard_element_type_text(0x21000020))
        if name == "data" and function in ("halyard_disassemble", "halyard_module_describe", "halyard_compiler_explain",
                                           "halyard_module_analyze", "halyard_module_load_memory", "halyard_device_judge"):
            return self.keeps(ffi.new("char[]", self.module_bytes))
        if name == "size" and function in ("halyard_disassemble", "halyard_module_describe", "halyard_compiler_explain",
                                           "halyard_module_analyze", "halyard_module_load_memory", "halyard_device_judge"):
            return len(self.module_bytes)
        if key == "halyard_assemble.size":
            return len(PROGRAM)
        if key == "halyard_driver_probe.path":
            return self.text(os.path.join(vmrun.DRIVERS, "halyard-driver-local.so"))
        if key == "halyard_replay_cut.path":
            return self.text(self.capture_path + ".cut")
        if key == "halyard_trace_create.path":
            return self.text(self.trace_path)
        if key == "halyard_capture_open.path":
            return self.text(self.capture_path)
        if key == "halyard_capture_open.flags":
            return 1
        if key == "halyard_capture_describe.number":
            return 2**64 - 1
        if key == "halyard_context_create.options":
            options = self.struct("halyard_context_options_t")
            options.modules = self.keeps(ffi.new("halyard_module_t[1]", [self.module]))
            options.module_count = 1
            return options
        if key == "halyard_channels_create.options":
            options = self.struct("halyard_channels_options_t")
            options.rank = options.rank_count = -1
            return options
        if key == "halyard_device_open_with.settings":
            return self.keeps(ffi.new("halyard_device_setting_t[1]", [{"key": self.text("native"), "value": self.text("0")}]))
        if name == "definition":
            definition = self.struct("halyard_module_definition_t")
            definition.abi_version = 1
            definition.name = self.text("native")
            definition.export_size = ffi.sizeof("halyard_module_export_t")
            return definition
        if name == "tensor":
            versioned = "unversioned" not in function
            made = "view_to_dlpack" + ("" if versioned else "_unversioned")
            out = ffi.new(f"struct DLManagedTensor{'Versioned' if versioned else ''}**")
            self.checked(getattr(self.lib, "halyard_" + made)(self.view(), 1, out))
            return out[0]
        if key == "halyard_view_unmap.view":
            view = self.view()
            self.checked(self.lib.halyard_view_map(view, 1, ffi.new("void**"), ffi.new("size_t*")))
            return view
        if name == "type" and function.startswith("service."):
            return ffi.NULL  # made with a module's state only: native_object_test.cpp
        if name == "wakeup" and function.startswith("service."):
            return ffi.NULL
        if name == "call" and function.startswith("service."):
            return ffi.NULL
        if key == "halyard_view_import_fd.memory":
            memory = self.struct("halyard_fd_memory_t")
            return memory
        if key == "halyard_view_read.size":
            return 16
        return None

    def arguments(self, function):
        given = []
        for kind, name in self.declared[function]:
            value = self.argument(function, kind, name)
            if value is None:
                raise KeyError(f"this test has no argument for `{kind} {name}`: add one to World")
            given.append(value)
        return given

    def invoke(self, function, arguments):
        """(code, text) of the status; (None, "") from functions without one."""
        place = self.services if function.startswith("service.") else self.lib
        call = getattr(place, function.removeprefix("service."))
        result = call(*arguments)
        kind = self.ffi.typeof(call).result
        if kind.cname == "struct halyard_status *" and "status_" not in function.removeprefix("service."):
            return (self.lib.halyard_status_code(result), self.message(result)) if result else (OK, "")
        return None, ""


def is_pointer(kind):
    return "*" in kind or kind in ("halyard_release_fn", "halyard_fence_fn", "halyard_step_fn", "halyard_slice_fn") or (
        re.fullmatch(r"halyard_\w+_t", kind) is not None and kind not in ("halyard_text_t", "halyard_status_code_t"))


COUNTS = {"count", "rank", "size", "argument_count", "result_count", "index", "number", "offset", "length", "max_elements",
          "max_depth", "alignment"}
# Where a huge number is valid: it is an upper bound.
MAY_BE_HUGE = {"halyard_view_text.max_elements", "halyard_list_check.max_elements", "halyard_list_check.max_depth",
               "halyard_capture_describe.number"}


def bits(kind):
    return 32 if kind == "uint32_t" else 64


def is_huge(function, parameters, at, number):
    """Whether no caller can mean it. A count says how much memory there is at a pointer, and 4 GiB may well be."""
    kind, name = parameters[at]
    if number >= 2**bits(kind):
        return False
    if name in ("size", "length") or (name == "count" and kind == "size_t"):
        return number * (1 if name != "count" else 8) > MEMORY
    return True


def arrays_of(world, kind):
    """The arrays in a struct that a caller passes: (field, field of its count)."""
    struct = re.fullmatch(r"const (?:struct )?(halyard_\w+(?:options_t|definition))\*", kind)
    fields = dict(world.ffi.typeof(("struct " if struct[1].endswith("definition") else "") + struct[1]).fields) if struct else {}
    for count in fields:
        stem = count.removesuffix("_count")
        if count.endswith("_count") and count != "rank_count":
            yield next(name for name in (stem + "s", stem.removesuffix("y") + "ies") if name in fields), count


def cases(world):
    for function, parameters in sorted(world.declared.items()):
        yield function, "valid", None, None
        for at, (kind, name) in enumerate(parameters):
            for field, count in arrays_of(world, kind):
                for number in (1, 2**32 - 1, 2**64 - 1):
                    yield function, "field", at, (field, count, number)
        for at, (kind, name) in enumerate(parameters):
            if is_pointer(kind):
                yield function, "null", at, None
            if name in COUNTS and "*" not in kind:
                for huge in HUGE:
                    if is_huge(function, parameters, at, huge):
                        yield function, "huge", at, huge


def wrong_with(world, function, what, at, number):
    """What is wrong with the answer to one call; None: nothing."""
    arguments = world.arguments(function)
    parameters = world.declared[function]
    if what == "valid":
        code, text = world.invoke(function, arguments)
        return text if code not in (None, OK) and function not in NEED_NOT_WORK else None
    kind, name = parameters[at]
    key = f"{function}.{name}"
    if what == "field":
        field, count, number = number
        setattr(arguments[at], field, world.ffi.NULL)
        setattr(arguments[at], count, min(number, 2**(8 * world.ffi.sizeof(dict(
            world.ffi.typeof(arguments[at]).item.fields)[count].type)) - 1))
        code, text = world.invoke(function, arguments)
        named = field in text or field == "exports" and "functions" in text
        return None if code == INVALID_ARGUMENT and named else f"{count} = {number} of null: found {text or 'success'}"
    arguments[at] = number if what == "huge" else world.ffi.NULL
    code, text = world.invoke(function, arguments)
    if what == "huge":
        return None if code != OK or key in MAY_BE_HUGE else f"{name} = {number} is accepted"
    if code is None or key in MAY_BE_NULL:
        return None
    if code != INVALID_ARGUMENT:
        return f"null for {name}: expected INVALID_ARGUMENT, found {text or 'success'}"
    if key in REFUSED_BEFORE:
        return None
    words = {name, kind.removeprefix("halyard_").removesuffix("_t"), {"channels": "channel_provider"}.get(name, name),
             {"view": "buffer_view"}.get(name, name)}
    return None if any(word in text for word in words) else f"null for {name}: the message does not name it: {text}"


def in_child(world, case):
    """As wrong_with, in a process of its own."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(HANG)
        try:
            wrong = wrong_with(world, *case)
        except KeyError as error:
            wrong = error.args[0]
        except BaseException:
            wrong = traceback.format_exc()
        os.write(theirs, (wrong or "").encode()[:4000])
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        wrong = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"ends with {signal.Signals(os.WTERMSIG(status)).name}"
    return wrong or None


def exported():
    lines = vmrun.subprocess.run(["nm", "-D", "--defined-only", "--format=posix", f"{vmrun.BUILD}/lib/libhalyard.so"],
                                 text=True, check=True, stdout=vmrun.subprocess.PIPE).stdout.splitlines()
    return {line.split()[0].split("@")[0] for line in lines}


def main(checks, folder):
    if vmrun.is_emulated():
        vmrun.skip("the library is for another processor than the interpreter")
    world = World(folder)
    functions = exported()
    missing = sorted(functions - set(world.declared))
    checks.check("every exported function is declared", f"not in the headers as read here: {missing}" if missing else None)
    for name in set(world.declared) - functions:
        if not name.startswith("service."):
            del world.declared[name]  # of native modules: halyard_module_negotiate
    wrong = {}
    count = 0
    for case in cases(world):
        count += 1
        function, what, at, number = case
        found = in_child(world, case)
        if found:
            name = world.declared[function][at][1] if at is not None else ""
            wrong.setdefault(function, []).append(f"{what} {name} {'' if number is None else number}: {found}")
    for function in sorted(world.declared):
        checks.check(function, "\n  ".join(wrong[function]) if function in wrong else None)
    checks.check("number of calls", None if count > 500 else f"{count}; expected more than 500")
    print(count, "calls")
