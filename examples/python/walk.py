#!/usr/bin/env python3
"""A walk from a model to a picture of its timings. Each part that begins with `# %%` is a cell in editors that know them.

usage: python3 examples/python/walk.py [PICTURE.svg]

Needs halyard, numpy and matplotlib. Without an argument the picture goes to walk.svg.
"""

# %% A model is a file; its functions are attributes.
import pathlib
import sys
import time

import numpy as np

import halyard

examples = pathlib.Path(__file__).resolve().parent.parent
model = halyard.load(examples / "host_loop.vmasm", device="local-sync")
print(model)
print(model.signature("double"))

# %% Arguments are arrays and numbers, the result is a tensor that numpy can use in place.
x = np.array([1, 2, 3, -4], np.int32)
y = model.double(x, 5)
print(y.shape, y.dtype, np.asarray(y))
assert np.array_equal(np.asarray(y), x * 2**5)

# %% A wrong argument is an exception that says what was expected.
try:
    model.double(x.astype(np.float64), 5)
except halyard.InvalidArgumentError as error:
    print(error)

# %% The same program on two devices: `n` dispatches that need one another, in one call.
counts = [0, 1, 2, 4, 8, 16, 24, 30]
devices = ["local-sync", "local-task"]


def series(function, n, calls=10):
    """Seconds of one call, on average of a few."""
    begin = time.perf_counter()
    for _ in range(calls):
        function(x, n)
    return (time.perf_counter() - begin) / calls


# Other programs of the machine only make a series longer: of many, the shortest counts.
functions = {device: halyard.load(examples / "host_loop.vmasm", device=device).double for device in devices}
times = {device: [float("inf")] * len(counts) for device in devices}
for _ in range(100):
    for device, function in functions.items():
        times[device] = [min(least, series(function, n)) for least, n in zip(times[device], counts)]
for device in devices:
    slope, start = np.polyfit(counts, times[device], 1)
    print(f"{device}: {start * 1e6:.1f} us for the call, {slope * 1e6:.2f} us for each dispatch")

# %% The picture.
import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "halyard"  # the same data give the same file
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for device in devices:
    axes.plot(counts, np.array(times[device]) * 1e6, marker="o", label=device)
axes.set_xlabel("dispatches in one call, each needs the one before")
axes.set_ylabel("microseconds for a call")
axes.set_title("host_loop.double on the CPU")
axes.set_ylim(bottom=0)
axes.grid(alpha=0.3)
axes.legend()
picture = sys.argv[1] if len(sys.argv) > 1 else "walk.svg"
figure.savefig(picture, metadata={"Date": None})
print(f"the picture is in {picture}")
