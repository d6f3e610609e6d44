"""Rows folded by segment, in and out of order."""

import functools

import torch

from inputs import FLOATS, hostile, limits
from make import Golden, Index

KINDS = FLOATS + ("i32", "i64")


def cases(sorted_ids):
    def of(draw):
        shapes = [(4,), (3, 2), (0,), (5,), (4, 1), (2, 0), (3, 2, 1), (6,), (0, 2)]
        rules = hostile(draw.dtype)
        for i in range(45):
            x = draw.numbers(shapes[i % len(shapes)])
            if i < 32:
                x = draw.with_hostile(x, rules[i % len(rules)])
            segments = 1 + i % 4
            ids = draw.indices((x.shape[0],), segments)
            ids.sort() if sorted_ids else None
            if i % 15 == 14 and ids.size:
                ids[0] = -1 if i % 2 else segments + 3
            index = Index(ids, draw.pick(["i32", "i64"]))
            if sorted_ids:
                yield {"_dtype": draw.dtype}, [x, index]
            else:
                yield {"_dtype": draw.dtype, "_n": segments}, [x, index, Index(segments)]

    return of


def lowest(dtype, sign):
    """The value of no rows out of order, as in TensorFlow."""
    if dtype in FLOATS:
        kinds = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
        return torch.finfo(kinds[dtype]).max * -sign
    return limits(dtype)[0 if sign > 0 else 1]


def fold(one, of_nothing):
    """Segment by segment; `one` folds rows along dimension 0."""

    def peer(attrs, x, ids, count=None):
        ids = ids.tolist()
        ascending = count is None
        if any(i < 0 for i in ids) or (ascending and ids != sorted(ids)):
            raise ValueError("ids")
        n = (ids[-1] + 1 if ids else 0) if ascending else attrs["_n"]
        if any(i >= n for i in ids):
            raise ValueError("ids")
        rows = []
        for segment in range(n):
            mine = [k for k, i in enumerate(ids) if i == segment]
            rows.append(one(x[mine]) if mine else torch.full_like(
                x.new_zeros(x.shape[1:]), of_nothing(attrs["_dtype"], ascending)))
        return torch.stack(rows) if rows else x.new_zeros((0,) + tuple(x.shape[1:]))

    return peer


def zero(dtype, ascending):
    return 0


class Extreme(torch.autograd.Function):
    """The gradient is shared by equal extremes; none has it where the extreme is NaN, as in TensorFlow."""

    @staticmethod
    def forward(ctx, x, largest):
        y = x.amax(0) if largest else x.amin(0)
        ctx.save_for_backward(x == y)
        return y

    @staticmethod
    def backward(ctx, dy):
        hit, = ctx.saved_tensors
        return torch.where(hit, dy / hit.sum(0).clamp(min=1), torch.zeros_like(dy)), None


FOLDS = {
    "Sum": (lambda x: x.sum(0), zero, KINDS, "sum"),
    "Mean": (lambda x: x.mean(0), zero, FLOATS, "sum"),
    "Max": (lambda x: Extreme.apply(x, True), lambda d, s: 0 if s else lowest(d, 1), KINDS, "each"),
    "Min": (lambda x: Extreme.apply(x, False), lambda d, s: 0 if s else lowest(d, -1), KINDS, "each"),
    "Prod": (lambda x: functools.reduce(torch.mul, x.unbind(0)), lambda d, s: 1, KINDS, "sum"),
}


def sqrt_n(x):
    return x.sum(0) / x.shape[0] ** 0.5


GOLDENS = [Golden(prefix + "Segment" + name, kinds, rule, cases(not prefix), fold(one, empty), True)
           for prefix in ("", "Unsorted") for name, (one, empty, kinds, rule) in FOLDS.items()]
GOLDENS += [Golden(prefix + "segment_sqrt_n", FLOATS, "sum", cases(not prefix), fold(sqrt_n, zero),
                   True) for prefix in ("", "unsorted_")]
