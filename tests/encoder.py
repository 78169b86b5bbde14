"""What examples/serving/encoder.vmasm computes of one row, in double precision."""
import math

FEATURES, HIDDEN, PANEL = 1024, 4096, 64


def encode(row):
    state = 1

    def multiply(vector, columns):
        """The vector times the next matrix of weights, which is stored in panels of columns."""
        nonlocal state
        product = []
        for _ in range(0, columns, PANEL):
            sums = [0.0] * PANEL
            for value in vector:
                for column in range(PANEL):
                    state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
                    sums[column] += value * ((state >> 9) / 2**25 - 0.125)
            product += sums
        return product

    hidden = [max(value, 0.0) for value in multiply(row, HIDDEN)]
    result = [a + b for a, b in zip(row, multiply(hidden, FEATURES))]
    mean = sum(result) / FEATURES
    scale = 1 / math.sqrt(sum((value - mean)**2 for value in result) / FEATURES + 1e-5)
    return [(value - mean) * scale for value in result]
