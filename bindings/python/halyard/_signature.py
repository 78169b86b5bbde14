"""Arguments and results of functions, from three sources: the calling convention, the declaration, and the description
of the frontend.

The declaration is the signature in the source, `sync func @f(%x: tensor<2x?xf32>, %n: i32) -> (%y: tensor<2xf32>)`. The
description (attribute `iree.abi`) is JSON that some frontends write; it can express dicts, lists and tuples.
"""

import functools
import re

from . import _info
from ._halyard import Tensor, _element_numbers, _numerical_types

_MAX_SIZE = 2**63 - 1
_SCALARS = {"i": "i32", "I": "i64", "f": "f32", "F": "f64"}
# The types of the table, and bool, which descriptions use.
_NAMED = {**_element_numbers, "bool": _element_numbers["i1"]}


def element_number(text):
    """The number of an element type; 0 if there is no such type."""
    if text in _NAMED:
        return _NAMED[text]
    match = re.fullmatch(r"(si|ui|bf|i|f)([0-9]{1,3})", text)
    return _numerical_types[match[1]] << 24 | int(match[2]) if match and int(match[2]) < 256 else 0


def _split(text):
    """Splits the text at commas outside of brackets and strings."""
    parts, depth, start, quoted = [], 0, 0, False
    for at, character in enumerate(text):
        if quoted or character == '"':
            quoted = quoted != (character == '"')
        elif character in "<({[":
            depth += 1
        elif character in ">)}]" and text[at - 1:at + 1] != "->":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _bracketed(text, start):
    """Returns the text in the parentheses that open at `start`, and the position after them."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[start + 1:at], at + 1
    return text[start + 1:], len(text)


def _tensor(text):
    """(element type, shape) of `tensor<2x?xf32>` or `tensor<2xf32, #encoding>`; (0, None) for anything else."""
    match = re.match(r"tensor<((?:(?:[0-9]{1,19}|\?)x)*)([A-Za-z]\w*(?:<\w+>)?)", text)
    if not match:
        return 0, None
    sizes = [-1 if size == "?" else int(size) for size in match[1].split("x")[:-1]]
    return (element_number(match[2]), tuple(sizes)) if max(sizes, default=0) <= _MAX_SIZE else (0, None)


def parse_declaration(text):
    """Returns [(name, type)] of the arguments and of the results; None if the text is not a declaration."""
    start = text.find("(")
    if start < 0 or "func @" not in text[:start]:
        return None
    inside, at = _bracketed(text, start)
    arrow = text.find("->", at)
    results = ""
    if arrow >= 0:
        rest = text[arrow + 2:].strip()
        results = _bracketed(rest, 0)[0] if rest.startswith("(") else rest

    def pair(part):
        match = re.match(r"%([\w$.-]+)\s*:\s*(.*)", part)
        return (match[1], match[2]) if match else ("", part)

    return [pair(part) for part in _split(inside)], [pair(part) for part in _split(results)]


# ---- Structures: a type of the description is a name ("i32"), or a list that begins with its kind.


def _is_known(kind):
    """Whether a type has one of these forms."""
    if isinstance(kind, str):
        return True
    if not (isinstance(kind, list) and kind and isinstance(kind[0], str)):
        return False
    name, *rest = kind
    if name == "named":
        return len(rest) == 2 and isinstance(rest[0], str) and _is_known(rest[1])
    if name in ("slist", "stuple"):
        return all(map(_is_known, rest))
    if name == "sdict":
        return all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], (str, int)) and _is_known(item[1]) for item in rest)
    if name == "py_homogeneous_list":
        return len(rest) > 0 and _is_known(rest[0])
    if name == "ndarray":
        return len(rest) > 1 and isinstance(rest[0], str) and isinstance(rest[1], int) and all(
            size is None or (isinstance(size, int) and 0 <= size <= _MAX_SIZE) for size in rest[2:])
    return True


def _list(kind):
    """Returns (innermost type, number of nested lists) of a py_homogeneous_list; (kind, 0) for other types."""
    if not (isinstance(kind, list) and kind[0] == "py_homogeneous_list"):
        return kind, 0
    inner, depth = _list(kind[1])
    if _is_structured(inner):
        raise TypeError("programs have no lists of structures")
    return inner, depth + 1


def _leaves(kind):
    """The types of the flat values, in order."""
    if isinstance(kind, list) and kind[0] in ("slist", "stuple"):
        return [leaf for inner in kind[1:] for leaf in _leaves(inner)]
    if isinstance(kind, list) and kind[0] == "sdict":
        return [leaf for _, inner in kind[1:] for leaf in _leaves(inner)]
    if isinstance(kind, list) and kind[0] == "named":
        return _leaves(kind[2])
    _list(kind)
    return [kind]


def _places(kind):
    """The places of the flat values in a structure: "['a'][0]"."""
    if isinstance(kind, list) and kind[0] == "named":
        return _places(kind[2])
    if isinstance(kind, list) and kind[0] in ("slist", "stuple"):
        return [f"[{index}]{place}" for index, inner in enumerate(kind[1:]) for place in _places(inner)]
    if isinstance(kind, list) and kind[0] == "sdict":
        return [f"[{key!r}]{place}" for key, inner in kind[1:] for place in _places(inner)]
    return [""]


def _python_type(kind):
    """The type of an argument or a result for callers who use structures."""
    if isinstance(kind, list):
        if kind[0] == "named":
            return _python_type(kind[2])
        return {"slist": list, "stuple": tuple, "sdict": dict, "py_homogeneous_list": list, "ndarray": Tensor}.get(kind[0], object)
    return float if kind.startswith(("f", "bf")) else int if re.match(r"(si|ui|i)\d", kind) else object


def _array(leaf):
    """(element type, shape) of ["ndarray", "f32", rank, size...], where null is any size; (0, None) for other types."""
    if not isinstance(leaf, list) or leaf[0] != "ndarray" or len(leaf) != 3 + leaf[2]:
        return 0, None
    return element_number(leaf[1]), tuple(-1 if size is None else size for size in leaf[3:])


def _flatten(kind, value, place, out):
    if isinstance(kind, list) and kind[0] == "named":
        _flatten(kind[2], value, place, out)
    elif isinstance(kind, list) and kind[0] in ("slist", "stuple"):
        if not isinstance(value, (list, tuple)) or len(value) != len(kind) - 1:
            raise TypeError(f"{place} must be a list or tuple of {len(kind) - 1} values, not {value!r}")
        for index, (inner, item) in enumerate(zip(kind[1:], value)):
            _flatten(inner, item, f"{place}[{index}]", out)
    elif isinstance(kind, list) and kind[0] == "sdict":
        if not isinstance(value, dict) or set(value) != {key for key, _ in kind[1:]}:
            keys = ", ".join(repr(key) for key, _ in kind[1:])
            raise TypeError(f"{place} must be a dict with the keys {keys}, not {value!r}")
        for key, inner in kind[1:]:
            _flatten(inner, value[key], f"{place}[{key!r}]", out)
    else:
        out.append(value)


def _restore(kind, values):
    if isinstance(kind, list) and kind[0] == "named":
        return _restore(kind[2], values)
    if isinstance(kind, list) and kind[0] == "slist":
        return [_restore(inner, values) for inner in kind[1:]]
    if isinstance(kind, list) and kind[0] == "stuple":
        return tuple(_restore(inner, values) for inner in kind[1:])
    if isinstance(kind, list) and kind[0] == "sdict":
        return {key: _restore(inner, values) for key, inner in kind[1:]}
    return next(values)


def _is_structured(kind):
    return isinstance(kind, list) and kind[0] in ("slist", "stuple", "sdict", "named")


class Signature:
    """Converts the description of an export (Program.function) to the constructor arguments of Function."""

    def __init__(self, description):
        convention = description["convention"]
        arguments, _, results = convention[1:].partition("_")
        kinds = [kind for kind in arguments if kind != "v"]
        self.name = description["name"]
        self.is_async = description["is_async"]
        if self.is_async:
            kinds = kinds[:-2]
        self.result_count = description["result_count"]
        self.declaration = description["declaration"]
        declared = parse_declaration(self.declaration)
        if declared and len(declared[0]) != len(kinds):
            declared = None
        self.argument_names = [name for name, _ in declared[0]] if declared else []
        self.result_names = [name for name, _ in declared[1]] if declared else []
        described = self._described(description["attributes"].get("iree.abi"), len(kinds))
        # (types of the arguments, of the results), if callers use structures that the program gets as flat values.
        self.structure = described if described and any(map(_is_structured, described[0] + described[1])) else None
        leaves = [leaf for kind in described[0] for leaf in _leaves(kind)] if described else None
        self.arguments = tuple(self._argument(index, kind, declared, leaves) for index, kind in enumerate(kinds))
        if not self.declaration:
            takes = ", ".join(f"{name}: {'list of ' * sum(depth)}{_SCALARS.get(kind, 'object')}"
                              for name, kind, _, _, *depth in self.arguments)
            gives = ", ".join(_SCALARS.get(kind, "object") for kind in results if kind != "v")
            self.declaration = f"{self.name}({takes}) -> ({gives})"
        names = [argument[0] for argument in self.arguments] + self._structured_names()
        # If true, these keyword arguments belong to the function and are not those of every call.
        self.has_timeout, self.has_out = "timeout" in names, "out" in names
        self._results = self._described_results(results, declared, described)

    def _described_results(self, kinds, declared, described):
        """(name, kind, element type, shape[, depth]) of each result, like `arguments`."""
        kinds = [kind for kind in kinds if kind != "v"]
        leaves = [leaf for kind in described[1] for leaf in _leaves(kind)] if described else None
        texts = declared[1] if declared and len(declared[1]) == len(kinds) else [("", "")] * len(kinds)
        return [self._value(name or f"result{index}", kind, text, leaves and leaves[index])
                for index, (kind, (name, text)) in enumerate(zip(kinds, texts))]

    @functools.cached_property
    def inputs(self):
        places = self._places(0, "arg") or [argument[0] for argument in self.arguments]
        return tuple(_info.value_info(place, *argument[1:]) for place, argument in zip(places, self.arguments))

    @functools.cached_property
    def outputs(self):
        places = self._places(1, "result") or [result[0] for result in self._results]
        return tuple(_info.value_info(place, *result[1:]) for place, result in zip(places, self._results))

    def _places(self, side, default):
        """The names of flat values, with their places in structures; None if there are no structures on this side."""
        if not self.structure or not any(map(_is_structured, self.structure[side])):
            return None
        places = []
        for index, kind in enumerate(self.structure[side]):
            name = kind[1] if isinstance(kind, list) and kind[0] == "named" else f"{default}{index}"
            places += [name + place for place in _places(kind)]
        return places

    @functools.cached_property
    def python_signature(self):
        structured = None
        if self._places(0, "arg"):
            structured = [(name, _python_type(kind)) for name, kind in zip(self._structured_names(), self.structure[0])]
        parameters = _info.parameters(self.inputs, structured, self.has_timeout, self.has_out)
        return _info.signature(parameters, self.outputs, self._places(1, "result") is not None)

    @functools.cached_property
    def documentation(self):
        names = [name for name, parameter in self.python_signature.parameters.items()
                 if parameter.kind is not parameter.KEYWORD_ONLY]
        return _info.documentation(self.name, names, self.declaration, self.inputs, self.outputs)

    def _described(self, abi, count):
        """Returns (arguments, results) of the frontend's description; None if there is none, or if it does not match."""
        import json

        if not abi:
            return None
        try:
            known = json.loads(abi)
            arguments, results = known["a"], known["r"]
            fits = (all(map(_is_known, [*arguments, *results])) and sum(len(_leaves(kind)) for kind in arguments) == count and
                    sum(len(_leaves(kind)) for kind in results) == self.result_count)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            return None  # an unknown form of description: only the declaration is used
        return (arguments, results) if fits else None

    def _structured_names(self):
        """The names of the structured arguments, as callers see them; None for an argument without a name."""
        kinds = self.structure[0] if self.structure else []
        return [kind[1] if isinstance(kind, list) and kind[0] == "named" else None for kind in kinds]

    def _argument(self, index, kind, declared, leaves):
        name, text = declared[0][index] if declared else ("", "")
        return self._value(name or f"arg{index}", kind, text, leaves and leaves[index])

    @staticmethod
    def _value(name, kind, text, leaf):
        element, shape = (element_number(text), None) if kind in _SCALARS else _tensor(text)
        depth = 0
        if leaf:
            leaf, depth = _list(leaf)
            if shape is None:
                element, shape = _array(leaf)
            if depth:
                kind = {scalar: letter for letter, scalar in _SCALARS.items()}.get(leaf if isinstance(leaf, str) else "", "r")
        return (name, kind, element, shape) + ((depth,) if depth else ())

    def prepare(self):
        """Returns a function that converts structured arguments to flat ones; None if they are flat already."""
        if not self.structure or not any(map(_is_structured, self.structure[0])):
            return None
        kinds = self.structure[0]
        names = self._structured_names()

        def flatten(*arguments, **keywords):
            flat = []
            values = list(arguments)
            for name in names[len(values):]:
                if name not in keywords:
                    raise TypeError(f"{self.name}() lacks an argument; it takes {len(kinds)}: {self.declaration}")
                values.append(keywords.pop(name))
            if keywords or len(values) != len(kinds):
                raise TypeError(f"{self.name}() takes {len(kinds)} arguments: {self.declaration}")
            for index, (kind, value) in enumerate(zip(kinds, values)):
                _flatten(kind, value, f"{self.name}(): argument {index}", flat)
            return tuple(flat)

        return flatten

    def finish(self):
        """Returns a function that converts flat results to structured ones; None if they are flat already."""
        if not self.structure or not any(map(_is_structured, self.structure[1])):
            return None
        kinds = self.structure[1]

        def restore(result):
            values = iter(result if isinstance(result, tuple) else (result,))
            restored = [_restore(kind, values) for kind in kinds]
            return restored[0] if len(restored) == 1 else tuple(restored)

        return restore
