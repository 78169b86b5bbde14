"""Loading: from a file to functions that can be called."""

import os
import threading

from ._halyard import Context, Error, Function, NotFoundError, Program
from ._signature import Signature


def load(source, *, device=None, devices=None, parameters=None, functions=(), instance=None, threads="lock",
         max_memory=0, max_stack=0, timeout=None, capture=None, verify=False, preload=False, native=False, channels=None):
    """Loads a program and makes it ready to run.

    source      a path (.vmfb, .vmasm), the bytes of a module, or a list of those: later ones may import from earlier
                ones, and the last is the model
    device      where it runs: "local-task", "vulkan://0", a halyard.Device. Default: local-task where it is there, for
                programs that need a device
    devices     instead: a list of them, in the order in which the program counts them
    parameters  a path, or {scope: path}, or {scope: {name: array}}; a list of paths in place of one
    functions   functions of Python that it imports (see halyard.function)
    threads     what happens when several threads call: "lock" (one after the other, one state) or "context" (each
                thread has a state of its own, and they run at once)
    max_memory  bytes that the program may take; 0: no limit
    timeout     seconds that any one call may take; None: no limit. A single call is limited with model.main(x, timeout=0.5)
    capture     a file that gets every command buffer that is executed (docs/captures.md)
    verify      verifies every function now
    preload     reads files into memory: they may change or go afterwards
    native      also takes native modules (shared libraries) for `source`
    channels    a halyard.Channels: the rank that it is in a program of several. Default: what the launcher (mpirun) says
    """
    return Model(source, device=device, devices=devices, parameters=parameters, functions=functions, instance=instance,
                 threads=threads, max_memory=max_memory, max_stack=max_stack, timeout=timeout, capture=capture,
                 verify=verify, preload=preload, native=native, channels=channels)


class Model:
    """A program that is ready to run; its functions are its attributes. Made by halyard.load."""

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
        self._programs = [Program(instance, item, verify=verify, preload=preload, native=native) for item in sources]
        self.program = self._programs[-1]
        needs_device = any(program.info()["needs_devices"] for program in self._programs)
        if devices is None:
            devices = [] if device is None and not needs_device else [device]
        self.devices = [self._open(item) for item in devices]
        self._programs = native_programs(instance, functions, self.devices[0] if self.devices else None) + self._programs
        self._options = {"max_memory": max_memory, "max_stack": max_stack,
                         "max_time_ns": int(timeout * 1e9) if timeout is not None else 0, "preload": preload}
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
            self._context = self._make_context()
            if threads == "context" and any(is_temporary for _, _, is_temporary in self._files):
                raise ValueError("parameters given as arrays can be used with threads='lock' only")
        self._local = threading.local() if threads == "context" else None
        if self._local is not None:
            self._local.context = self._context
            self._local.functions = {}

    def _open(self, given):
        if given is None:
            names = {name for row in self.instance.search() if row["outcome"] == "accepted" and not row["is_folder"]
                     for name in row["drivers"].split(",")}
            given = "local-task" if "local-task" in names else "local-sync"
        return self.instance.open(given) if isinstance(given, str) else given

    def _make_context(self):
        return Context(self.instance, self._programs, self.devices, [(scope, path) for scope, path, _ in self._files],
                       arrays=tuple(path for _, path, is_temporary in self._files if is_temporary), **self._options)

    @property
    def functions(self):
        """The names of its functions."""
        return [name for name in self._signatures if not name.startswith("__")]

    def signature(self, name):
        """What a function takes and gives, as its source declares it."""
        return Signature(self._describe(name)).declaration

    def _describe(self, name):
        try:
            return self._signatures[name]
        except KeyError:
            import difflib

            near = difflib.get_close_matches(name, self.functions, 1)
            hint = f"; did you mean '{near[0]}'?" if near else "."
            # Tracebacks add a suggestion of their own, from the attributes of `obj`.
            raise AttributeError(f"'{self.name}' has no function '{name}'{hint} It has: {', '.join(self.functions)}",
                                 name=name, obj=None) from None

    def _function(self, context, name):
        signature = Signature(self._describe(name))
        return Function(context, None, name, signature.arguments, signature.result_count, is_async=signature.is_async,
                        declaration=signature.declaration, prepare=signature.prepare(), finish=signature.finish(),
                        has_timeout=signature.has_timeout)

    def __getitem__(self, name):
        """model["main"], for names that are no attributes."""
        return getattr(self, name) if not name.startswith("_") else self._function(self._context, name)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if self._local is None:
            function = self._function(self._context, name)
            self.__dict__[name] = function  # from now on an ordinary attribute
            return function
        self._describe(name)
        function = _PerThread(self, name)
        self.__dict__[name] = function
        return function

    def _of_this_thread(self, name):
        local = self._local
        if not hasattr(local, "functions"):
            local.context = self._make_context()
            local.functions = {}
        function = local.functions.get(name)
        if function is None:
            function = local.functions[name] = self._function(local.context, name)
        return function

    def __dir__(self):
        return [*super().__dir__(), *self.functions]

    def __repr__(self):
        return f"<halyard.Model {self.name}: {', '.join(self.functions)}>"


class _PerThread:
    """A function of a model with a state for each thread."""

    def __init__(self, model, name):
        self._model = model
        self.__name__ = name

    @property
    def declaration(self):
        return self._model.signature(self.__name__)

    def __call__(self, *arguments, **keywords):
        return self._model._of_this_thread(self.__name__)(*arguments, **keywords)

    def bind(self, *arguments, **keywords):
        return self._model._of_this_thread(self.__name__).bind(*arguments, **keywords)

    def call_async(self, *arguments, **keywords):
        return self._model._of_this_thread(self.__name__).call_async(*arguments, **keywords)

    def __repr__(self):
        return f"<halyard.Function {self.declaration}>"
