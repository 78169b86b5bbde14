"""Functions in Python that programs import."""


class NativeFunction:
    """A Python function with the name and the calling convention that programs import it by. Made by `function`."""

    def __init__(self, callable, convention, module, name):
        self.callable = callable
        self.convention = convention
        self.module = module
        self.name = name
        self.__doc__ = callable.__doc__

    def __call__(self, *arguments):
        return self.callable(*arguments)

    def __repr__(self):
        return f"<halyard.NativeFunction {self.module}.{self.name} {self.convention}>"


def function(convention, *, module="host", name=None):
    """Makes a Python function one that programs can import; give it to load(..., functions=[...]).

        @halyard.function("0ii_i")
        def add(a, b):
            return a + b

    The program imports it as `host.add` with that calling convention: i and I are integers of 32 and 64 bits, f and F
    floats of 32 and 64 bits, r objects; "_" parts arguments from results. It is called on the thread that runs the
    program. An exception fails the call.
    """
    def decorate(callable):
        return NativeFunction(callable, convention, module, name or callable.__name__)

    return decorate


def native_programs(instance, functions):
    """A Program for each module that the functions belong to."""
    from ._halyard import native_module

    modules = {}
    for item in functions:
        if not isinstance(item, NativeFunction):
            raise TypeError(f"functions must be made with @halyard.function; {item!r} is not")
        modules.setdefault(item.module, {})[item.name] = (item.convention, item.callable)
    return [native_module(instance, name, table) for name, table in modules.items()]
