"""Parameters: files by scope, or arrays, which are written to a temporary file until the context exists."""

import contextlib
import json
import os
import tempfile

from ._halyard import _safetensors

_ALIGNMENT = 64  # bytes; alignment of each array in the file, so that devices can use it in place


def _array(name, value):
    """Returns a little-endian array in C order, and its type in the file."""
    import numpy as np

    from . import Tensor, numpy

    if hasattr(value, "harden_mask"):
        raise TypeError(f"parameter '{name}' is a masked array, but parameters have no mask; pass x.filled(value)")
    if isinstance(value, (bool, int, float, list, tuple)):  # floats become float32, as for arguments
        try:
            value = Tensor(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"parameter '{name}': {error}") from None
    try:
        array = numpy(value) if isinstance(value, Tensor) else np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"parameter '{name}' is not an array: {error}") from error
    dtype = _safetensors.get(array.dtype.name)
    if dtype is None:
        raise TypeError(f"parameter '{name}' has elements of type {array.dtype}; expected one of {', '.join(_safetensors)}")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.asarray(array, order="C"), dtype


def _check_name(name):
    if not isinstance(name, str):
        raise TypeError(f"the name of a parameter must be a str, not {name!r}")
    if name == "__metadata__":
        raise ValueError("'__metadata__' cannot be the name of a parameter, because parameter files use it; rename it")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} cannot be the name of a parameter, because it is not valid Unicode") from None


def _write(path, arrays):
    """Writes the arrays to a .safetensors file."""
    import numpy as np

    header, offset, contents = {}, 0, []
    for name, value in arrays.items():
        _check_name(name)
        array, dtype = _array(name, value)
        offset += -offset % _ALIGNMENT
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        contents.append(array)
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in contents:
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            file.write(array.reshape(-1).view(np.uint8).data if array.size else b"")


@contextlib.contextmanager
def parameter_files(parameters):
    """Yields [(scope, path, is temporary)] for the argument `parameters` of load(). Temporary files are deleted at the
    end; mappings of them stay valid."""
    if parameters is None:
        yield []
        return
    if not isinstance(parameters, dict):
        parameters = {"": parameters}
    with contextlib.ExitStack() as stack:
        files, folder = [], None
        for scope, given in parameters.items():
            if not isinstance(scope, str):
                raise TypeError(f"the scope of parameters must be a str, not {scope!r}")
            if isinstance(given, dict):
                if folder is None:
                    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # in memory, if possible
                    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="halyard-", dir=shared))
                path = os.path.join(folder, f"{len(files)}.safetensors")
                _write(path, given)
                files.append((scope, path, True))
            else:
                for path in given if isinstance(given, (list, tuple)) else [given]:
                    if not isinstance(path, (str, bytes, os.PathLike)):
                        raise TypeError(f"the parameters of scope '{scope}' must be paths or a dict of arrays, not {path!r}")
                    files.append((scope, path, False))
        yield files
