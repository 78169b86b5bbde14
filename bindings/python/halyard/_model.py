"""Loading: from a file to functions that can be called."""

import math
import os
import threading
import weakref

from ._halyard import Context, FailedPreconditionError, Function, Program
from ._signature import Signature


def load(source, *, device=None, devices=None, parameters=None, functions=(), instance=None, threads="lock",
         max_memory=0, max_stack=0, timeout=None, capture=None, verify=False, preload=False, native=False, channels=None):
    """Loads a program and makes it ready to run.

    source      a path (.vmfb, .vmasm), the bytes of a module, or a list of these; a module may import from earlier ones,
                and the last one is the model
    device      where the program runs: "local-task", "vulkan://0", or a halyard.Device. Default, if the program needs a
                device: local-task, or local-sync if there is no local-task
    devices     a list of devices, in the order of the program's device numbers; use it instead of `device`
    parameters  a path, or {scope: path}, or {scope: {name: array}}; each path may also be a list of paths
    functions   Python functions that the program imports (see halyard.function)
    threads     how several threads may call: "lock" (one at a time, with one state) or "context" (at the same time, each
                with its own state)
    max_memory  bytes of memory that the program may use; 0: no limit
    max_stack   bytes of the stack of one call; 0: the default, 8 MiB
    timeout     seconds that each call may take, more than 0; None: no limit. model.main(x, timeout=0.5) limits one call
    capture     a file to which all executed command buffers are written (docs/captures.md)
    verify      if true, verifies all functions now, not at their first call
    preload     if true, reads the files into memory; they may then be changed or deleted
    native      if true, `source` may contain native modules (shared libraries)
    channels    a halyard.Channels: the program's rank among several. Default: the rank that the launcher (mpirun) sets
    """
    return Model(source, device=device, devices=devices, parameters=parameters, functions=functions, instance=instance,
                 threads=threads, max_memory=max_memory, max_stack=max_stack, timeout=timeout, capture=capture,
                 verify=verify, preload=preload, native=native, channels=channels)


def _nanoseconds(timeout):
    """The time limit for a Context, in which 0 is no limit; so a short one is rounded up."""
    if timeout is None:
        return 0
    try:
        is_positive = not math.isnan(timeout) and timeout > 0
    except TypeError:
        raise TypeError(f"timeout must be a number of seconds or None, not {type(timeout)!r}") from None
    if not is_positive:
        raise ValueError(f"timeout must be more than 0 seconds, not {timeout!r}; None is no limit")
    nanoseconds = float(timeout) * 1e9
    return math.ceil(nanoseconds) if nanoseconds < 2**63 else 0


class Model:
    """A program that is ready to run. Its functions are its attributes. Created by halyard.load."""

    def __init__(self, source, *, device, devices, parameters, functions, instance, threads, max_memory, max_stack,
                 timeout, capture, verify, preload, native, channels):
        if threads not in ("lock", "context"):
            raise ValueError(f"threads must be 'lock' or 'context', not {threads!r}")
        if instance is None:
            from . import instance as common

            instance = common()
        if device is not None and devices is not None:
            raise TypeError("give either device or devices, not both")
        from ._native import native_programs

        self.instance = instance
        sources = source if isinstance(source, (list, tuple)) else [source]
        if not sources:
            raise ValueError("the list of modules is empty; expected a path or bytes for each module")
        self._programs = [Program(instance, item, verify=verify, preload=preload, native=native) for item in sources]
        self.program = self._programs[-1]
        needs_device = any(program.info()["needs_devices"] for program in self._programs)
        if devices is None:
            devices = [] if device is None and not needs_device else [device]
        self.devices = [self._open(item) for item in devices]
        self._programs = native_programs(instance, functions, self.devices[0] if self.devices else None) + self._programs
        self._options = {"max_memory": max_memory, "max_stack": max_stack,
                         "max_time_ns": _nanoseconds(timeout), "preload": preload}
        if channels is not None:
            self._options["channels"] = channels
        if capture is not None:
            self._options["capture_path"] = capture
        self._signatures = {}
        info = self.program.info()
        for index in range(info["function_count"]):
            description = self.program.function(index)
            self._signatures[description["name"]] = description
        self.name = info["name"]
        from ._parameters import parameter_files

        with parameter_files(parameters) as files:
            self._files = list(files)
            state = _State(self._make_context())
            if threads == "context" and any(is_temporary for _, _, is_temporary in self._files):
                raise ValueError("parameters given as arrays work only with threads='lock'; save them to a file with "
                                 "halyard.save_parameters")
        self._state = state
        self._states = weakref.WeakSet([state])  # with one for each other thread, if threads="context"
        self._local = threading.local() if threads == "context" else None
        if self._local is not None:
            self._local.state = state

    def _open(self, given):
        if given is None:
            names = {name for row in self.instance.search() if row["outcome"] == "accepted" and not row["is_folder"]
                     for name in row["drivers"].split(",")}
            given = "local-task" if "local-task" in names else "local-sync"
        return self.instance.open(given) if isinstance(given, str) else given

    def _make_context(self):
        if self.program is None:
            raise FailedPreconditionError("the model is closed; load it again")
        return Context(self.instance, self._programs, self.devices, [(scope, path) for scope, path, _ in self._files],
                       arrays=tuple(path for _, path, is_temporary in self._files if is_temporary), **self._options)

    @property
    def functions(self):
        """The names of the model's functions."""
        return [name for name in self._signatures if not name.startswith("__")]

    def signature(self, name):
        """The arguments and results of a function, as its source declares them."""
        return Signature(self._describe(name)).declaration

    def _describe(self, name):
        try:
            return self._signatures[name]
        except KeyError:
            import difflib

            near = difflib.get_close_matches(name, self.functions, 1)
            hint = f"; did you mean '{near[0]}'?" if near else "."
            # Python's traceback would add its own suggestion, from the attributes of `obj`.
            raise AttributeError(f"'{self.name}' has no function '{name}'{hint} It has: {', '.join(self.functions)}",
                                 name=name, obj=None) from None

    def _function(self, context, name):
        signature = Signature(self._describe(name))
        return Function(context, None, name, signature.arguments, signature.result_count, is_async=signature.is_async,
                        declaration=signature.declaration, prepare=signature.prepare(), finish=signature.finish(),
                        has_timeout=signature.has_timeout, has_out=signature.has_out, about=signature)

    def _function_of(self, state, name):
        function = state.functions.get(name)
        if function is None:
            function = state.functions[name] = self._function(state.context, name)
        return function

    def __getitem__(self, name):
        """model["main"], for functions whose names are not attributes."""
        if self._local is None or name.startswith("_"):
            return self._function_of(self._state, name)
        self._describe(name)
        return _PerThread(self, name)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        function = self.__dict__[name] = self[name]  # found without __getattr__ from now on
        return function

    def _of_this_thread(self, name):
        if not hasattr(self._local, "state"):
            self._local.state = _State(self._make_context())
            self._states.add(self._local.state)
        return self._function_of(self._local.state, name)

    def close(self):
        """Frees the memory of the program, and the devices that the model opened. Waits for the call under way; later calls
        raise FailedPreconditionError. Tensors stay valid. `with halyard.load(...) as model:` closes the model at its end."""
        for state in list(self._states):
            state.close()
        self._programs, self.program, self.devices = [], None, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __dir__(self):
        return [*super().__dir__(), *self.functions]

    def __repr__(self):
        return f"<halyard.Model {self.name}: {', '.join(self.functions)}>"


class _State:
    """A context and the functions that belong to it."""

    def __init__(self, context):
        self.context = context
        self.functions = {}

    def close(self):
        self.context.close()
        for function in self.functions.values():
            function.close()


class _PerThread:
    """A function of a model that has a state for each thread."""

    def __init__(self, model, name):
        self._model = model
        self.__name__ = name

        about = Signature(model._describe(name))
        self.declaration, self.inputs, self.outputs = about.declaration, about.inputs, about.outputs
        self.__signature__, self.__doc__ = about.python_signature, about.documentation

    def __call__(self, *arguments, **keywords):
        return self._model._of_this_thread(self.__name__)(*arguments, **keywords)

    def bind(self, *arguments, **keywords):
        return self._model._of_this_thread(self.__name__).bind(*arguments, **keywords)

    def call_async(self, *arguments, **keywords):
        return self._model._of_this_thread(self.__name__).call_async(*arguments, **keywords)

    def __repr__(self):
        return f"<halyard.Function {self.declaration}>"
