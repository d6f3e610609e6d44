"""Whether two folders of goldens have the same numbers: python3 compare.py MADE COMMITTED

Peers of another version, or on another processor, may round otherwise: numbers may differ by a
hundredth of what a test allows, and sums of the largest numbers may overflow or not. The same cases
must be there, with the same inputs.
"""

import math
import pathlib
import sys

from inputs import part_of
from make import TOLERANCE

LARGEST = {"f64": 1.79e308, "f32": 3.4e38, "f16": 65504, "bf16": 3.38e38}


def parts(text):
    """A complex number stands as `re,im`."""
    return [float(part) for part in text.split(",")]


def near(a, b, tolerance, scale):
    """Both parts of a complex number are as near as the larger of them is large."""
    if a == b:
        return True
    a, b = parts(a), parts(b)
    scale = max([scale] + [abs(x) for x in a + b if math.isfinite(x)])
    return len(a) == len(b) and all(
        x == y or x != x and y != y or abs(x - y) <= tolerance * scale for x, y in zip(a, b))


def both_finite(a, b):
    return all(math.isfinite(x) for x in parts(a) + parts(b))


def split(tensor):
    """Type and shape, and the numbers. Of "a/b" only a: what a peer finds in f32 differs more."""
    shape, _, values = tensor.partition(":")
    return shape, [value.split("/")[0] for value in values.split()]


def own_type(tensor):
    return tensor[:1] in ("i", "l", "b")


def largest(tensors):
    """The size of the largest finite number, but of those with a type of their own."""
    sizes = [abs(part) for tensor in tensors if not own_type(tensor)
             for value in split(tensor)[1] for part in parts(value)]
    return max(filter(math.isfinite, sizes), default=0.0)


def same(a, b, dtype, rule):
    """Two lines of a block of that dtype."""
    a, b = a.split("|"), b.split("|")
    if len(a) != len(b) or a[:2] != b[:2]:
        return False
    tolerance = TOLERANCE.get(part_of(dtype), 0) / 100
    if dtype in ("f16", "bf16"):
        tolerance *= 100  # one step of theirs
    inputs = largest(b[1].split(";"))
    overflows = rule == "sum" and inputs >= LARGEST.get(part_of(dtype), math.inf)
    for part_a, part_b in zip(a[2:], b[2:]):
        tensors_a, tensors_b = part_a.split(";"), part_b.split(";")
        if len(tensors_a) != len(tensors_b):
            return False
        for one, other in zip(tensors_a, tensors_b):
            (shape, values), (shape_b, values_b) = split(one), split(other)
            if shape != shape_b or len(values) != len(values_b):
                return False
            if own_type(one):
                if values != values_b:
                    return False
                continue
            scale = {"sum": max(inputs, largest([other])), "near": 1.0}.get(rule, 1e-30)
            if not all(near(x, y, tolerance, scale) or overflows and not both_finite(x, y)
                       for x, y in zip(values, values_b)):
                return False
    return True


def main(made, committed):
    different = 0
    for path in sorted(pathlib.Path(committed).glob("*.txt")):
        theirs = path.read_text().splitlines()
        ours = (pathlib.Path(made) / path.name).read_text().splitlines()
        dtype = rule = ""
        if len(ours) != len(theirs):
            print(f"{path.name}: {len(ours)} lines for {len(theirs)}")
            different += 1
        for line, (a, b) in enumerate(zip(ours, theirs), 1):
            if b.startswith("= "):
                dtype, rule = b.split()[2:]
            of_block = a.startswith("=") or b.startswith("=")
            if a == b or not of_block and same(a, b, dtype, rule):
                continue
            different += 1
            if different <= 5:
                print(f"{path.name}:{line}: {a}\n  committed: {b}")
    print(f"{different} lines differ")
    return different != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
