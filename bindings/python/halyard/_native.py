"""Python functions that programs import."""


class NativeFunction:
    """A Python function, with the name and the calling convention by which programs import it. Created by `function`."""

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
    """Lets programs import a Python function; pass the result to load(..., functions=[...]).

        @halyard.function("0ii_i")
        def add(a, b):
            return a + b

    The program imports it as `host.add` with this calling convention. i and I are integers of 32 and 64 bits, f and F
    floats of 32 and 64 bits, r objects; "_" separates arguments from results. The function is called on the thread that
    runs the program. As an r it may return a Tensor, an array (numpy, the buffer protocol, DLPack), a number (which
    becomes a tensor of rank 0), a list or tuple (which becomes a list of the program, with ints as i64 and floats as
    f64), or None. An exception fails the call.
    """
    def decorate(callable):
        return NativeFunction(callable, convention, module, name or callable.__name__)

    return decorate


def native_programs(instance, functions, device):
    """Creates a Program for each module name. Arrays that the functions return go to the device (None: to the host)."""
    from ._halyard import native_module

    modules = {}
    for item in functions:
        if not isinstance(item, NativeFunction):
            raise TypeError(f"functions must be made with @halyard.function; {item!r} is not")
        modules.setdefault(item.module, {})[item.name] = (item.convention, item.callable)
    return [native_module(instance, name, table, device) for name, table in modules.items()]
