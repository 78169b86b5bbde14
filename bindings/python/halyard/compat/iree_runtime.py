"""Runs scripts that were written for `iree.runtime`, after one line is changed:

    import halyard.compat.iree_runtime as rt

This module has the names that such scripts use most. For any other name, AttributeError says what to use instead.
"""

import os

import numpy as _np
from numpy.lib.mixins import NDArrayOperatorsMixin as _Operators

import halyard as _halyard
from halyard._parameter_files import write_irpa as _write_irpa

_DEVICES = {"local-task": "local-task", "local-sync": "local-sync", "llvm-cpu": "local-task", "vmvx": "local-task",
            "vulkan": "vulkan", "vulkan-spirv": "vulkan"}

_INSTEAD = {
    "VmContext": "halyard.load, which links modules and devices",
    "VmInstance": "halyard.Instance",
    "VmVariantList": "plain Python values: arguments and results of functions",
    "VmFunction": "the attributes of halyard.Model",
    "HalDevice": "halyard.Device",
    "HalDriver": "halyard.devices and halyard.device",
    "HalBuffer": "halyard.Tensor",
    "HalBufferView": "halyard.Tensor",
    "HalFence": "call_async of the functions of halyard.Model",
    "BenchmarkResult": "the tool vm-bench",
    "flags": "the options of halyard.load and of device URIs",
    "create_hal_module": "nothing: modules that need `hal` get it",
    "SplatValue": "arrays in ParameterIndex.add_buffer",
}


def __getattr__(name):
    if name in _INSTEAD:
        raise AttributeError(f"'{name}' is not available here; use {_INSTEAD[name]}")
    raise AttributeError(f"'{name}' is not available here; halyard.compat.iree_runtime has {', '.join(__all__)}")


def query_available_drivers():
    """The names of the available drivers."""
    rows = _halyard.drivers()
    return sorted({name for row in rows if row["outcome"] == "accepted" and not row["is_folder"]
                   for name in row["drivers"].split(",")})


def get_device(name, cache=True):
    """The device of this driver or URI. With `cache`, repeated calls return the same device."""
    uri = _DEVICES.get(name, name)
    if not cache:
        return _halyard.device(uri)
    if uri not in _cached_devices:
        _cached_devices[uri] = _halyard.device(uri)
    return _cached_devices[uri]


_cached_devices = {}


class Config:
    """The device on which programs run: the name of a driver, or a device."""

    def __init__(self, driver_name=None, *, device=None):
        if driver_name is not None and device is not None:
            raise ValueError("give either a driver's name or a device, not both")
        self.device = device if device is not None else get_device(driver_name or "local-task")
        self.vm_instance = _halyard.instance()


def _host(value):
    """The value with numpy arrays in the place of DeviceArrays."""
    if isinstance(value, DeviceArray):
        return value.to_host()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_host, value))
    if isinstance(value, dict):
        return {key: _host(item) for key, item in value.items()}
    return value


def _same(array):
    return array


class DeviceArray(_Operators):
    """A result or an argument. It is used like a numpy array; what numpy computes with it is a numpy array."""

    def __init__(self, tensor):
        self.tensor = tensor

    def to_host(self):
        """A numpy array, which shares the memory if possible."""
        return _halyard.numpy(self.tensor)

    @property
    def shape(self):
        return self.tensor.shape

    @property
    def dtype(self):
        return _np.dtype(self.tensor.dtype)

    @property
    def is_host_accessible(self):
        return True

    def astype(self, dtype, copy=True):
        return DeviceArray(_halyard.Tensor(self.to_host().astype(dtype, copy=copy)))

    def __array__(self, dtype=None, copy=None):
        return self.tensor.__array__(dtype, copy)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        if out is not None:
            keywords["out"] = _host(out)
        result = getattr(ufunc, method)(*_host(inputs), **keywords)
        return result if out is None else out[0] if len(out) == 1 else out

    def __array_function__(self, function, types, arguments, keywords):
        return function(*_host(arguments), **_host(keywords))

    def __getattr__(self, name):
        """The other attributes of a numpy array: reshape, sum, T, tolist."""
        if name.startswith("_") or name == "tensor":
            raise AttributeError(name)
        return getattr(self.to_host(), name)

    def __getitem__(self, index):
        return self.to_host()[_host(index)]

    def __setitem__(self, index, value):
        self.to_host()[_host(index)] = _host(value)

    def __len__(self):
        return len(self.to_host())

    def __iter__(self):
        return iter(self.to_host())

    def __contains__(self, value):
        return value in self.to_host()

    def __bool__(self):
        return bool(self.to_host())

    def __int__(self):
        return int(self.to_host())

    def __index__(self):
        return self.to_host().__index__()

    def __float__(self):
        return float(self.to_host())

    def __complex__(self):
        return complex(self.to_host())

    def __deepcopy__(self, memo):
        return self.to_host().copy()

    def __reduce__(self):
        return _same, (self.to_host(),)

    __hash__ = None

    def __repr__(self):
        return f"<halyard DeviceArray: shape={list(self.shape)}, dtype={self.tensor.dtype}>"

    def __dlpack__(self, **arguments):
        return self.tensor.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def asdevicearray(device, value, dtype=None, implicit_host_transfer=False, memory_type=None, allowed_usage=None,
                  element_type=None):
    """Copies the value to memory that the device can use."""
    array = _np.asarray(value, dtype=dtype)
    return DeviceArray(_halyard.Tensor(array, device=device))


class VmModule:
    """A module that has been read but not loaded into a context."""

    def __init__(self, source, destroy_callback=None):
        self._source = source
        self._destroy_callback = destroy_callback
        self._program = _halyard.Program(_halyard.instance(), source)

    @classmethod
    def mmap(cls, instance, path, destroy_callback=None):
        return cls(os.fspath(path), destroy_callback)

    @classmethod
    def copy_buffer(cls, instance, buffer):
        return cls(bytes(buffer))

    @classmethod
    def from_flatbuffer(cls, instance, buffer, warn_if_copy=True):
        return cls(bytes(buffer))

    @classmethod
    def from_buffer(cls, instance, buffer, warn_if_copy=True):
        return cls(bytes(buffer))

    @classmethod
    def wrap_buffer(cls, instance, buffer, destroy_callback=None, close_buffer=False):
        return cls(bytes(buffer), destroy_callback)

    @property
    def name(self):
        return self._program.info()["name"]

    @property
    def version(self):
        return self._program.info()["version"]

    @property
    def function_names(self):
        return [self._program.function(i)["name"] for i in range(self._program.info()["function_count"])]

    def __repr__(self):
        return f"<VmModule {self.name} : [{', '.join(self.function_names)}]>"

    def __del__(self):
        callback = getattr(self, "_destroy_callback", None)
        if callback:
            callback()


def _wrap(value):
    if isinstance(value, _halyard.Tensor):
        return DeviceArray(value)
    if isinstance(value, tuple):
        return tuple(map(_wrap, value))
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    if isinstance(value, dict):
        return {key: _wrap(item) for key, item in value.items()}
    return value


def _unwrap(value):
    return value.tensor if isinstance(value, DeviceArray) else value


class FunctionInvoker:
    """A function of a bound module: takes arrays, returns DeviceArrays."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *arguments, **keywords):
        result = self._function(*map(_unwrap, arguments), **{key: _unwrap(value) for key, value in keywords.items()})
        return _wrap(result)

    @property
    def vm_function(self):
        return self._function

    def __repr__(self):
        return f"<FunctionInvoker {self._function.declaration}>"


class BoundModule:
    """A module in a context; its functions are its attributes and its items."""

    def __init__(self, model, module):
        self._model = model
        self.vm_module = module

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return FunctionInvoker(getattr(self._model, name))

    def __getitem__(self, name):
        try:
            return FunctionInvoker(self._model[name])
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __repr__(self):
        return f"<BoundModule {self._model!r}>"


class _BoundModules(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class SystemContext:
    """Modules that are loaded together and share one state."""

    def __init__(self, vm_modules=None, config=None):
        self._config = config or Config()
        self._vm_modules = []
        self._bound = _BoundModules()
        self.add_vm_modules(vm_modules or [])

    @property
    def config(self):
        return self._config

    @property
    def instance(self):
        return self._config.vm_instance

    @property
    def modules(self):
        return self._bound

    def add_vm_modules(self, vm_modules):
        for module in vm_modules:
            self.add_vm_module(module)

    def add_vm_module(self, vm_module):
        if isinstance(vm_module, _ParametersModule):
            self._vm_modules.append(vm_module)
            return None
        parameters = {}
        for earlier in self._vm_modules:
            if isinstance(earlier, _ParametersModule):
                parameters.update(earlier.scopes)
        sources = [module._source for module in self._vm_modules if isinstance(module, VmModule)] + [vm_module._source]
        model = _halyard.load(sources, devices=[self._config.device], parameters=parameters or None)
        self._vm_modules.append(vm_module)
        bound = self._bound[vm_module.name] = BoundModule(model, vm_module)
        return bound


def load_vm_module(vm_module, config=None):
    return load_vm_modules(vm_module, config=config)[0]


def load_vm_modules(*vm_modules, config=None):
    context = SystemContext(config=config)
    return [bound for bound in (context.add_vm_module(module) for module in vm_modules) if bound is not None]


def load_vm_flatbuffer(vm_flatbuffer, *, driver=None, backend=None):
    return load_vm_module(VmModule.copy_buffer(None, vm_flatbuffer), Config(driver or backend))


def load_vm_flatbuffer_file(path, *, driver=None, backend=None, destroy_callback=None):
    return load_vm_module(VmModule.mmap(None, path, destroy_callback), Config(driver or backend))


class ParameterIndex:
    """Parameters by name: files, and arrays of this process."""

    def __init__(self):
        self._files = []
        self._arrays = {}

    def load(self, file_path, *, format=None, readable=True, writable=False, mmap=True):
        self._files.append(os.fspath(file_path))

    def add_buffer(self, key, buffer, *, readable=True, writable=False):
        self._arrays[key] = _np.frombuffer(buffer, _np.uint8)

    def create_provider(self, *, scope="", max_concurrent_operations=None):
        return ParameterProvider(self, scope)

    def __len__(self):
        return len(self._arrays) + len(self._files)


class ParameterProvider:
    """The parameters of one scope. Created by ParameterIndex.create_provider."""

    def __init__(self, index, scope):
        self.index = index
        self.scope = scope


class _ParametersModule:
    def __init__(self, providers):
        self.scopes = {}
        for provider in providers:
            index = provider.index
            if index._files and index._arrays:
                raise NotImplementedError(f"scope '{provider.scope}' has both files and arrays; use a scope for each")
            self.scopes[provider.scope] = index._arrays or index._files


def create_io_parameters_module(instance, *providers):
    return _ParametersModule(providers)


def save_archive_file(entries, file_path):
    """Writes a file of parameters in the format of .irpa files, whatever its name."""
    _write_irpa(os.fspath(file_path), entries)


__all__ = ["BoundModule", "Config", "DeviceArray", "FunctionInvoker", "ParameterIndex", "ParameterProvider",
           "SystemContext", "VmModule", "asdevicearray", "create_io_parameters_module", "get_device", "load_vm_flatbuffer",
           "load_vm_flatbuffer_file", "load_vm_module", "load_vm_modules", "query_available_drivers", "save_archive_file"]
