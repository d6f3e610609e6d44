"""Updates: one step from values and state that are given, whole and row by row."""

import math

import numpy as np
import torch

from inputs import WIDE, Draw, hostile, rounded
from make import Golden, Index

SHAPES = [(3,), (2, 2), (0,), (4,), (3, 1), ()]


class Rule:
    """`slots` and `scalars` as the op has them, before and behind them the variable and grad."""

    def __init__(self, name, slots, scalars, step, counts=False, after=()):
        self.name, self.slots, self.scalars, self.step = name, slots, scalars, step
        self.counts, self.after = counts, after  # an i64 counter; scalars behind grad

    def scalar(self, draw, name):
        values = {"lr": [0.1, 0.5, 0.01], "rho": [0.9, 0.5], "beta1": [0.9, 0.5], "beta2": [0.99, 0.9],
                  "epsilon": [1e-7, 0.125], "momentum": [0, 0.9], "initial": [0.1, 0.5],
                  "l1": [0, 0.125, 0.5], "l2": [0, 0.25], "decay": [0, 0.01]}[name]
        return rounded(draw.pick(values), draw.dtype)

    def state(self, draw, shape):
        inputs = [draw.numbers(shape)]
        inputs += [draw.numbers(shape, *((-1.0, 1.0) if slot in ("m", "mean", "velocity", "linear")
                                         else (1.1, 2.0))) for slot in self.slots]
        if self.counts:
            inputs.append(Index(int(draw.indices((), 5))))
        return inputs + [self.scalar(draw, name) for name in self.scalars]

    def whole(self, draw):
        rules = hostile(draw.dtype)
        for i in range(42):
            inputs = self.state(draw, SHAPES[i % len(SHAPES)])
            grad = draw.numbers(SHAPES[i % len(SHAPES)])
            if i < 28 and i % 2 == 0:
                grad = draw.with_hostile(grad, rules[i // 2])
            elif i < 28:
                inputs[0] = draw.with_hostile(inputs[0], rules[i // 2])
            yield {}, inputs + [grad] + [self.scalar(draw, name) for name in self.after]

    def rows(self, draw):
        rules = hostile(draw.dtype)
        for i in range(42):
            shape = [(4,), (3, 2), (2, 1), (5,)][i % 4]
            inputs = self.state(draw, shape)
            n = i % 4 if i % 7 else 0
            grad = draw.numbers((n,) + shape[1:])
            if i < 28:
                grad = draw.with_hostile(grad, rules[i // 2])
            at = draw.indices((n,), shape[0] + (i % 13 == 12))
            yield {}, inputs + [Index(at, draw.pick(["i32", "i64"])), grad]

    def split(self, values):
        n = 1 + len(self.slots) + self.counts
        return list(values[:n]), dict(zip(self.scalars, values[n:n + len(self.scalars)])), \
            list(values[n + len(self.scalars):])

    def apply(self, attrs, *values):
        state, scalars, rest = self.split(values)
        scalars.update(zip(self.after, rest[1:]))
        return self.step(scalars, rest[0], *state)

    def apply_rows(self, attrs, *values):
        state, scalars, (at, rows) = self.split(values)
        at = at.long()
        if at.numel() and int(at.max()) >= state[0].shape[0]:
            raise IndexError("outside")
        new = [s.clone() for s in state]
        for place in sorted(set(at.tolist())):
            mine = [k for k, i in enumerate(at.tolist()) if i == place]
            grad = rows[mine[0]].clone()
            for k in mine[1:]:
                grad = grad + rows[k]
            parts = [s[place] if s.dim() else s for s in state]  # a counter is one for all
            for target, value in zip(new, self.step(scalars, grad, *parts)):
                if target.dim():
                    target[place] = value
        if self.counts:
            new[-1] = state[-1] + 1
        return new

    def goldens(self, sparse=True):
        yield Golden("Apply" + self.name, WIDE, "sum", self.whole, self.apply, False)
        if sparse:
            yield Golden("ApplySparse" + self.name, WIDE, "sum", self.rows, self.apply_rows, False)


def by_optimizer(make, state_names):
    """One step of PyTorch's optimizer from the state that is given."""

    def step(s, grad, var, *slots):
        parameter = torch.nn.Parameter(var.clone())
        optimizer = make([parameter], s)
        parameter.grad = grad.clone()
        optimizer.state[parameter].update({"step": torch.tensor(3.0)})
        optimizer.state[parameter].update({k: v.clone() for k, v in zip(state_names, slots)})
        optimizer.step()
        return [parameter.detach()] + [optimizer.state[parameter][k] for k in state_names]

    return step


def adagrad(s, grad, var, accum):
    """PyTorch's, with the initial sum added under the root alone."""
    step = by_optimizer(lambda p, s: torch.optim.Adagrad(p, float(s["lr"]), eps=float(s["epsilon"])),
                        ["sum"])
    new = step(s, grad, var, accum + s["initial"])
    return [new[0], accum + grad * grad]


def shrunk(p, rate, l1, l2):
    size = torch.clamp(p.abs() - rate * l1, min=0)
    return torch.copysign(size, p) / (1 + rate * l2)


# As TensorFlow's kernels state them.
def ftrl(s, grad, var, accum, linear):
    before = torch.sqrt(accum + s["initial"])
    accum = accum + grad * grad
    after = torch.sqrt(accum + s["initial"])
    linear = linear + grad - (after - before) / s["lr"] * var
    beyond = linear.abs() - s["l1"]
    new = -torch.sign(linear) * beyond / (after / s["lr"] + 2 * s["l2"])
    return [torch.where(beyond <= 0, torch.zeros_like(new), new), accum, linear]


def proximal_descent(s, grad, var):
    return [shrunk(var - s["lr"] * grad, s["lr"], s["l1"], s["l2"])]


def proximal_adagrad(s, grad, var, accum):
    accum = accum + grad * grad
    rate = s["lr"] / torch.sqrt(accum + s["initial"])
    return [shrunk(var - rate * grad, rate, s["l1"], s["l2"]), accum]


# You et al. (2020), algorithm 2.
def lamb(s, grad, var, m, v, count):
    t = int(count) + 1
    m = m + (1 - s["beta1"]) * (grad - m)
    v = v + (1 - s["beta2"]) * (grad * grad - v)
    move = m / (1 - s["beta1"] ** t) / (torch.sqrt(v / (1 - s["beta2"] ** t)) + s["epsilon"])
    move = move + s["decay"] * var
    a, b = torch.linalg.vector_norm(var.double()), torch.linalg.vector_norm(move.double())
    rate = s["lr"] * (a / b).to(var.dtype) if a > 0 and b > 0 else s["lr"]
    return [var - rate * move, m, v, count + 1]


def rmsprop(centered):
    def make(p, s):
        return torch.optim.RMSprop(p, float(s["lr"]), float(s["rho"]), float(s["epsilon"]),
                                   momentum=1e-300 if float(s["momentum"]) == 0 else float(s["momentum"]),
                                   centered=centered)

    names = ["grad_avg"] * centered + ["square_avg", "momentum_buffer"]
    return by_optimizer(make, names)


RULES = [
    Rule("Adagrad", ["accum"], ["lr", "initial", "epsilon"], adagrad),
    Rule("Adadelta", ["square", "moved"], ["lr", "rho", "epsilon"], by_optimizer(
        lambda p, s: torch.optim.Adadelta(p, float(s["lr"]), float(s["rho"]), float(s["epsilon"])),
        ["square_avg", "acc_delta"])),
    Rule("RMSProp", ["square", "velocity"], ["lr", "rho", "momentum", "epsilon"], rmsprop(False)),
    Rule("CenteredRMSProp", ["mean", "square", "velocity"], ["lr", "rho", "momentum", "epsilon"],
         rmsprop(True)),
    Rule("Ftrl", ["accum", "linear"], ["lr", "initial", "l1", "l2"], ftrl),
    Rule("ProximalGradientDescent", [], ["lr", "l1", "l2"], proximal_descent),
    Rule("ProximalAdagrad", ["accum"], ["lr", "initial", "l1", "l2"], proximal_adagrad),
    Rule("GradientDescent", [], ["lr"], lambda s, grad, var: [var - s["lr"] * grad]),
]
ADAM = ["lr", "beta1", "beta2", "epsilon"]


def momentum(s, grad, var, accum):
    accum = accum * s["momentum"] + grad
    return [var - s["lr"] * accum, accum]


def adam(s, grad, var, m, v, count):
    """As TensorFlow states it: the bias is in the rate, epsilon beside the root."""
    t = int(count) + 1
    m = m + (1 - s["beta1"]) * (grad - m)
    v = v + (1 - s["beta2"]) * (grad * grad - v)
    rate = s["lr"] * torch.sqrt(1 - s["beta2"] ** t) / (1 - s["beta1"] ** t)
    return [var - rate * m / (torch.sqrt(v) + s["epsilon"]), m, v, count + 1]


def adamw(s, grad, var, m, v, count):
    """PyTorch's."""
    t = int(count) + 1
    m = m + (1 - s["beta1"]) * (grad - m)
    v = v + (1 - s["beta2"]) * (grad * grad - v)
    size = torch.sqrt(v / (1 - s["beta2"] ** t)) + s["epsilon"]
    return [var * (1 - s["lr"] * s["decay"]) - s["lr"] / (1 - s["beta1"] ** t) * m / size, m, v,
            count + 1]


GOLDENS = [golden for rule in RULES for golden in rule.goldens()]
GOLDENS += Rule("Adam", ["m", "v"], ADAM, adam, True).goldens()
# Whole gradients come before the last scalar, rows after it.
for whole, rows in (
        (Rule("Momentum", ["accum"], ["lr"], momentum, after=["momentum"]),
         Rule("Momentum", ["accum"], ["lr", "momentum"], momentum)),
        (Rule("AdamW", ["m", "v"], ADAM, adamw, True, ["decay"]),
         Rule("AdamW", ["m", "v"], ADAM + ["decay"], adamw, True))):
    GOLDENS += list(whole.goldens(False)) + list(rows.goldens())[1:]
GOLDENS += Rule("Lamb", ["m", "v"], ADAM, lamb, True, ["decay"]).goldens(False)
