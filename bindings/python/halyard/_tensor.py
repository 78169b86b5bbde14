"""What tensors do with the help of numpy."""

import sys

_BUILTIN = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def dtype_name(dtype):
    """The name of an element type that is given as numpy and its users do: numpy.float32, numpy.dtype("float32"), float."""
    if isinstance(dtype, type) and dtype in _BUILTIN:
        return _BUILTIN[dtype]
    name = getattr(dtype, "name", None)
    if not isinstance(name, str) and "numpy" in sys.modules:
        try:
            name = sys.modules["numpy"].dtype(dtype).name
        except TypeError:
            pass
    if not isinstance(name, str):
        raise TypeError(f"an element type is a name (see halyard.element_types), a numpy dtype or a type of numbers, not {dtype!r}")
    return name


def numpy(tensor):
    """The tensor as a numpy array, which shares its memory if possible. bfloat16 and 8-bit floats need ml_dtypes."""
    import numpy as np

    try:
        return np.asarray(memoryview(tensor))
    except BufferError:
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError(f"numpy has no {tensor.dtype}: install ml_dtypes, get the bits with tensor.view(\"uint"
                              f"{tensor.nbytes // tensor.size * 8 if tensor.size else 8}\"), or use DLPack") from None
        plain = np.asarray(memoryview(tensor.view("uint16" if tensor.dtype == "bfloat16" else "uint8")))
        return plain.view(getattr(ml_dtypes, tensor.dtype))


def compare(tensor, other, equal):
    """Implements Tensor.__eq__ and __ne__: returns an array of truth values, like numpy."""
    from . import Tensor

    try:
        import numpy as np

        array = numpy(tensor)
    except ImportError as error:
        raise TypeError(f"tensors are compared with numpy: {error}; or compare tensor.tolist()") from None
    other = numpy(other) if isinstance(other, Tensor) else np.asarray(other)
    return (np.equal if equal else np.not_equal)(array, other)


def array(tensor, dtype, copy):
    """Implements Tensor.__array__."""
    result = numpy(tensor)
    if dtype is not None and dtype != result.dtype:
        return result.astype(dtype)
    return result.copy() if copy else result


def bits(tensor):
    """(the tensor as an array that numpy has without other packages, and the function that undoes this for a Tensor)."""
    try:
        return numpy(tensor), lambda part: part
    except ImportError as error:
        if error.name == "numpy":
            raise
        unsigned = "uint16" if tensor.dtype == "bfloat16" else "uint8"
        return numpy(tensor.view(unsigned)), lambda part: part.view(tensor.dtype)


def select(tensor, key):
    """Implements Tensor.__getitem__ for parts that are not one range of memory: a tensor with a copy of the part."""
    from . import Tensor

    try:
        array, undo = bits(tensor)
    except ImportError:
        raise TypeError("without numpy, a tensor is indexed by numbers and then a slice without a step") from None
    part = array[key]
    device = tensor.device
    return undo(Tensor(part, device=None if device.uri == "host://" else device))


def copy_into(target, tensor):
    """Implements Tensor.copy_to for arrays that are not one range of memory, and types without a buffer format."""
    import numpy as np

    target = np.asarray(target)
    if target.shape != tensor.shape:
        raise ValueError(f"the target has shape {target.shape}, expected {tensor.shape}")
    np.copyto(target, numpy(tensor), casting="equiv")
