#!/usr/bin/env python3
"""Writes programs.tsv: the loss and gradients of the first step of each program of docs/programs.md.

Run it with a Python that has torch: python tests/golden/programs.py [PROGRAM...]. Each function
below is one program in f64: parameter p, in the program's order of creation, has the elements
0.1 sin(1 + i + 7 p). A line of the table is: program, loss or parameter, and the loss, or the sum
and the Euclidean norm of the parameter's gradient. Lines of programs that are not named stay.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


class Parameters:
    """Makes the parameters of a program, by name, in the order of creation."""

    def __init__(self):
        self.named = {}

    def __call__(self, name, *shape):
        count = torch.Size(shape).numel()
        values = 0.1 * torch.sin(torch.arange(1, count + 1, dtype=torch.float64) + 7 * len(self.named))
        self.named[name] = values.reshape(shape).requires_grad_()
        return self.named[name]


def rows(parameters, loss, name="loss", only=None):
    """The lines of one loss: of the gradients of the parameters whose names begin with one of `only`."""
    chosen = {n: p for n, p in parameters.named.items()
              if only is None or any(n.startswith(prefix) for prefix in only)}
    gradients = torch.autograd.grad(loss, list(chosen.values()), retain_graph=True)
    lines = [[name, loss.item()]]
    for parameter, gradient in zip(chosen, gradients):
        lines.append([parameter, gradient.sum().item(), gradient.norm().item()])
    return lines


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def main():
    table = pathlib.Path(__file__).with_name("programs.tsv")
    chosen = sys.argv[1:] or list(PROGRAMS)
    kept = [line for line in table.read_text().splitlines()
            if line and line.split("\t")[0] not in chosen] if table.exists() else []
    for name in chosen:
        for line in PROGRAMS[name]():
            kept.append("\t".join([name, line[0]] + [f"{value:.17g}" for value in line[1:]]))
    table.write_text("\n".join(sorted(kept, key=lambda line: line.split("\t")[0])) + "\n")


if __name__ == "__main__":
    main()
