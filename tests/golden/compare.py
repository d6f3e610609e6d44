"""Whether two folders of goldens have the same numbers: python3 compare.py MADE COMMITTED

Peers of another version, or on another processor, may round otherwise: numbers may differ by a
hundredth of what a test allows. The same cases must be there, with the same inputs.
"""

import pathlib
import re
import sys

from make import TOLERANCE

NUMBER = re.compile(r"[^ :;|/]+")


def near(a, b, tolerance):
    if a == b:
        return True
    a, b = float(a), float(b)
    if a != a or b != b:
        return a != a and b != b
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-30)


def same(a, b, dtype):
    """Two lines of a block of that dtype."""
    head_a, head_b = a.split("|")[:2], b.split("|")[:2]
    if head_a != head_b:
        return False
    # Of "a/b" only a: what a peer finds in f32 differs more.
    rests = [[re.sub(r"/[^ ;|]+", "", part) for part in line.split("|")[2:]] for line in (a, b)]
    if [NUMBER.sub("", part) for part in rests[0]] != [NUMBER.sub("", part) for part in rests[1]]:
        return False
    tolerance = TOLERANCE.get(dtype, 0) / 100
    if dtype in ("f16", "bf16"):
        tolerance *= 100  # one step of theirs
    return all(near(x, y, tolerance) for p, q in zip(*rests)
               for x, y in zip(NUMBER.findall(p), NUMBER.findall(q)))


def main(made, committed):
    different = 0
    for path in sorted(pathlib.Path(committed).glob("*.txt")):
        theirs = path.read_text().splitlines()
        ours = (pathlib.Path(made) / path.name).read_text().splitlines()
        dtype = ""
        if len(ours) != len(theirs):
            print(f"{path.name}: {len(ours)} lines for {len(theirs)}")
            different += 1
        for number, (a, b) in enumerate(zip(ours, theirs), 1):
            if b.startswith("= "):
                dtype = b.split()[2]
            if a == b or not a.startswith("=") and not b.startswith("=") and same(a, b, dtype):
                continue
            different += 1
            if different <= 5:
                print(f"{path.name}:{number}: {a}\n  committed: {b}")
    print(f"{different} lines differ")
    return different != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
