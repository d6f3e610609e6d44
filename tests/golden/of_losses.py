"""Losses."""

import numpy as np
import torch
import torch.nn.functional as F

from inputs import FLOATS, WIDE, hostile
from make import Golden, Index
from of_math import pairs


def probabilities(draw):
    for i, (x, y) in enumerate(pairs(draw, ((-2.0, 2.0), (-30.0, 30.0)))):
        label = draw.random.integers(0, 3, y.shape) / 2.0
        yield {}, [x, np.asarray(label, dtype=np.float64)]


def classes(draw):
    for x, y in pairs(draw):
        yield {}, [x, np.asarray(draw.random.integers(0, 2, y.shape), dtype=np.float64)]


def both(draw):
    for i, (x, y) in enumerate(pairs(draw)):
        yield {"delta": [1, 0.5, 2][i % 3]}, [x, y]


def alike(draw):
    for x, y in pairs(draw):
        yield {}, [x, y]


def sigmoid(attrs, x, labels):
    x, labels = torch.broadcast_tensors(x, labels)
    return labels * F.softplus(-x, threshold=1e9) + (1 - labels) * F.softplus(x, threshold=1e9)


def mean_squared(attrs, x, y):
    return ((x - y) ** 2).mean()


def huber(attrs, x, y):
    x, y = torch.broadcast_tensors(x, y)
    return F.huber_loss(x, y, reduction="none", delta=attrs["delta"])


def hinge(attrs, x, labels):
    return torch.relu(1 - (2 * labels - 1) * x)


def rows(draw):
    shapes = [(3,), (2, 3), (4, 2), (0, 3), (2, 2, 2), (1, 5), (2, 0)]
    rules = hostile(draw.dtype)
    for i in range(44):
        a, b = draw.numbers(shapes[i % 7]), draw.numbers(shapes[i % 7])
        if i < 28:
            a = draw.with_hostile(a, rules[i % len(rules)])
        yield {"axis": 0 if i % 3 == 2 and a.ndim > 1 else -1}, [a, b]


def cosine(attrs, a, b):
    """Of rows in the size of their largest element; one of zeros has the length 1."""
    axis = attrs["axis"]
    if not a.numel():
        return 1 - (a * b).sum(axis)

    def unit(x):
        most = x.detach().abs().amax(axis, keepdim=True)
        x = x / torch.where(most == 0, torch.ones_like(most), most)
        length = (x * x).sum(axis, keepdim=True)
        return x / torch.sqrt(torch.where(length == 0, torch.ones_like(length), length))

    return 1 - (unit(a) * unit(b)).sum(axis)


def ctc_cases(draw):
    rules = hostile(draw.dtype)
    for i in range(46):
        steps, batch, count, most = ((4, 1, 3, 2), (3, 2, 2, 1), (5, 1, 3, 2), (2, 2, 3, 2), (3, 0, 2, 1))[i % 5]
        blank = i % count if i % 3 == 2 else 0
        logits = draw.numbers((steps, batch, count))
        if i < 28:
            logits = draw.with_hostile(logits, rules[i % len(rules)])
        others = [c for c in range(count) if c != blank]
        labels = np.array([[draw.pick(others) for _ in range(most)] for _ in range(batch)]).reshape(batch, most)
        yield {"blank": blank}, [logits, Index(labels), Index(draw.indices((batch,), most + 1)),
                                 Index(1 + draw.indices((batch,), steps))]


def ctc(attrs, logits, labels, label_lengths, lengths):
    if not logits.numel():
        return logits.sum((0, 2))
    scores = torch.log_softmax(logits, 2)
    loss, kept = (F.ctc_loss(scores, labels, lengths, label_lengths, attrs["blank"], "none", zero)
                  for zero in (False, True))
    # No gradient of a sequence that is too short.
    return torch.where(torch.isinf(loss), loss.detach(), kept)


GOLDENS = [
    Golden("sigmoid_cross_entropy", WIDE, "sum", probabilities, sigmoid, True),
    Golden("mean_squared_error", FLOATS, "sum", alike, mean_squared, True),
    Golden("huber", FLOATS, "sum", both, huber, True),
    Golden("hinge", WIDE, "sum", classes, hinge, True),
    Golden("cosine_distance", FLOATS, "sum", rows, cosine, True),
    Golden("CTCLoss", WIDE, "sum", ctc_cases, ctc, True),
]
