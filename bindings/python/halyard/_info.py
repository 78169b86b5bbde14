"""What callers are told about a function: its inputs and outputs as data, its signature for `inspect`, its docstring."""

import keyword
import re
from typing import Any, NamedTuple

from ._halyard import Tensor, _numpy_names

_NUMBERS = {"i": ("int32", int), "I": ("int64", int), "f": ("float32", float), "F": ("float64", float)}


class ValueInfo(NamedTuple):
    """An argument or a result of a function.

    name   as declared; of values in dicts and lists with their place: "x['a'][0]"
    kind   "tensor", "number", "list" (dtype and shape are those of its values), or "object"
    dtype  numpy's name of the element type; None: unknown
    shape  the sizes of a tensor, None for a size that the caller chooses; () for a number; None: unknown
    """

    name: str
    kind: str
    dtype: str | None
    shape: tuple[int | None, ...] | None

    def __str__(self):
        if self.kind == "number":
            return str(self.dtype)
        text = self.dtype or "any type"
        if self.shape is None:
            text = self.kind if self.kind == "object" else text
        else:
            text += f"[{', '.join('?' if size is None else str(size) for size in self.shape)}]"
        return f"list of {text}" if self.kind == "list" else text


def value_info(name, kind, element, shape, depth=0):
    """`kind` is a letter of the calling convention; the rest is as for the constructor of Function."""
    dtype = _numpy_names.get(element)
    if kind in _NUMBERS:
        return ValueInfo(name, "list" if depth else "number", dtype or _NUMBERS[kind][0], ())
    sizes = None if shape is None else tuple(None if size < 0 else size for size in shape)
    is_tensor = sizes is not None or dtype is not None
    return ValueInfo(name, "list" if depth else "tensor" if is_tensor else "object", dtype, sizes)


def _annotation(info):
    return {"tensor": Tensor, "list": list, "object": Any}.get(info.kind) or _NUMBERS[{"f": "f"}.get(info.dtype[0], "i")][1]


def parameters(infos, structured, has_timeout, has_out):
    """`structured`: (name or None, type) of the arguments if callers use structures, else None."""
    import inspect  # not with the package, because it takes longer than the rest

    given = structured or [(info.name, _annotation(info)) for info in infos]
    names, last_without_name = [], -1
    for index, (name, _) in enumerate(given):
        if name is None or not name.isidentifier() or keyword.iskeyword(name) or name in names:
            last_without_name = index
            name = f"{re.sub(r'[^0-9a-zA-Z_]', '_', name)}_{index}" if name else f"arg{index}"
            if not name.isidentifier():
                name = f"arg{name}"
            while name in names:
                name += "_"
        names.append(name)
    result = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY if index <= last_without_name else
                                inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)
              for index, (name, (_, annotation)) in enumerate(zip(names, given))]
    if not has_timeout:
        result.append(inspect.Parameter("timeout", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=float | None))
    if not has_out:
        result.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Any))
    return result


def signature(parameters, outputs, is_structured):
    import inspect

    if is_structured:
        returns = Any
    else:
        types = tuple(map(_annotation, outputs))
        returns = None if not types else types[0] if len(types) == 1 else tuple[types]
    return inspect.Signature(parameters, return_annotation=returns)


def documentation(name, names, declaration, inputs, outputs):
    lines = [f"{name}({', '.join(names)})", "", declaration]
    for title, infos in (("Arguments:", inputs), ("Returns:", outputs)):
        if infos:
            width = max(len(info.name) for info in infos)
            lines += ["", title] + [f"    {info.name:{width}}  {info}" for info in infos]
    return "\n".join(lines)
