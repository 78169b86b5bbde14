"""Parameters: files by scope, or arrays, which become a file for as long as the context is made."""

import contextlib
import json
import os
import tempfile

_SAFETENSORS = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
                "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
                "bool": "BOOL"}


def _write(path, arrays):
    """The arrays as a .safetensors file."""
    import numpy as np

    header, offset, contents = {}, 0, []
    for name, value in arrays.items():
        array = np.ascontiguousarray(value)
        dtype = _SAFETENSORS.get(array.dtype.name)
        if dtype is None:
            raise TypeError(f"parameter '{name}' has elements of type {array.dtype.name}; expected one of "
                            f"{', '.join(_SAFETENSORS)}")
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        contents.append(array)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)  # tensors begin at a multiple of 64, so that they can be used in place
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in contents:
            file.write(array.reshape(-1).view(np.uint8).data if array.size else b"")


@contextlib.contextmanager
def parameter_files(parameters):
    """[(scope, path, is temporary)] for what load() takes. Temporary files go when this ends; they stay mapped."""
    if parameters is None:
        yield []
        return
    if not isinstance(parameters, dict):
        parameters = {"": parameters}
    with contextlib.ExitStack() as stack:
        files, folder = [], None
        for scope, given in parameters.items():
            if isinstance(given, dict):
                if folder is None:
                    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # memory, where there is such
                    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="halyard-", dir=shared))
                path = os.path.join(folder, f"{len(files)}.safetensors")
                _write(path, given)
                files.append((scope, path, True))
            else:
                for path in given if isinstance(given, (list, tuple)) else [given]:
                    files.append((scope, path, False))
        yield files
