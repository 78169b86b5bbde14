"""Arguments and results of functions, from three sources: the calling convention, the declaration, and the description
of the frontend.

The declaration is the signature in the source, `sync func @f(%x: tensor<2x?xf32>, %n: i32) -> (%y: tensor<2xf32>)`. The
description (attribute `iree.abi`) is JSON that some frontends write; it can express dicts, lists and tuples.
"""

import re

from ._halyard import _element_numbers, _numerical_types

_SCALARS = {"i": "i32", "I": "i64", "f": "f32", "F": "f64"}
# The types of the table, and bool, which descriptions use.
_NAMED = {**_element_numbers, "bool": _element_numbers["i1"]}


def element_number(text):
    """The number of an element type; 0 if there is no such type."""
    if text in _NAMED:
        return _NAMED[text]
    match = re.fullmatch(r"(si|ui|bf|i|f)(\d+)", text)
    return _numerical_types[match[1]] << 24 | int(match[2]) if match else 0


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
    match = re.match(r"tensor<((?:[\d?]+x)*)([A-Za-z]\w*(?:<\w+>)?)", text)
    if not match:
        return 0, None
    sizes = [-1 if size == "?" else int(size) for size in match[1].split("x")[:-1]]
    return element_number(match[2]), tuple(sizes)


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
        # If true, the keyword argument `timeout` belongs to the function and is not the time limit of the call.
        self.has_timeout = "timeout" in [argument[0] for argument in self.arguments] + self._structured_names()

    def _described(self, abi, count):
        """Returns (arguments, results) of the frontend's description; None if there is none, or if it does not match."""
        import json

        if not abi:
            return None
        try:
            known = json.loads(abi)
            arguments, results = known["a"], known["r"]
            fits = (sum(len(_leaves(kind)) for kind in arguments) == count and
                    sum(len(_leaves(kind)) for kind in results) == self.result_count)
        except (ValueError, KeyError, TypeError, IndexError):
            return None  # an unknown form of description: only the declaration is used
        return (arguments, results) if fits else None

    def _structured_names(self):
        """The names of the structured arguments, as callers see them; None for an argument without a name."""
        kinds = self.structure[0] if self.structure else []
        return [kind[1] if isinstance(kind, list) and kind[0] == "named" else None for kind in kinds]

    def _argument(self, index, kind, declared, leaves):
        name, text = declared[0][index] if declared else (f"arg{index}", "")
        element, shape = (element_number(text), None) if kind in _SCALARS else _tensor(text)
        depth = 0
        if leaves:
            leaf, depth = _list(leaves[index])
            if shape is None:
                element, shape = _array(leaf)
            if depth:
                kind = {scalar: letter for letter, scalar in _SCALARS.items()}.get(leaf if isinstance(leaf, str) else "", "r")
        return (name or f"arg{index}", kind, element, shape) + ((depth,) if depth else ())

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
