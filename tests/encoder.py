"""What examples/serving/encoder.vmasm computes of one sequence, in double precision."""
import math

TOKENS, FEATURES, HIDDEN = 16, 64, 256


def encode(tokens):
    state = 1

    def weights(rows, columns):
        nonlocal state
        matrix = []
        for _ in range(rows * columns):
            state = (state * 1664525 + 1013904223) % 2**32
            matrix.append((state >> 9) / 2**25 - 0.125)
        return [matrix[row * columns:(row + 1) * columns] for row in range(rows)]

    def matmul(left, right):
        columns = list(zip(*right))
        return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]

    def softmax(row):
        powers = [math.exp(value - max(row)) for value in row]
        return [power / sum(powers) for power in powers]

    def add_and_normalize(left, right):
        result = []
        for row in ([a + b for a, b in zip(*rows)] for rows in zip(left, right)):
            mean = sum(row) / len(row)
            scale = 1 / math.sqrt(sum((value - mean)**2 for value in row) / len(row) + 1e-5)
            result.append([(value - mean) * scale for value in row])
        return result

    query, key, value, result = (weights(FEATURES, FEATURES) for _ in range(4))
    expand, reduce = weights(FEATURES, HIDDEN), weights(HIDDEN, FEATURES)
    x = [tokens[row * FEATURES:(row + 1) * FEATURES] for row in range(TOKENS)]
    scores = matmul(matmul(x, query), list(zip(*matmul(x, key))))
    scores = [softmax([score / 8 for score in row]) for row in scores]
    x = add_and_normalize(matmul(matmul(scores, matmul(x, value)), result), x)
    hidden = [[max(value, 0) for value in row] for row in matmul(x, expand)]
    return [value for row in add_and_normalize(matmul(hidden, reduce), x) for value in row]
