"""Linear algebra: matrices one by one and in batches."""

import numpy as np
import torch

from inputs import WIDE, hostile, rounded
from make import Golden, Index

SQUARE = [(2, 2), (3, 3), (1, 1), (2, 2, 2), (0, 2, 2), (4, 4), (0, 0), (1, 2, 2)]
TALL = [(3, 2), (2, 2), (4, 3), (2, 3, 2), (0, 3, 2), (3, 1)]
WIDER = [(2, 3), (1, 3), (2, 4), (2, 2, 3)]


def matrices(draw, shapes, make=None, count=44, keep=lambda x: True):
    """Regular ones; then ones with hostile numbers, for which any answer of the peer's will do."""
    rules = hostile(draw.dtype)
    for i in range(count):
        shape = shapes[i % len(shapes)]
        while True:
            x = draw.numbers(shape)
            x = rounded(make(x), draw.dtype) if make else x
            if x.size == 0 or keep(x):
                break
        if i < 2 * len(rules) and i % 2:
            x = draw.with_hostile(x, rules[i // 2])
        yield x


def regular(x):
    s = np.linalg.svd(x, compute_uv=False)
    if s.size and (s[..., -1] < 0.2).any():
        return False
    gaps = np.abs(np.diff(s, axis=-1))
    return not gaps.size or bool((gaps > 0.2).all())


def positive(x):
    """Symmetric and positive definite, with few digits."""
    n = x.shape[-1]
    y = np.round(x @ np.swapaxes(x, -1, -2) * 8) / 8 + 0.5 * np.eye(n)
    return (y + np.swapaxes(y, -1, -2)) / 2


def symmetric(x):
    return (x + np.swapaxes(x, -1, -2)) / 2


def apart(x):
    gaps = np.diff(np.linalg.eigvalsh(x), axis=-1)
    return not gaps.size or bool((gaps > 0.2).all())


def one(shapes, make=None, keep=regular):
    def cases(draw):
        for x in matrices(draw, shapes, make, keep=keep):
            yield {}, [x]

    return cases


def inverse(attrs, x):
    return torch.linalg.inv(x)


def log_determinant(attrs, x):
    return list(torch.linalg.slogdet(x))


def cholesky(attrs, x):
    return torch.linalg.cholesky((x + x.mT) / 2)


def solve_cases(draw):
    for i, a in enumerate(matrices(draw, SQUARE, keep=regular)):
        b = draw.numbers(a.shape[:-1] + (1 + i % 2,))
        yield {"adjoint": i % 3 == 1}, [a, b]


def solve(attrs, a, b):
    return torch.linalg.solve(a.mT if attrs["adjoint"] else a, b)


def triangular_cases(draw):
    for i, a in enumerate(matrices(draw, SQUARE, lambda x: x + 3 * np.eye(x.shape[-1]),
                                   keep=regular)):
        b = draw.numbers(a.shape[:-1] + (1 + i % 2,))
        yield {"lower": i % 2 == 0, "adjoint": i % 3 == 1}, [a, b]


def triangular(attrs, a, b):
    lower = attrs["lower"]
    a = torch.where(torch.ones(a.shape[-2:], dtype=torch.bool).tril() if lower else
                    torch.ones(a.shape[-2:], dtype=torch.bool).triu(), a, torch.zeros((), dtype=a.dtype))
    if a.numel() and bool((torch.diagonal(a, dim1=-2, dim2=-1) == 0).any()):
        raise ValueError("singular")
    if attrs["adjoint"]:
        a, lower = a.mT, not lower
    return torch.linalg.solve_triangular(a, b, upper=not lower)


def least_squares_cases(draw):
    for i, a in enumerate(matrices(draw, TALL + WIDER, keep=regular)):
        b = draw.numbers(a.shape[:-1] + (1 + i % 2,))
        yield {"l2_regularizer": [0, 0.5][i % 2]}, [a, b]


def least_squares(attrs, a, b):
    """With the regulariser as more rows."""
    l2, n = attrs["l2_regularizer"], a.shape[-1]
    if not a.numel():
        return a.mT @ b
    if l2:
        more = (l2**0.5 * torch.eye(n, dtype=a.dtype)).expand(a.shape[:-2] + (n, n))
        a = torch.cat([a, more], -2)
        b = torch.cat([b, torch.zeros(b.shape[:-2] + (n, b.shape[-1]), dtype=b.dtype)], -2)
    return torch.linalg.lstsq(a, b)[0]


def qr(attrs, x):
    q, r = torch.linalg.qr(x, mode="reduced")
    signs = torch.where(torch.diagonal(r, dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(x.dtype).detach()
    return [q * signs[..., None, :], r * signs[..., :, None]]


def svd(attrs, x):
    """The vectors up to their signs: u diag(1 / (1 + s)) v^T."""
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    return [s, (u / (1 + s[..., None, :])) @ vh]


def eig(attrs, x):
    """The vectors up to their signs: v diag(1 / (1 + e^2)) v^T."""
    e, v = torch.linalg.eigh(x / 2 + x.mT / 2)
    return [e, (v / (1 + e * e)[..., None, :]) @ v.mT]


def product_cases(draw):
    shapes = [((2, 2), (2, 2)), ((2, 1, 3), (3, 2)), ((0, 2), (2, 3)), ((2, 0), (0, 2)),
              ((2, 2, 2), (2, 2, 1)), ((1, 2), (2, 1)), ((3, 1, 2), (1, 2, 2))]
    rules = hostile(draw.dtype)
    for i in range(42):
        a, b = (draw.numbers(s) for s in shapes[i % 7])
        if i < 28:
            a = draw.with_hostile(a, rules[i % len(rules)])
        attrs = {"transpose_a": i % 3 == 1, "transpose_b": i % 4 == 1}
        if attrs["transpose_a"]:
            a = np.swapaxes(a, -1, -2).copy()
        if attrs["transpose_b"]:
            b = np.swapaxes(b, -1, -2).copy()
        yield attrs, [a, b]


def product(attrs, a, b):
    return (a.mT if attrs["transpose_a"] else a) @ (b.mT if attrs["transpose_b"] else b)


GOLDENS = [
    Golden("MatrixInverse", WIDE, "sum", one(SQUARE), inverse, True),
    Golden("MatrixDeterminant", WIDE, "sum", one(SQUARE), lambda a, x: torch.linalg.det(x), True),
    Golden("LogMatrixDeterminant", WIDE, "sum", one(SQUARE), log_determinant, True),
    Golden("Cholesky", WIDE, "sum", one(SQUARE, positive, lambda x: True), cholesky, True),
    Golden("MatrixSolve", WIDE, "sum", solve_cases, solve, True),
    Golden("MatrixTriangularSolve", WIDE, "sum", triangular_cases, triangular, True),
    Golden("MatrixSolveLs", WIDE, "sum", least_squares_cases, least_squares, True),
    Golden("Qr", WIDE, "sum", one(TALL), qr, True),
    Golden("Svd", WIDE, "sum", one(TALL + WIDER), svd, True),
    Golden("SelfAdjointEig", WIDE, "sum", one(SQUARE, symmetric, apart), eig, True),
    Golden("BatchMatMul", ("f32", "f64", "f16", "bf16"), "sum", product_cases, product, True),
]
