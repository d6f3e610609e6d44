"""Functions of one and two numbers, scans, orders and bits."""

import mpmath
import numpy as np
import torch

from inputs import FLOATS, INTEGERS, Draw, hostile, is_float, limits, tensors
from make import Golden, Index

SHAPES = [(4,), (), (2, 3), (0,), (6,), (1,), (2, 0, 3), (5,), (2, 2, 2), (3, 1)]
NEAR = (-2.0, 2.0)


class Digamma(torch.autograd.Function):
    """mpmath's: that of PyTorch loses digits, most of them in its derivative."""

    @staticmethod
    def of(order, x):
        def one(v):
            if v != v or v == -float("inf"):
                return float("nan")
            if v == float("inf"):
                return 0.0 if order else v
            if v == 0:
                return float("inf") if order else -np.copysign(float("inf"), v)
            if v < 0 and v == np.floor(v):
                return float("inf") if order else float("nan")
            with mpmath.workdps(40 if abs(v) < 1e15 else 330):
                return float(mpmath.psi(order, mpmath.mpf(v)))

        values = np.vectorize(one, otypes=[np.float64])(x.double().numpy()) if x.numel() else x.numpy()
        return torch.from_numpy(values).to(x.dtype)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return Digamma.of(0, x)

    @staticmethod
    def backward(ctx, dy):
        return dy * Digamma.of(1, ctx.saved_tensors[0])


class Lgamma(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.lgamma(x)

    @staticmethod
    def backward(ctx, dy):
        return dy * Digamma.of(0, ctx.saved_tensors[0])


class Atan2(torch.autograd.Function):
    """With the derivatives x / (x^2 + y^2) and -y / (x^2 + y^2) as they are: where PyTorch squares, NumPy's hypot
    neither overflows nor underflows. 0 at (0, 0), as in PyTorch, and at infinity."""

    @staticmethod
    def forward(ctx, y, x):
        ctx.save_for_backward(y, x)
        return torch.atan2(y, x)

    @staticmethod
    def backward(ctx, dz):
        y, x = ctx.saved_tensors
        r = torch.hypot(y, x)
        away = (r > 0) & ~torch.isinf(r) | torch.isnan(r)
        zero = torch.zeros((), dtype=r.dtype)
        return torch.where(away, dz * (x / r) / r, zero), torch.where(away, -dz * (y / r) / r, zero)


def atan2(attrs, y, x):
    return Atan2.apply(*torch.broadcast_tensors(y, x))


def running_product(x, axis):
    """As a chain of products, whose gradient is exact beside zeros, infinities and NaN."""
    parts = list(torch.unbind(x, axis))
    for i in range(1, len(parts)):
        parts[i] = parts[i - 1] * parts[i]
    return torch.stack(parts, axis) if parts else torch.cumprod(x, axis)


def unary(name, function, *ranges, dtypes=FLOATS, rule="each"):
    def cases(draw):
        shapes = [(6,), (2, 3), (5,), (), (0,), (7,), (1, 4), (3, 2), (8,), (2, 0)]
        for x in tensors(draw, shapes, ranges or (NEAR,), 42):
            yield {}, [x]

    return Golden(name, dtypes, rule, cases, lambda a, x: function(x), True)


def pairs(draw, ranges=(NEAR,), count=44):
    """Two inputs, alike or broadcast; hostile numbers in either, and in both."""
    shapes = [((4,), (4,)), ((2, 3), (3,)), ((), (5,)), ((0,), (0,)), ((6,), (6,)),
              ((2, 1), (1, 3)), ((3,), ()), ((2, 0), (1,)), ((5,), (5,)), ((2, 2, 2), (2, 2))]
    rules = hostile(draw.dtype)
    for i in range(count):
        a, b = shapes[i % len(shapes)]
        a = draw.numbers(a, *ranges[i % len(ranges)])
        b = draw.numbers(b, *ranges[(i + 1) % len(ranges)])
        if i < 3 * len(rules):
            a = draw.with_hostile(a, rules[i % len(rules)]) if i % 3 != 1 else a
            b = draw.with_hostile(b, rules[i % len(rules)]) if i % 3 != 0 else b
        yield a, b


def atan2_cases(draw):
    for a, b in pairs(draw):
        yield {}, [a, b]


def log_sum_exp_cases(draw):
    axes = [{"axes": [0]}, {}, {"axes": [-1], "keep_dims": True}]
    for i, x in enumerate(tensors(draw, [(4,), (2, 3), (0,), (3, 2), (2, 0), (5,), (2, 2, 2)],
                                  ((-3.0, 3.0), (-50.0, 50.0)))):
        yield axes[i % 3], [x]


def log_sum_exp(attrs, x):
    axes = attrs.get("axes", list(range(x.dim())))
    if x.numel() == 0:  # which PyTorch refuses in part
        shape = [(1 if attrs.get("keep_dims") else None) if d in [a % x.dim() for a in axes] else n
                 for d, n in enumerate(x.shape)]
        return torch.full([n for n in shape if n is not None], -float("inf"), dtype=x.dtype)
    return torch.logsumexp(x, axes, keepdim=attrs.get("keep_dims", False))


def scan_cases(draw):
    for i, x in enumerate(tensors(draw, [(5,), (2, 3), (0,), (3, 2), (4,), (2, 0), (2, 2, 2)])):
        attrs = {}
        if x.ndim > 1 and i % 2:
            attrs["axis"] = 1 if i % 4 == 1 else -1
        if i % 3 == 1:
            attrs["exclusive"] = True
        if i % 5 > 2:
            attrs["reverse"] = True
        yield attrs, [x]


def scan(function, start):
    def peer(attrs, x):
        axis = attrs.get("axis", 0)
        if attrs.get("reverse"):
            x = torch.flip(x, [axis])
        if attrs.get("exclusive"):
            first = torch.full_like(x.narrow(axis, 0, min(1, x.shape[axis])), start)
            x = torch.cat([first, x.narrow(axis, 0, max(0, x.shape[axis] - 1))], axis)
        y = function(x, axis)
        return torch.flip(y, [axis]) if attrs.get("reverse") else y

    return peer


def clip_cases(draw):
    for i, (x, low) in enumerate(pairs(draw)):
        shape = low.shape
        high = draw.numbers(shape, -1.0, 3.0)
        if i % 4 < 3 and low.size:  # else the bounds may contradict
            low, high = np.minimum(low, high), np.maximum(low, high)
        yield {}, [x, low, high]


def clip(attrs, x, low, high):
    return torch.clamp(x, low, high)


# --- orders: PyTorch has no order of u64, NumPy no gradient; places from NumPy, values by them ---


def places(x, axis, descending):
    """Equal elements keep their order, NaN is above all numbers."""
    values = x.detach().numpy()
    if descending:
        turned = np.flip(values, axis)
        order = np.argsort(turned, axis, kind="stable")
        return torch.from_numpy(np.flip(values.shape[axis] - 1 - order, axis).copy())
    return torch.from_numpy(np.argsort(values, axis, kind="stable"))


def as_numbers(x, dtype):
    """u64 are signed here; the order of x is that of x + 2^63."""
    return x if dtype != "u64" else x ^ torch.tensor(-(2**63))


def order_cases(draw):
    for i, x in enumerate(tensors(draw, [(5,), (2, 4), (0,), (3, 2), (6,), (2, 0), (1,), (2, 2, 2)])):
        attrs = {"_dtype": draw.dtype}
        if x.ndim > 1 and i % 2:
            attrs["axis"] = 0
        if i % 3 == 1:
            attrs["descending"] = True
        yield attrs, [x]


def sort(attrs, x):
    axis = attrs.get("axis", -1)
    at = places(as_numbers(x, attrs["_dtype"]), axis, attrs.get("descending", False))
    return [torch.take_along_dim(x, at, axis), at]


def top_k_cases(draw):
    for i, x in enumerate(tensors(draw, [(5,), (2, 4), (3, 0), (3, 2), (6,), (0, 2), (2, 2, 2)])):
        yield {"k": int(draw.indices((), x.shape[-1] + 1)), "_dtype": draw.dtype}, [x]


def top_k(attrs, x):
    at = places(as_numbers(x, attrs["_dtype"]), -1, True)[..., : attrs["k"]]
    return [torch.take_along_dim(x, at, -1), at]


# --- einsum, counts and bits ---

EQUATIONS = [("ij,jk->ik", (2, 3), (3, 2)), ("i,i->", (5,), (5,)), ("i,j->ij", (2,), (3,)),
             ("ij->ji", (2, 3)), ("bij,bjk->bik", (2, 2, 2), (2, 2, 2)), ("ij->", (3, 2)),
             ("ij,j", (2, 3), (3,)), ("...i,...i->...", (2, 3), (2, 3)), ("ij->j", (0, 3)),
             ("ij,jk->ik", (2, 0), (0, 2)), ("i,ij,j->", (2,), (2, 2), (2,)), ("ij,kj->ik", (2, 2), (3, 2)),
             ("ijk->ik", (2, 2, 2)), ("ba,b->a", (3, 2), (3,))]


def einsum_cases(draw):
    rules = hostile(draw.dtype)
    for i in range(44):
        equation, *shapes = EQUATIONS[i % len(EQUATIONS)]
        inputs = [draw.numbers(shape) for shape in shapes]
        if i < 28:
            inputs[0] = draw.with_hostile(inputs[0], rules[i % len(rules)])
        if i % len(EQUATIONS) == 8:
            rules = rules[1:] + rules[:1]  # other numbers meet other equations
        yield {"equation": equation.replace(",", "&")}, inputs


def einsum(attrs, *operands):
    return torch.einsum(attrs["equation"].replace("&", ","), *operands)


def bincount_cases(draw):
    shapes = [(5,), (0,), (2, 3), (), (8,), (2, 0), (1,)]
    for i in range(44):
        size = int(draw.indices((), 6)) + 1
        x = np.asarray(draw.indices(shapes[i % len(shapes)], size + (i % 11 == 10))).astype(object)
        if i in (3, 4, 8, 9) and x.size:
            x = draw.with_hostile(x, [limits(draw.dtype)[i % 2]])
        yield {"size": size}, [x]


def bincount(attrs, x):
    if x.numel() and (x.min() < 0 or x.max() >= attrs["size"]):
        raise ValueError("outside")
    return torch.bincount(x.reshape(-1), minlength=attrs["size"])


def bit_cases(draw):
    for a, b in pairs(draw):
        yield {}, [a, b]


def shift_cases(draw):
    width = int(draw.dtype[1:])
    for i, (a, _) in enumerate(pairs(draw)):
        if i % 2:
            a = draw.with_hostile(a, [limits(draw.dtype)[i % 4 // 2]])
        bits = np.asarray(draw.random.integers(0 if draw.dtype[0] == "u" else -1, width + 2,
                                               a.shape if i % 3 else ())).astype(object)
        if i % 5 == 4:
            bits = draw.with_hostile(bits, [limits(draw.dtype)[i % 2]])
        yield {"_dtype": draw.dtype}, [a, bits]


def shift(function):
    """NumPy's on Python's integers."""

    def peer(attrs, x, bits):
        dtype = attrs["_dtype"]
        width = int(dtype[1:])

        def one(value, by):
            value, by = int(value), int(by)
            if dtype == "u64":
                value, by = value % 2**64, by % 2**64
            shifted = function(value, width if by < 0 or by > width else by)
            return (shifted + 2**63) % 2**64 - 2**63

        a, b = np.broadcast_arrays(x.numpy(), bits.numpy())
        y = np.array([one(v, n) for v, n in zip(a.reshape(-1), b.reshape(-1))], dtype=np.int64)
        return torch.from_numpy(y.reshape(a.shape))

    return peer


def invert_cases(draw):
    for x in tensors(draw, SHAPES):
        yield {}, [x]


def bits(name, function, cases=bit_cases):
    return Golden(name, INTEGERS, "exact", cases, function, False)


GOLDENS = [
    unary("Tan", torch.tan, NEAR, (-20.0, 20.0)),
    unary("Asin", torch.asin, (-1.0, 1.0), (-1.1, 1.1)),
    unary("Acos", torch.acos, (-1.0, 1.0), (-1.1, 1.1)),
    unary("Atan", torch.atan, NEAR, (-50.0, 50.0)),
    unary("Sinh", torch.sinh, NEAR, (-12.0, 12.0)),
    unary("Cosh", torch.cosh, NEAR, (-12.0, 12.0)),
    unary("Asinh", torch.asinh, NEAR, (-500.0, 500.0)),
    unary("Acosh", torch.acosh, (1.0, 4.0), (0.9, 500.0)),
    unary("Atanh", torch.atanh, (-1.0, 1.0), (-1.1, 1.1)),
    unary("Lgamma", Lgamma.apply, (0.0, 4.0), (-6.0, 6.0), (1.0, 60.0)),
    unary("Digamma", Digamma.apply, (0.0, 4.0), (-6.0, 6.0), (1.0, 60.0)),
    Golden("Atan2", FLOATS, "sum", atan2_cases, atan2, True),
    Golden("log_sum_exp", FLOATS, "each", log_sum_exp_cases, log_sum_exp, True),
    Golden("Cumsum", FLOATS + INTEGERS, "sum", scan_cases, scan(torch.cumsum, 0), True),
    Golden("Cumprod", FLOATS + INTEGERS, "sum", scan_cases, scan(running_product, 1), True),
    Golden("clip_by_value", FLOATS + ("i8", "i16", "i32", "i64"), "sum", clip_cases, clip, True),
    Golden("TopK", FLOATS + INTEGERS + ("bool",), "exact", top_k_cases, top_k, True),
    Golden("Sort", FLOATS + INTEGERS + ("bool",), "exact", order_cases, sort, True),
    Golden("ArgSort", FLOATS + INTEGERS + ("bool",), "exact", order_cases,
           lambda a, x: sort(a, x)[1], False),
    Golden("einsum", FLOATS, "sum", einsum_cases, einsum, True),
    Golden("Bincount", ("i32", "i64"), "exact", bincount_cases, bincount, False),
    bits("BitwiseAnd", lambda a, x, y: x & y),
    bits("BitwiseOr", lambda a, x, y: x | y),
    bits("BitwiseXor", lambda a, x, y: x ^ y),
    bits("Invert", lambda a, x: ~x, invert_cases),
    bits("LeftShift", shift(lambda v, n: v << n), shift_cases),
    bits("RightShift", shift(lambda v, n: v >> n), shift_cases),
]
