"""Complex numbers: arithmetic, functions, what moves and adds them, products, transforms."""

import numpy as np
import torch

import of_arrays
import of_optimizers
from inputs import COMPLEX, TORCH, WIDE, hostile, is_complex, tensors
from make import Golden, Index
from of_math import einsum, einsum_cases
from of_optimizers import ADAM, Rule

SHAPES = [(3,), (), (2, 2), (0,), (4,), (1,), (2, 0), (2,), (1, 3)]
MOVED = [(3,), (2, 2), (0,), (4,), (1, 2), (2, 0), (2, 1, 2), (1,)]
COUNT = 42


class Numpy(torch.autograd.Function):
    """The values are NumPy's, which are those of C's functions for numbers that are not finite; the gradient
    is PyTorch's."""

    @staticmethod
    def forward(ctx, x, values, function):
        ctx.save_for_backward(x)
        ctx.function = function
        return torch.from_numpy(np.asarray(values(x.detach().numpy()))).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            return torch.autograd.grad(ctx.function(x), x, dy)[0], None, None


def one(shapes=SHAPES, ranges=((-2.0, 2.0),), attrs=lambda i, x: {}):
    def cases(draw):
        for i, x in enumerate(tensors(draw, shapes, ranges, COUNT)):
            yield attrs(i, x), [x]

    return cases


def unary(name, function, rule="each"):
    return Golden(name, COMPLEX, rule, one(), lambda a, x: function(x), True)


def function(name, values):
    torch_function = getattr(torch, name.lower())
    return unary(name, lambda x: Numpy.apply(x, values, torch_function))


def pairs(draw):
    """Two inputs, alike or broadcast; hostile numbers in either, and in both."""
    shapes = [((3,), (3,)), ((2, 2), (2,)), ((), (3,)), ((0,), (0,)), ((4,), (4,)),
              ((2, 1), (1, 2)), ((2,), ()), ((2, 0), (1,))]
    rules = hostile(draw.dtype)
    for i in range(COUNT):
        a, b = (draw.numbers(shape) for shape in shapes[i % len(shapes)])
        if i % 3 != 1:
            a = draw.with_hostile(a, rules[i % len(rules)])
        if i % 3 != 0:
            b = draw.with_hostile(b, rules[i % len(rules)])
        if i % 7 == 6 and a.shape == b.shape:
            b = a.copy()
        yield a, b


def by_parts(function, *xs):
    """PyTorch's sums multiply by a complex 1, which makes an infinity NaN."""
    return torch.complex(function(*(x.real for x in xs)), function(*(x.imag for x in xs)))


def power(x, y):
    """NumPy's of 0: 0 to what has no positive real part is no number. An exponent of 0 has no gradient."""
    y = torch.where(x == 0, y.detach(), y)
    never = (x == 0) & (y != 0) & ~(y.real > 0)
    z = torch.pow(torch.where(never, torch.ones((), dtype=x.dtype), x), y)
    return torch.where(never, torch.full((), complex("nan+nanj"), dtype=z.dtype), z)


def two(draw):
    for a, b in pairs(draw):
        yield {}, [a, b]


def binary(name, function, gradient=True):
    return Golden(name, COMPLEX, "each" if gradient else "exact", two, lambda a, x, y: function(x, y),
                  gradient)


def of_reals_cases(draw):
    for x, y in pairs(draw):
        yield {}, [x, y]


def add_n_cases(draw):
    for i, x in enumerate(tensors(draw, SHAPES, count=COUNT)):
        yield {}, [x] + [draw.numbers(x.shape) for _ in range(i % 3)]


def select_cases(draw):
    for a, b in pairs(draw):
        shape = np.broadcast_shapes(a.shape, b.shape)
        yield {}, [Index(draw.indices(shape, 2), "bool"), a, b]


# --- sums and products ---

AXES = [{}, {"axes": [0]}, {"axes": [-1], "keep_dims": True}]


def folded_cases(draw):
    for i, x in enumerate(tensors(draw, [(3,), (2, 2), (0,), (4,), (2, 0), (1,), (2, 1, 2)],
                                  count=COUNT)):
        yield AXES[i % 3], [x]


def axes_of(attrs, x):
    return sorted(a % x.dim() for a in attrs.get("axes", range(x.dim())))


def folded(fold):
    return lambda attrs, x: fold(x, axes_of(attrs, x), attrs.get("keep_dims", False))


def product(x, axes, keep):
    """As a chain of products, whose gradient is exact beside zeros, infinities and NaN."""
    for axis in reversed(axes):
        parts = list(torch.unbind(x, axis))
        y = parts[0] if parts else torch.ones(x.shape[:axis] + x.shape[axis + 1:], dtype=x.dtype)
        for part in parts[1:]:
            y = y * part
        x = y.unsqueeze(axis) if keep else y
    return x


# --- products of matrices ---


def matmul_cases(draw, batches):
    rules = hostile(draw.dtype)
    for i in range(COUNT):
        m, k, n = ((2, 2, 2), (1, 3, 2), (2, 1, 1), (0, 2, 2), (2, 0, 2), (3, 2, 1))[i // 2 % 6]
        attrs = {"transpose_a": i % 2 == 1, "transpose_b": i % 4 > 1}
        left, right = batches[i % len(batches)]
        a = draw.numbers(left + ((k, m) if attrs["transpose_a"] else (m, k)))
        b = draw.numbers(right + ((n, k) if attrs["transpose_b"] else (k, n)))
        if i % 3 == 0:
            a = draw.with_hostile(a, rules[i // 3 % len(rules)])
        if i % 3 == 1:
            b = draw.with_hostile(b, rules[i // 3 % len(rules)])
        yield attrs, [a, b]


def matmul(attrs, a, b):
    return (a.mT if attrs["transpose_a"] else a) @ (b.mT if attrs["transpose_b"] else b)


# --- other types ---


def cast_cases(draw):
    types = {"c64": ["f32", "f16", "bf16", "bool", "i32"],
             "c128": ["f64", "c64", "f32", "f16", "bf16", "bool", "i64"]}[draw.dtype]
    for i, x in enumerate(tensors(draw, SHAPES, ((-100.0, 100.0),), COUNT)):
        to = types[i % len(types)]
        if to[0] == "i":  # no integer is near a NaN
            x = np.where(np.isfinite(x) & (np.abs(x) < 1e6), x, 7)
        yield {"to": to}, [x]


def cast(attrs, x):
    to = attrs["to"]
    if to == "bool":
        return x != 0
    if is_complex(to):
        return x.to(TORCH[to])
    return x.real.to({"i32": torch.int32, "i64": torch.int64}.get(to) or TORCH[to])


# --- elements in other places ---


def moved(name, cases, peer):
    return Golden(name, COMPLEX, "exact", cases, peer, True)


def gather_cases(draw):
    for i, x in enumerate(tensors(draw, [(3,), (2, 2), (4, 1), (1, 0), (2,)], count=COUNT)):
        yield {}, [x, Index(draw.indices(draw.pick([(2,), (), (3,), (0,)]), x.shape[0]))]


def along_cases(draw):
    for i, x in enumerate(tensors(draw, [(3,), (2, 2), (4,), (0, 2), (2, 3)], count=COUNT)):
        yield {"axis": -1}, [x, Index(draw.indices(x.shape[:-1] + (2,), x.shape[-1]))]


def segment_cases(draw):
    for i, x in enumerate(tensors(draw, [(3,), (4, 1), (0, 2), (2, 2), (4,)], count=COUNT)):
        yield {}, [x, Index(draw.indices(x.shape[:1], 3)), Index(np.array(3))]


def scatter_cases(draw):
    for i, x in enumerate(tensors(draw, [(3,), (2,), (0,), (4,)], count=COUNT)):
        yield {}, [Index(draw.indices(x.shape + (1,), 4)), x, Index(np.array([4]))]


def slice_cases(draw):
    for i, x in enumerate(tensors(draw, [(3,), (2, 2), (4,), (2, 0), (2, 1, 2), (0,)], count=COUNT)):
        begin = [int(draw.indices((), n + 1)) for n in x.shape]
        yield {}, [x, Index(np.array(begin)), Index(np.array([-1] * x.ndim))]


def concat_cases(draw):
    for i, x in enumerate(tensors(draw, MOVED, count=COUNT)):
        yield {"axis": -1 if i % 2 else 0}, [x] + [draw.numbers(x.shape) for _ in range(i % 3)]


def stitch_cases(draw):
    for i, x in enumerate(tensors(draw, [(2,), (3,), (0,), (1, 2)], count=COUNT)):
        n = x.shape[0]
        at = draw.random.permutation(n + 2)
        yield {}, [Index(at[:n]), Index(at[n:]), x, draw.numbers((2,) + x.shape[1:])]


def stitch(attrs, first, second, x, y):
    return torch.cat([x, y])[torch.argsort(torch.cat([first, second]))]


def segments(attrs, x, ids, count):
    return torch.zeros((int(count),) + x.shape[1:], dtype=x.dtype).index_put((ids,), x, accumulate=True)


def scattered(attrs, at, x, shape):
    return torch.zeros(tuple(shape.tolist()), dtype=x.dtype).index_put((at[:, 0],), x,
                                                                         accumulate=True)


def paddings(i, x):
    return {"paddings": [(i + d) % 3 for d in range(2 * x.ndim)]}


def padded(attrs, x):
    wide = list(zip(attrs["paddings"][::2], attrs["paddings"][1::2]))
    return torch.nn.functional.pad(x, [n for both in reversed(wide) for n in both])


def banded(attrs, x):
    i = torch.arange(x.shape[-2])[:, None]
    j = torch.arange(x.shape[-1])[None, :]
    lower, upper = attrs["lower"], attrs["upper"]
    kept = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
    return torch.where(kept, x, torch.zeros((), dtype=x.dtype))


MATRICES = [(2, 2), (1, 3), (3, 1), (0, 2), (2, 0), (2, 1, 2)]


def split_cases(draw):
    for i, x in enumerate(tensors(draw, MOVED, count=COUNT)):
        axis = i // 8 % x.ndim
        n = x.shape[axis]
        if i % 2:
            first = int(draw.indices((), n + 1))
            yield {"axis": axis, "N": 3, "sizes": [first, 0, n - first]}, [x]
        else:
            yield {"axis": axis - x.ndim, "N": n if n else 2}, [x]


def split(attrs, x):
    n, axis = attrs["N"], attrs["axis"]
    sizes = attrs.get("sizes", [x.shape[axis] // n] * n)
    return [part.clone() for part in torch.split(x, sizes, axis)]


def unpack_cases(draw):
    for i, x in enumerate(tensors(draw, [s for s in MOVED if s[0]], count=COUNT)):
        axis = 0 if 0 in x.shape else i // 7 % x.ndim
        yield {"axis": axis, "N": x.shape[axis]}, [x]


def strided_cases(draw):
    for i, x in enumerate(tensors(draw, [(4,), (3, 2), (2, 3), (0,), (5,), (2, 0), (2, 1, 3)],
                                  count=COUNT)):
        entries, masks = [], dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0)
        taken = x.shape[:1] if i % 5 == 4 else x.shape  # the rest is taken whole
        for d, n in enumerate(taken):
            bit = 1 << len(entries)
            if i % 7 == d + 3:
                masks["new_axis"] |= bit
                entries.append((0, 0, 1))
                bit <<= 1
            if d == 0 and i % 9 == 8:
                masks["ellipsis"] |= bit
                entries.append((0, 0, 1))
                if x.ndim > 1:
                    continue
                bit <<= 1
            if n and i % 4 == d + 1:
                masks["shrink_axis"] |= bit
                entries.append((int(draw.indices((), 2 * n)) - n, 0, 1))
                continue
            masks["begin"] |= bit * (i % 3 == 0)
            masks["end"] |= bit * (i % 3 == 1)
            begin, end = (int(draw.indices((), 2 * n + 3)) - n - 1 for _ in range(2))
            entries.append((begin, end, draw.pick([1, 2, -1, -2])))
        yield ({name + "_mask": bits for name, bits in masks.items() if bits},
               [x] + [Index(np.array([e[k] for e in entries], dtype=np.int64)) for k in range(3)])


def strided(attrs, x, *bounds):
    """NumPy's, of indices: PyTorch has no negative strides."""
    index = []
    for k, (begin, end, stride) in enumerate(zip(*(b.tolist() for b in bounds))):
        has = {name for name, bits in attrs.items() if bits >> k & 1}
        index.append(Ellipsis if "ellipsis_mask" in has else None if "new_axis_mask" in has else
                     begin if "shrink_axis_mask" in has else
                     slice(None if "begin_mask" in has else begin,
                           None if "end_mask" in has else end, stride))
    at = np.arange(x.numel()).reshape(x.shape)[tuple(index)]
    return x.reshape(-1)[torch.from_numpy(np.array(at))]


def partition_cases(draw):
    for i, x in enumerate(tensors(draw, [(3,), (2, 2), (4,), (0, 2), (2, 1, 2), (5,)], count=COUNT)):
        count = 1 + i % 3
        rank = x.ndim if i % 2 else 1
        at = draw.indices(x.shape[:rank], count + (i % 13 == 12))
        yield {"N": count}, [x, Index(at, draw.pick(["i32", "i64"]))]


def partition(attrs, x, at):
    if at.numel() and at.max() >= attrs["N"]:
        raise IndexError("outside")
    return [x[at == part] for part in range(attrs["N"])]


def reshape_cases(draw):
    for i, x in enumerate(tensors(draw, MOVED, count=COUNT)):
        shape = draw.pick([(x.size,), (1, x.size), x.shape[::-1], (-1, x.shape[-1])
                           if x.shape[-1] else (0, 3)])
        yield {}, [x, Index(np.array(shape), draw.pick(["i32", "i64"]))]


def squeeze_cases(draw):
    for i, x in enumerate(tensors(draw, [(1, 3), (2, 1, 2), (1, 0), (1, 1, 4), (1,), (2, 2)],
                                  count=COUNT)):
        ones = [d for d, n in enumerate(x.shape) if n == 1]
        yield {"axes": [draw.pick(ones)]} if i % 2 and ones else {}, [x]


def squeezed(attrs, x):
    return torch.squeeze(x, attrs["axes"] if "axes" in attrs else list(range(x.dim()))).clone()


def broadcast_cases(draw):
    for i, x in enumerate(tensors(draw, [(3,), (2, 1), (), (1, 2), (0,), (2, 2), (1,)], count=COUNT)):
        shape = [n if n != 1 else 1 + i % 3 for n in x.shape]
        yield {}, [x, Index(np.array([2] * (i % 2) + shape, dtype=np.int64))]


def shift_cases(draw):
    for i, x in enumerate(tensors(draw, MOVED, count=COUNT)):
        yield {"by": i % 7 - 3, "axis": i % x.ndim}, [x]


def shifted(attrs, x):
    x, by = x.movedim(attrs["axis"], 0), attrs["by"]
    gap = torch.zeros((min(abs(by), x.shape[0]),) + x.shape[1:], dtype=x.dtype)
    y = torch.cat([gap, x[:x.shape[0] - len(gap)]] if by > 0 else [x[len(gap):], gap])
    return y.movedim(0, attrs["axis"])


def sum_to_cases(draw):
    for i, x in enumerate(tensors(draw, [(2, 3), (3,), (0, 2), (2, 1, 2), (2, 2)], count=COUNT)):
        like = [n if (i + d) % 2 else 1 for d, n in enumerate(x.shape)][i % 3 if x.ndim > 2 else i % 2:]
        yield {}, [x, draw.numbers(tuple(like))]


def sum_to(attrs, x, like):
    x = x.sum(list(range(x.dim() - like.dim()))) if x.dim() > like.dim() else x
    over = [d for d in range(x.dim()) if like.shape[d] == 1 and x.shape[d] != 1]
    return x.sum(over, keepdim=True) if over else x.clone()


def mean_of(attrs, *xs):
    return by_parts(lambda *parts: sum(parts[1:], parts[0]) / len(parts), *xs)


# --- what others are made of ---


def of_others(name, group, rule="exact", peer=None):
    """The cases and the peer of another file's golden."""
    same = next(g for g in group.GOLDENS if g.name == name)
    return Golden(name, COMPLEX, rule, same.cases, peer or same.peer, same.gradient)


# --- steps of optimizers ---


def each_part(step):
    """Of a complex variable each part is a number of its own."""

    def both(scalars, *values):
        scalars = {name: value.real for name, value in scalars.items()}
        parts = [step(scalars, *(getattr(v, part) if v.is_complex() else v for v in values))
                 for part in ("real", "imag")]
        return [torch.complex(re, im) if re.is_floating_point() else re for re, im in zip(*parts)]

    return both


def steps():
    for whole, rows in (
            (Rule("GradientDescent", [], ["lr"], lambda s, grad, var: [var - s["lr"] * grad]),) * 2,
            (Rule("Adam", ["m", "v"], ADAM, of_optimizers.adam, True),) * 2,
            (Rule("Momentum", ["accum"], ["lr"], of_optimizers.momentum, after=["momentum"]),
             Rule("Momentum", ["accum"], ["lr", "momentum"], of_optimizers.momentum)),
            (Rule("AdamW", ["m", "v"], ADAM, of_optimizers.adamw, True, ["decay"]),
             Rule("AdamW", ["m", "v"], ADAM + ["decay"], of_optimizers.adamw, True))):
        for rule in {id(r): r for r in (whole, rows)}.values():
            rule.step = each_part(rule.step)
        yield Golden("Apply" + whole.name, COMPLEX, "sum", whole.whole, whole.apply, False)
        yield Golden("ApplySparse" + rows.name, COMPLEX, "sum", rows.rows, rows.apply_rows, False)


def assigned(name, function):
    def cases(draw):
        for x in tensors(draw, SHAPES, count=COUNT):
            yield {}, [draw.numbers(x.shape), x]

    return Golden(name, COMPLEX, "each", cases, lambda a, old, new: by_parts(function, old, new), False)


# --- transforms ---

NORMS = ("backward", "ortho", "forward")


def transform(name, rank, kind, dtypes):
    lengths = {1: [(4,), (3,), (1,), (0, 4), (5,), (2, 2), (7,)],
               2: [(2, 3), (2, 2), (1, 4), (0, 2, 2), (3, 2)],
               3: [(2, 2, 2), (1, 2, 3), (2, 1, 2), (0, 2, 1, 2)]}[rank]

    def cases(draw):
        for i, x in enumerate(tensors(draw, lengths, count=COUNT)):
            attrs = {"norm": NORMS[i % 3]}
            if kind in ("rfft", "irfft"):
                n = x.shape[-1] if kind == "rfft" else max(1, 2 * (x.shape[-1] - 1))
                change = [0, 1, -1, 2][i % 4] if i % 2 or kind == "irfft" else 0
                n = max(1, n + change)
                attrs["fft_length"] = list(x.shape[-rank:-1]) + [n]
            yield attrs, [x]

    def peer(attrs, x):
        function = getattr(torch.fft, kind + "n")
        dims = list(range(-rank, 0))
        return function(x, attrs.get("fft_length"), dims, norm=attrs["norm"])

    return Golden(name, dtypes, "sum", cases, peer, True)


TRANSFORMS = [transform(kind.upper() + ("" if rank == 1 else f"{rank}D"), rank, kind,
                        WIDE if kind == "rfft" else COMPLEX)
              for kind in ("fft", "ifft", "rfft", "irfft") for rank in (1, 2, 3)]

GOLDENS = [
    binary("Add", lambda x, y: by_parts(torch.add, x, y)),
    binary("Sub", lambda x, y: by_parts(torch.sub, x, y)), binary("Mul", torch.mul),
    binary("Div", torch.div), binary("Pow", power),
    binary("Equal", torch.eq, False), binary("NotEqual", torch.ne, False),
    Golden("AddN", COMPLEX, "each", add_n_cases,
           lambda a, *xs: by_parts(lambda *parts: sum(parts[1:], parts[0]), *xs), True),
    unary("Neg", torch.neg), unary("Square", torch.square), unary("Reciprocal", torch.reciprocal),
    function("Exp", np.exp), function("Log", np.log), function("Sqrt", np.sqrt),
    function("Sin", np.sin), function("Cos", np.cos), function("Tan", np.tan),
    function("Sinh", np.sinh), function("Cosh", np.cosh), function("Tanh", np.tanh),
    Golden("Complex", WIDE, "each", of_reals_cases,
           lambda a, x, y: torch.complex(*torch.broadcast_tensors(x, y)), True),
    unary("Real", lambda x: x.real.clone()), unary("Imag", lambda x: x.imag.clone()),
    unary("Conj", lambda x: torch.conj_physical(x)),
    unary("Angle", torch.angle), unary("ComplexAbs", torch.abs),
    Golden("Cast", COMPLEX, "exact", cast_cases, cast, True),
    Golden("Select", COMPLEX, "exact", select_cases, lambda a, c, x, y: torch.where(c, x, y), True),
    Golden("Sum", COMPLEX, "sum", folded_cases, folded(lambda x, d, k: torch.sum(x, d, k)), True),
    Golden("Mean", COMPLEX, "sum", folded_cases,
           folded(lambda x, d, k: by_parts(lambda part: torch.mean(part, d, k), x)), True),
    Golden("Prod", COMPLEX, "sum", folded_cases, folded(product), True),
    Golden("MatMul", COMPLEX, "sum", lambda d: matmul_cases(d, [((), ())]), matmul, True),
    Golden("BatchMatMul", COMPLEX, "sum",
           lambda d: matmul_cases(d, [((2,), (2,)), ((), (2,)), ((1,), (2,)), ((0,), (0,)), ((), ())]),
           matmul, True),
    moved("Transpose", one(MOVED), lambda a, x: x.permute(*reversed(range(x.dim()))).clone()),
    moved("MatrixTranspose", one(MATRICES), lambda a, x: x.mT.clone()),
    moved("Reverse", one(MOVED, attrs=lambda i, x: {"axes": [0] if i % 2 else [0, -1][:x.ndim]}),
          lambda a, x: torch.flip(x, [d % x.dim() for d in a["axes"]])),
    moved("Roll", one(MOVED, attrs=lambda i, x: {"shift": [i % 5 - 2], "axes": [0]}),
          lambda a, x: torch.roll(x, a["shift"], a["axes"])),
    moved("Tile", one(MOVED, attrs=lambda i, x: {"multiples": [1 + (i + d) % 2 for d in range(x.ndim)]}),
          lambda a, x: x.tile(a["multiples"])),
    moved("Pad", one(MOVED, attrs=paddings), padded),
    moved("ExpandDims", one(MOVED, attrs=lambda i, x: {"axis": [0, -1][i % 2]}),
          lambda a, x: x.unsqueeze(a["axis"]).clone()),
    moved("Concat", concat_cases, lambda a, *xs: torch.cat(xs, a["axis"])),
    moved("Pack", concat_cases, lambda a, *xs: torch.stack(xs, a["axis"])),
    moved("Slice", slice_cases, lambda a, x, b, s: x[tuple(slice(n, None) for n in b.tolist())].clone()),
    moved("Gather", gather_cases, lambda a, x, at: x[at]),
    moved("TakeAlong", along_cases, lambda a, x, at: torch.take_along_dim(x, at, a["axis"])),
    moved("DynamicStitch", stitch_cases, stitch),
    moved("MatrixDiag", one(MOVED), lambda a, x: torch.diag_embed(x)),
    moved("MatrixDiagPart", one(MATRICES),
          lambda a, x: torch.diagonal(x, dim1=-2, dim2=-1).clone()),
    moved("MatrixBandPart", one(MATRICES, attrs=lambda i, x: {"lower": i % 4 - 1, "upper": i % 3 - 1}),
          banded),
    Golden("UnsortedSegmentSum", COMPLEX, "sum", segment_cases, segments, True),
    Golden("ScatterNd", COMPLEX, "sum", scatter_cases, scattered, True),
    moved("Split", split_cases, split),
    moved("Unpack", unpack_cases, lambda a, x: list(torch.unbind(x, a["axis"]))),
    moved("StridedSlice", strided_cases, strided),
    of_others("GatherNd", of_arrays),
    moved("DynamicPartition", partition_cases, partition),
    of_others("ReverseSequence", of_arrays),
    moved("Reshape", reshape_cases, lambda a, x, shape: x.reshape(shape.tolist())),
    moved("Squeeze", squeeze_cases, squeezed),
    moved("BroadcastTo", broadcast_cases, lambda a, x, shape: torch.broadcast_to(x, shape.tolist())),
    moved("Shift", shift_cases, shifted),
    Golden("SumToShapeOf", COMPLEX, "sum", sum_to_cases, sum_to, True),
    Golden("ReplicaMean", COMPLEX, "each", add_n_cases, mean_of, False),
    of_others("boolean_mask", of_arrays), of_others("diag", of_arrays),
    of_others("eye", of_arrays, peer=lambda a: torch.eye(a["rows"], a["columns"],
                                                         dtype=torch.complex128)),
    of_others("tril", of_arrays), of_others("triu", of_arrays), of_others("meshgrid", of_arrays),
    of_others("mirror_pad", of_arrays), of_others("space_to_depth", of_arrays),
    of_others("depth_to_space", of_arrays), of_others("space_to_batch", of_arrays),
    of_others("batch_to_space", of_arrays),
    Golden("einsum", COMPLEX, "sum", einsum_cases, einsum, True),
    assigned("Assign", lambda old, new: new.clone()),
    assigned("AssignAdd", torch.add), assigned("AssignSub", torch.sub),
] + list(steps()) + TRANSFORMS
