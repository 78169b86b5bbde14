"""Files of parameters: writes .safetensors and .irpa."""

import json
import os
import struct

from ._halyard import _safetensors

_ALIGNMENT = 64  # bytes; alignment of each array in the file, so that devices can use it in place


def save_parameters(path, arrays):
    """Writes a file of parameters for load(..., parameters=path).

    path    a name that ends in .safetensors or .irpa. A .irpa file has no types and shapes, only bytes. An existing file is
            replaced when the new one is complete
    arrays  {name: array}; an array is anything that is a valid argument. A list of float becomes float32
    """
    path = os.fspath(path)
    ending = os.path.splitext(path)[1]
    write = _WRITERS.get((os.fsdecode(ending)).lower())
    if write is None:
        raise ValueError(f"the name of a file of parameters must end in {' or '.join(_WRITERS)}, not {os.fsdecode(ending)!r}: "
                         f"{os.fsdecode(path)!r}")
    unfinished = f"{os.fsdecode(path)}.{os.getpid()}.unfinished"
    try:
        write(unfinished, arrays)
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise


def _array(name, value):
    """Returns a little-endian array in C order, its element type and its shape. Types that numpy lacks are integers there."""
    import numpy as np

    from . import Tensor
    from ._tensor import bits

    if hasattr(value, "harden_mask"):
        raise TypeError(f"parameter '{name}' is a masked array, but parameters have no mask; pass x.filled(value)")
    if isinstance(value, (bool, int, float, list, tuple)):  # floats become float32, as for arguments
        try:
            value = Tensor(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"parameter '{name}': {error}") from None
    try:
        array = bits(value)[0] if isinstance(value, Tensor) else np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"parameter '{name}' is not an array: {error}") from error
    dtype = value.dtype if isinstance(value, Tensor) else array.dtype.name
    if dtype not in _safetensors:
        raise TypeError(f"parameter '{name}' has elements of type {array.dtype}; expected one of {', '.join(_safetensors)}")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.asarray(array, order="C"), _safetensors[dtype]


def _check_name(name):
    if not isinstance(name, str):
        raise TypeError(f"the name of a parameter must be a str, not {name!r}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} cannot be the name of a parameter, because it is not valid Unicode") from None


def _write_aligned(file, array, alignment=_ALIGNMENT):
    import numpy as np

    file.write(b"\0" * (-file.tell() % alignment))
    if array.size:
        file.write(array.reshape(-1).view(np.uint8).data)


def write_safetensors(path, arrays):
    header, offset, contents = {}, 0, []
    for name, value in arrays.items():
        _check_name(name)
        if name == "__metadata__":
            raise ValueError("'__metadata__' cannot be the name of a parameter, because parameter files use it; rename it")
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
            _write_aligned(file, array)


_IRPA_HEADER = struct.Struct("<4sHHQQQ Q6Q")  # magic, version, header's size, next header, flags; entries, three ranges
_IRPA_ENTRY = struct.Struct("<QIQ QQQQQ QQ")  # size, type, flags; name, metadata, alignment; range of the data
_IRPA_DATA = 2  # the type of an entry
_IRPA_ENTRIES = 96  # offset of the entries
_PAGE = 4096


def write_irpa(path, arrays):
    names, contents, entries = b"", [], b""
    offset = 0
    for name, value in arrays.items():
        _check_name(name)
        array, _ = _array(name, value)
        offset += -offset % _ALIGNMENT
        entries += b"\0" * (-len(entries) % 16)
        encoded = name.encode()
        entries += _IRPA_ENTRY.pack(_IRPA_ENTRY.size, _IRPA_DATA, 0, len(names), len(encoded), 0, 0, _ALIGNMENT, offset, array.nbytes)
        names += encoded
        offset += array.nbytes
        contents.append(array)
    names_at = _IRPA_ENTRIES + len(entries)
    storage_at = names_at + len(names)
    storage_at += -storage_at % _ALIGNMENT
    header = _IRPA_HEADER.pack(b"IRPA", 0, 0, _IRPA_HEADER.size, 0, 0, len(contents), _IRPA_ENTRIES, len(entries), names_at, len(names),
                               storage_at, offset)
    with open(path, "wb") as file:
        file.write(header.ljust(_IRPA_ENTRIES, b"\0") + entries + names)
        file.write(b"\0" * (storage_at - file.tell()))
        for array in contents:
            _write_aligned(file, array)
        file.write(b"\0" * (-file.tell() % _PAGE))


_WRITERS = {".safetensors": write_safetensors, ".irpa": write_irpa}
