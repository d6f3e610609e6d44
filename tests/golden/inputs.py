"""Inputs of the goldens: numbers of a dtype with few digits, and the hostile ones among them."""

import numpy as np
import torch

FLOATS = ("f32", "f64", "f16", "bf16")
WIDE = ("f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
INTEGERS = SIGNED + ("u8", "u16", "u32", "u64")
ANY = FLOATS + INTEGERS + ("bool",)
COMPLEX = ("c64", "c128")
TORCH = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
         "c64": torch.complex64, "c128": torch.complex128}


def is_float(dtype):
    return dtype in FLOATS


def is_complex(dtype):
    return dtype in COMPLEX


def part_of(dtype):
    """The type of the parts of a complex number; of any other it is the type itself."""
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def of_parts(re, im):
    """re + i im as it is: 1j * inf has a part that is NaN."""
    z = np.empty(np.shape(re), np.complex128)
    z.real, z.imag = re, im
    return z


def rounded(values, dtype):
    """As f64 numbers that `dtype` has."""
    if is_complex(dtype):
        return of_parts(rounded(values.real, part_of(dtype)), rounded(values.imag, part_of(dtype)))
    wide = torch.as_tensor(np.asarray(values, dtype=np.float64))
    return wide.to(TORCH[dtype]).to(torch.float64).numpy()


def limits(dtype):
    """The lowest and the highest integer."""
    if dtype == "bool":
        return 0, 1
    bits = int(dtype[1:])
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def wrapped(value, dtype):
    """An integer of any size as `dtype` keeps it."""
    low, high = limits(dtype)
    return (int(value) - low) % (high - low + 1) + low


def hostile(dtype):
    """Sets of numbers that inputs must have; a string is a rule for values that are drawn."""
    if is_complex(dtype):
        return hostile(part_of(dtype))
    if dtype == "bool":
        return [[0], [1], [0, 1], "ties"]
    if not is_float(dtype):
        low, high = limits(dtype)
        return [[low], [high], [low, high], [0, 1], "ties", [high - 1, low + 1], "ties"]
    info = torch.finfo(TORCH[dtype])
    least = {"f64": 5e-324, "f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133}[dtype]
    nan, inf = float("nan"), float("inf")
    return [[nan], [inf], [-inf], [-0.0], [0.0, -0.0], [info.max], [info.min, info.max],
            [info.tiny, -info.tiny], [least, -least], "ties", [inf, nan, -inf], [1.0, -1.0],
            [info.eps, -info.eps], "ties"]


class Draw:
    """Numbers of one dtype, from a seed."""

    def __init__(self, dtype, seed):
        self.dtype, self.random = dtype, np.random.default_rng(seed)

    def numbers(self, shape, low=-2.0, high=2.0):
        if is_complex(self.dtype):
            part = Draw(part_of(self.dtype), 0)
            part.random = self.random
            return of_parts(part.numbers(shape, low, high), part.numbers(shape, low, high))
        if self.dtype == "bool":
            return np.asarray(self.random.integers(0, 2, shape))
        if not is_float(self.dtype):
            least, most = limits(self.dtype)
            low, high = max(least, int(low * 8)), min(most, int(high * 8))
            return np.asarray(self.random.integers(low, high, shape, endpoint=True)).astype(object)
        drawn = self.random.uniform(low, high, shape)
        digits = 3 if self.dtype in WIDE else 2
        short = np.vectorize(lambda v: float(f"%.{digits}g" % v), otypes=[np.float64])
        return rounded(short(drawn) if drawn.size else drawn, self.dtype)

    def with_hostile(self, array, rule):
        """Some elements replaced, in any places; of complex ones a part or both."""
        if is_complex(self.dtype):
            if rule == "ties":
                array = np.array(array, np.complex128)
                flat = array.reshape(-1)
                flat[: flat.size // 2 + 1] = flat[:1]
                return array
            part = Draw(part_of(self.dtype), 0)
            part.random = self.random
            which = int(self.random.integers(3))
            re = part.with_hostile(array.real, rule) if which != 1 else array.real
            im = part.with_hostile(array.imag, rule) if which != 0 else array.imag
            return of_parts(re, im)
        array = np.array(array, dtype=np.float64 if is_float(self.dtype) else object)
        flat = array.reshape(-1)
        if flat.size == 0:
            return array
        if rule == "ties":
            rule = [flat[0]] * max(2, flat.size // 2)
        places = self.random.permutation(flat.size)[: len(rule)]
        for place, value in zip(places, rule):
            flat[place] = value
        return flat.reshape(array.shape)

    def indices(self, shape, limit):
        return self.random.integers(0, limit, shape)

    def pick(self, values):
        return values[int(self.random.integers(len(values)))]


def tensors(draw, shapes, ranges=((-2.0, 2.0),), count=44, rules=None):
    """`count` arrays, of the shapes in turn; the first that have elements with hostile numbers."""
    rules = list(hostile(draw.dtype) if rules is None else rules)
    for i in range(count):
        array = draw.numbers(shapes[i % len(shapes)], *ranges[i % len(ranges)])
        if rules and array.size > 1:
            array = draw.with_hostile(array, rules.pop(0))
        yield array
