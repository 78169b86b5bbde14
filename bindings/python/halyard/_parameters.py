"""Parameters: files by scope, or arrays, which are written to a temporary file until the context exists."""

import contextlib
import os
import tempfile

from ._parameter_files import write_safetensors


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
                write_safetensors(path, given)
                files.append((scope, path, True))
            else:
                for path in given if isinstance(given, (list, tuple)) else [given]:
                    if not isinstance(path, (str, bytes, os.PathLike)):
                        raise TypeError(f"the parameters of scope '{scope}' must be paths or a dict of arrays, not {path!r}")
                    files.append((scope, path, False))
        yield files
