"""Elements in other places: masks, indices, diagonals, borders, blocks."""

import numpy as np
import torch

from inputs import ANY, FLOATS, INTEGERS, hostile, tensors
from make import Golden, Index
from of_math import as_numbers

NUMBERS = FLOATS + INTEGERS
SHAPES = [(4,), (2, 3), (0,), (3, 2), (5,), (2, 0), (1,), (2, 2, 2), (2, 1, 3), (6,)]


def moved(name, cases, peer, dtypes=ANY, gradient=True):
    return Golden(name, dtypes, "exact", cases, peer, gradient)


def where_cases(draw):
    for i, x in enumerate(tensors(draw, SHAPES + [()], count=44)):
        if x.size and i > 20:
            x = draw.with_hostile(x, [0] * (x.size // 2))
        yield {}, [x]


def boolean_mask_cases(draw):
    for i, x in enumerate(tensors(draw, SHAPES)):
        rank = 1 if i % 3 else x.ndim
        yield {}, [x, Index(draw.indices(x.shape[:rank], 2), "bool")]


def gather_nd_cases(draw):
    for i, x in enumerate(tensors(draw, [s for s in SHAPES if 0 not in s] + [(2, 0)])):
        deep = draw.pick(range(1, x.ndim + 1)) if i % 2 else 1
        outer = draw.pick([(2,), (), (3,), (0,), (2, 2)])
        at = np.stack([draw.indices(outer, n + (i % 13 == 12)) if n else np.zeros(outer, int)
                       for n in x.shape[:deep]], -1)
        if i % 17 == 16:
            at = at - 1
        yield {}, [x, Index(at, draw.pick(["i32", "i64"]))]


def gather_nd(attrs, x, at):
    at = at.long()
    for d in range(at.shape[-1]):
        if at.numel() and (at[..., d].min() < 0 or at[..., d].max() >= x.shape[d]):
            raise IndexError("outside")
    return x[tuple(at[..., d] for d in range(at.shape[-1]))]


def scatter_nd_cases(draw):
    rules = hostile(draw.dtype)
    for i in range(44):
        shape = draw.pick([(4,), (2, 3), (3, 2), (5,), (2, 2, 2)])
        deep = draw.pick(range(1, len(shape) + 1))
        outer = draw.pick([(2,), (3,), (4,)]) if i % 10 else (0,)
        at = np.stack([draw.indices(outer, n + (i % 13 == 12)) for n in shape[:deep]], -1)
        x = draw.numbers(outer + shape[deep:])
        if i % 10 and i < 32:
            x = draw.with_hostile(x, rules[i % len(rules)])
        yield {}, [Index(at, draw.pick(["i32", "i64"])), x, Index(np.array(shape))]


def scatter_nd(attrs, at, x, shape):
    at, shape = at.long(), tuple(shape.tolist())
    y = torch.zeros(shape, dtype=x.dtype)
    for d in range(at.shape[-1]):
        if at.numel() and (at[..., d].min() < 0 or at[..., d].max() >= shape[d]):
            raise IndexError("outside")
    return y.index_put(tuple(at[..., d] for d in range(at.shape[-1])), x, accumulate=True)


def unique_cases(draw):
    for i, x in enumerate(tensors(draw, [(5,), (0,), (8,), (1,), (6,)])):
        if i > 24 and x.size:
            x = x[draw.indices(x.shape, max(1, x.size // 2))]
        yield {}, [x]


def unique(attrs, x):
    """NumPy's, in the order of the first of each."""
    values, first, back, counts = np.unique(x.numpy(), return_index=True, return_inverse=True,
                                            return_counts=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return [x[torch.from_numpy(first[order])], torch.from_numpy(rank[back.reshape(-1)]),
            torch.from_numpy(counts[order])]


def roll_cases(draw):
    for i, x in enumerate(tensors(draw, SHAPES)):
        axes = [0] if i % 3 else list(range(x.ndim))
        yield {"shift": [int(draw.indices((), 13)) - 6 for _ in axes], "axes": axes}, [x]


MATRICES = [(2, 3), (3, 2), (2, 2), (0, 2), (3, 3), (2, 0), (2, 2, 3), (1, 4), (1, 1)]


def diag_cases(draw):
    for x in tensors(draw, SHAPES):
        yield {}, [x]


def matrix_cases(draw):
    for x in tensors(draw, MATRICES):
        yield {}, [x]


def band_cases(draw):
    for x in tensors(draw, MATRICES):
        yield {"lower": int(draw.indices((), 4)) - 1, "upper": int(draw.indices((), 4)) - 1}, [x]


def band(attrs, x):
    # By choice: 0 times NaN is none.
    lower, upper = attrs["lower"], attrs["upper"]
    i = torch.arange(x.shape[-2])[:, None]
    j = torch.arange(x.shape[-1])[None, :]
    kept = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
    return torch.where(kept, x, torch.zeros((), dtype=x.dtype))


def eye_cases(draw):
    for i in range(40):
        yield {"rows": i % 7, "columns": (i * 3) % 8}, []


def linspace_cases(draw):
    ends = [-2.0, -0.5, 0.0, 0.25, 1.0, 3.0, 100.0, -1e4]
    for i in range(40):
        yield {"start": ends[i % 8], "stop": ends[(i * 3 + i // 8) % 8], "count": i % 6}, []


def linspace(attrs):
    return torch.from_numpy(np.linspace(attrs["start"], attrs["stop"], attrs["count"]))


def meshgrid_cases(draw):
    shapes = [(2,), (3,), (0,), (1,), (4,)]
    rules = hostile(draw.dtype)
    for i in range(42):
        inputs = [draw.numbers(shapes[(i + k * (1 + i // 5)) % 5]) for k in range(1 + i % 3)]
        if i < 30:
            inputs[0] = draw.with_hostile(inputs[0], rules[i % len(rules)])
        yield {"indexing": "ij" if i % 2 else "xy"}, inputs


def mirror_cases(draw):
    for i, x in enumerate(tensors(draw, [s for s in SHAPES if 0 not in s])):
        mode = "symmetric" if i % 2 else "reflect"
        most = [n if i % 2 else n - 1 for n in x.shape]
        yield {"paddings": [int(draw.indices((), m + 1)) for m in most for _ in range(2)],
               "mode": mode}, [x]
    for shape in [(0,), (2, 0)]:
        yield {"paddings": [0, 0] * len(shape), "mode": "symmetric"}, [draw.numbers(shape)]


def mirror(attrs, x):
    paddings = list(zip(attrs["paddings"][::2], attrs["paddings"][1::2]))
    at = np.pad(np.arange(x.numel()).reshape(x.shape), paddings, mode=attrs["mode"])
    return x.reshape(-1)[torch.from_numpy(at)]


def sequence_mask_cases(draw):
    shapes = [(3,), (), (0,), (2, 2), (5,), (2, 0)]
    low, high = (-2**31, 2**31 - 1) if draw.dtype == "i32" else (-2**63, 2**63 - 1)
    for i in range(42):
        lengths = np.asarray(draw.random.integers(-1, 6, shapes[i % 6])).astype(object)
        if i % 7 == 3:
            lengths = draw.with_hostile(lengths, [low, high])
        yield {"size": i % 6}, [lengths]


def sequence_mask(attrs, lengths):
    return torch.arange(attrs["size"]) < lengths[..., None]


def reverse_sequence_cases(draw):
    for i, x in enumerate(tensors(draw, [(2, 3), (3, 2), (2, 2, 2), (1, 5), (0, 3), (2, 0), (4, 2)])):
        axis, batch = (1, 0) if i % 3 else (0, 1)
        lengths = draw.indices((x.shape[batch],), x.shape[axis] + 1 + (i % 14 == 13))
        yield {"axis": axis, "batch_axis": batch}, [x, Index(lengths, draw.pick(["i32", "i64"]))]


def reverse_sequence(attrs, x, lengths):
    axis, batch = attrs["axis"], attrs["batch_axis"]
    steps = x.shape[axis]
    if lengths.numel() and lengths.max() > steps:
        raise ValueError("too long")
    at = torch.arange(steps)[None, :].repeat(lengths.numel(), 1)
    turned = torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
    y = x.movedim((batch, axis), (0, 1))
    index = turned.reshape(turned.shape + (1,) * (y.dim() - 2)).expand(y.shape)
    return torch.take_along_dim(y, index, 1).movedim((0, 1), (batch, axis))


def search_cases(draw):
    rules = hostile(draw.dtype)
    shapes = [((5,), (3,)), ((4,), (2, 2)), ((0,), (2,)), ((2, 3), (2, 2)), ((6,), ()), ((1,), (4,)),
              ((3,), (0,)), ((2, 4), (2, 1))]
    for i in range(44):
        sequence, values = (draw.numbers(s) for s in shapes[i % 8])
        if i < 30:
            values = draw.with_hostile(values, rules[i % len(rules)])
        if i % 3 == 1:
            sequence = draw.with_hostile(sequence, rules[i % len(rules)])
        if draw.dtype in FLOATS:
            sequence = np.sort(sequence.astype(np.float64), -1)
        else:
            sequence = np.sort(sequence, -1)
        yield {"right": i % 2 == 1, "_dtype": draw.dtype}, [sequence, values]


def search(attrs, sequence, values):
    """NumPy's, row by row."""
    side = "right" if attrs["right"] else "left"
    s, v = (as_numbers(x, attrs["_dtype"]).numpy() for x in (sequence, values))
    if s.ndim == 1:
        return torch.from_numpy(np.asarray(np.searchsorted(s, v, side), dtype=np.int64))
    rows = [np.searchsorted(a, b, side) for a, b in zip(s, v)]
    return torch.from_numpy(np.array(rows, dtype=np.int64).reshape(v.shape))


# --- blocks ---


def blocks(name, shapes, peer, attrs):
    def cases(draw):
        for i, x in enumerate(tensors(draw, shapes, count=40)):
            yield attrs[i % len(shapes)], [x]

    return moved(name, cases, peer, NUMBERS)


def space_to_depth(attrs, x):
    n, h, w, c = x.shape
    b = attrs["block"]
    y = x.reshape(n, h // b, b, w // b, b, c).permute(0, 1, 3, 2, 4, 5)
    return y.reshape(n, h // b, w // b, b * b * c)


def depth_to_space(attrs, x):
    n, h, w, c = x.shape
    b = attrs["block"]
    y = x.reshape(n, h, w, b, b, c // b // b).permute(0, 1, 3, 2, 4, 5)
    return y.reshape(n, h * b, w * b, c // b // b)


def space_to_batch(attrs, x):
    block, pads = attrs["block"], attrs["paddings"]
    wide = [0, 0] * (x.dim() - 1 - len(block))
    for d in reversed(range(len(block))):
        wide += [pads[2 * d], pads[2 * d + 1]]
    x = torch.nn.functional.pad(x, wide + [0, 0])
    n, rest = x.shape[0], x.shape[1 + len(block):]
    sizes = [s // b for s, b in zip(x.shape[1:], block)]
    y = x.reshape([n] + [v for s, b in zip(sizes, block) for v in (s, b)] + list(rest))
    m = len(block)
    order = [2 + 2 * d for d in range(m)] + [0] + [1 + 2 * d for d in range(m)]
    y = y.permute(order + list(range(1 + 2 * m, y.dim())))
    return y.reshape([n * int(np.prod(block))] + sizes + list(rest))


def batch_to_space(attrs, x):
    block, crops = attrs["block"], attrs["crops"]
    m, rest = len(block), x.shape[1 + len(block):]
    n = x.shape[0] // int(np.prod(block))
    y = x.reshape(list(block) + [n] + list(x.shape[1:]))
    order = [m] + [v for d in range(m) for v in (m + 1 + d, d)] + list(range(2 * m + 1, y.dim()))
    y = y.permute(order).reshape([n] + [s * b for s, b in zip(x.shape[1:], block)] + list(rest))
    for d in range(m):
        y = y.narrow(1 + d, crops[2 * d], y.shape[1 + d] - crops[2 * d] - crops[2 * d + 1])
    return y


GOLDENS = [
    moved("Where", where_cases, lambda a, x: torch.argwhere(x != 0), gradient=False),
    moved("boolean_mask", boolean_mask_cases, lambda a, x, mask: x[mask]),
    moved("GatherNd", gather_nd_cases, gather_nd),
    Golden("ScatterNd", FLOATS + ("i32", "i64"), "sum", scatter_nd_cases, scatter_nd, True),
    moved("Unique", unique_cases, unique, gradient=False),
    moved("Roll", roll_cases, lambda a, x: torch.roll(x, a["shift"], a["axes"])),
    moved("diag", diag_cases, lambda a, x: torch.diag_embed(x)),
    moved("MatrixDiag", diag_cases, lambda a, x: torch.diag_embed(x)),
    moved("MatrixDiagPart", matrix_cases, lambda a, x: torch.diagonal(x, dim1=-2, dim2=-1)),
    moved("eye", eye_cases, lambda a: torch.eye(a["rows"], a["columns"], dtype=torch.int64),
          gradient=False),
    moved("tril", matrix_cases, lambda a, x: band({"lower": -1, "upper": 0}, x)),
    moved("triu", matrix_cases, lambda a, x: band({"lower": 0, "upper": -1}, x)),
    moved("MatrixBandPart", band_cases, band),
    Golden("linspace", FLOATS, "sum", linspace_cases, linspace, False),
    moved("meshgrid", meshgrid_cases,
          lambda a, *vectors: list(torch.meshgrid(*vectors, indexing=a["indexing"])), NUMBERS),
    moved("mirror_pad", mirror_cases, mirror),
    moved("sequence_mask", sequence_mask_cases, sequence_mask, ("i32", "i64"), False),
    moved("ReverseSequence", reverse_sequence_cases, reverse_sequence),
    moved("SearchSorted", search_cases, search, NUMBERS, False),
    blocks("space_to_depth", [(1, 2, 2, 1), (1, 2, 4, 2), (0, 2, 2, 1), (2, 2, 2, 1), (1, 3, 3, 1)],
           space_to_depth, [{"block": b} for b in (2, 2, 2, 2, 3)]),
    blocks("depth_to_space", [(1, 1, 1, 4), (1, 1, 2, 8), (0, 1, 1, 4), (2, 1, 1, 4), (1, 1, 1, 9)],
           depth_to_space, [{"block": b} for b in (2, 2, 2, 2, 3)]),
    blocks("space_to_batch", [(1, 2, 2, 1), (1, 3, 1), (0, 2, 2), (2, 4), (1, 3, 2, 2)],
           space_to_batch,
           [{"block": [2, 2], "paddings": [0, 0, 0, 0]}, {"block": [2], "paddings": [1, 0]},
            {"block": [2], "paddings": [0, 0]}, {"block": [2], "paddings": [1, 1]},
            {"block": [2, 2], "paddings": [1, 0, 0, 2]}]),
    blocks("batch_to_space", [(4, 1, 1, 1), (2, 2, 1), (0, 1, 2), (4, 2), (4, 1, 2, 1)],
           batch_to_space,
           [{"block": [2, 2], "crops": [0, 0, 0, 0]}, {"block": [2], "crops": [1, 0]},
            {"block": [2], "crops": [0, 0]}, {"block": [2], "crops": [1, 1]},
            {"block": [2, 2], "crops": [1, 0, 0, 2]}]),
]
