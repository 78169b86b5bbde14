"""Runs a script of this folder as one test: `run.py SCRIPT [ARGUMENTS]`. Its function `main` returns its failures: how many, or
their texts. `main` gets what its parameters name: `checks` counts checks (vmrun.Checks), `folder` is an empty temporary folder.
A script without `main` has unittest cases. Skips exit with 77."""
import importlib
import inspect
import pathlib
import sys
import unittest

import vmrun


def failures_of(main):
    with vmrun.temporary_folder() as folder:
        given = {"checks": vmrun.Checks(), "folder": pathlib.Path(folder).resolve()}
        wanted = inspect.signature(main).parameters
        failures = main(**{name: given[name] for name in wanted}) or 0
        if "checks" in wanted:
            return given["checks"].finish()
    if isinstance(failures, list):
        for failure in failures:
            print("FAILED:", failure)
        print(len(failures), "failures")
    return failures


def run():
    sys.argv.pop(0)
    module = importlib.import_module(pathlib.Path(sys.argv[0]).stem)
    if hasattr(module, "main"):
        return 1 if failures_of(module.main) else 0
    return 0 if unittest.main(module, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(run())
