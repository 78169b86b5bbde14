"""Halyard runs compiled machine-learning programs: IREE modules (.vmfb) on CPUs and GPUs.

    import halyard, numpy as np

    model = halyard.load("model.vmfb", device="local-task")
    y = model.main(np.ones((1, 4), np.float32))
    np.asarray(y)

`load` gives a Model, whose attributes are the functions of the program. A result is a Tensor: numpy.asarray,
torch.from_dlpack and memoryview share its memory. Failures are subclasses of halyard.Error.
"""

import os as _os

from ._halyard import (  # noqa: F401
    AbortedError, AlreadyExistsError, Call, CancelledError, Channels, Context, DataLossError, DeadlineExceededError,
    DeferredError, Device, Error, FailedPreconditionError, Function,
    IncompatibleError, Instance, InternalError, InvalidArgumentError,
    NotFoundError, Object, OutOfRangeError, PermissionDeniedError, Program, ResourceExhaustedError, Tensor, Trace,
    UnauthenticatedError, UnavailableError, UnimplementedError, UnknownError, Waker, assemble, describe, disassemble,
    element_types)
from ._halyard import version as __version__
from ._info import ValueInfo  # noqa: F401
from ._model import Model, load
from ._native import NativeFunction, function
from ._parameter_files import save_parameters  # noqa: F401
from ._tensor import numpy  # noqa: F401

_instance = None


def _forget_instance():
    global _instance
    _instance = None


# A child process has none of the instance's threads.
_os.register_at_fork(after_in_child=_forget_instance)


def instance():
    """The Instance that all functions use unless they get another one. Created on first use."""
    global _instance
    if _instance is None:
        _instance = Instance()
    return _instance


def device(uri, **settings):
    """Opens a device: device("local-task", workers="2"), device("vulkan://0")."""
    return instance().open(uri, settings)


def devices(driver=None):
    """(URI, name) of each device of one driver, or of all drivers. Loads these drivers."""
    return instance().devices(driver)


def drivers():
    """The log of the search for drivers: a dict for each examined folder and file, with the reason if it was refused.
    Runs no driver."""
    return instance().search()
