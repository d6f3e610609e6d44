"""Writes ops/*.txt: what PyTorch, NumPy and SciPy compute of hostile and of ordinary inputs.

    python3 tests/golden/make.py [FOLDER] [NAME...]

tests/ops/golden/golden_test.cpp reads the files and has what the ops of this tree compute. A file
is blocks of lines:

    = NAME DTYPE RULE             of which op or function, and how it is compared
    attributes|inputs|outputs|gradients

Attributes are `name=value` with commas between them, and x between the elements of a list. Tensors,
with semicolons between them, are a type where it is not DTYPE (i: i32, l: i64, b: bool), the
dimensions with x between them, a colon and the values; those of complex numbers are `re,im`. Gradients are those of the sum of all
outputs, each element k times 1/2 + (k mod 7) / 8, for the inputs of that dtype; an empty one is not
compared. What arrives at a complex element is that times 1 + i/2. An outcome that is refused is `!`. RULE:

    exact   every bit
    each    every element to the tolerance of the dtype, of itself
    sum     the same, of the largest element of the tensor or of an input: sums lose the digits of
            small elements
    near    the same, of the element or of 1: sums of numbers near 1

A complex number is as near as the distance in the plane says. One with a part that is infinite is an
infinity, whatever the other part, as in C; one with a part that is NaN, and none that is infinite, is no number.

Everything is computed in f64 and rounded once. Where the peer finds something else in f32, or in
DTYPE itself, each is right, `a/b/c`, and so is what lies between them: numbers that overflow, or
lose their digits, on the way.
"""

import importlib
import pathlib
import sys
import warnings
import zlib

import numpy as np
import torch

from inputs import TORCH, Draw, is_complex, is_float, part_of, rounded, wrapped

GROUPS = ("math", "arrays", "segments", "linalg", "networks", "losses", "optimizers", "complex")
TOLERANCE = {"f64": 1e-11, "f32": 1e-5, "f16": 2.0**-9, "bf16": 2.0**-6}
LETTER = {"i32": "i", "i64": "l", "bool": "b"}


class Index:
    """An input of a type of its own."""

    def __init__(self, values, dtype="i64"):
        self.dtype = dtype
        self.values = np.asarray(values, dtype=np.int64)


def shortest(value, dtype):
    """The text of a number that is read back as the same."""
    value = float(value)
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    text = repr(value) if dtype == "f64" else np.format_float_positional(
        np.float32(value), trim="-") if 1e-4 < abs(value) < 1e7 else str(np.float32(value))
    return compact(text)


def compact(text):
    if "e" in text:
        digits, exponent = text.split("e")
        return compact(digits) + "e" + str(int(exponent))
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    sign, size = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (size[1:] if size.startswith("0.") else size)


def result(value, dtype):
    """A number of a result, with the digits that its tolerance asks for."""
    value = float(value)
    if value != value or abs(value) == float("inf"):
        return shortest(value, dtype)
    return compact(f"%.{ {'f64': 14, 'f32': 7}.get(dtype, 5)}g" % value)


def close(a, b, dtype, scale):
    if isinstance(a, complex):
        for never in (np.isinf, np.isnan):
            if never(a) or never(b):
                return bool(never(a) and never(b))
    if a != a or b != b:
        return a != a and b != b
    return a == b or abs(a - b) <= TOLERANCE[dtype] / 4 * max(abs(b), scale)


def text_of(array, letter, texts):
    return letter + "x".join(str(d) for d in np.shape(array)) + ":" + " ".join(texts)


def pair(text, value, dtype):
    return text(value.real, dtype) + "," + text(value.imag, dtype)


def input_text(value, dtype):
    if isinstance(value, Index):
        flat = (str(int(v)) for v in value.values.reshape(-1))
        return text_of(value.values, LETTER[value.dtype], flat)
    if is_float(dtype):
        return text_of(value, "", (shortest(v, dtype) for v in value.reshape(-1)))
    if is_complex(dtype):
        return text_of(value, "", (pair(shortest, v, part_of(dtype)) for v in value.reshape(-1)))
    return text_of(value, "", (str(int(v)) for v in value.reshape(-1)))


def outcome_text(computed, dtype, rule, inputs):
    """Of a tensor that was computed in f64, and in narrower types where it can be."""
    wide = computed[0]
    if wide.is_complex():
        return complex_text(computed, part_of(dtype), rule, inputs)
    plain = is_float(dtype) or is_complex(dtype) or dtype == "bool"
    dtype = part_of(dtype)
    if not wide.is_floating_point():
        keep = (lambda v: v) if plain else (lambda v: wrapped(v, dtype))
        return text_of(wide, "", (str(int(keep(v))) for v in wide.reshape(-1).tolist()))
    all_of = [rounded(t.detach().double().numpy(), dtype).reshape(-1) for t in computed]
    if rule == "exact":
        return text_of(wide, "", (shortest(v, dtype) for v in all_of[0]))
    scale = largest([all_of[0]] + inputs) if rule == "sum" else float(rule == "near")
    texts = []
    for numbers in zip(*all_of):
        kept = [numbers[0]]
        kept += [n for n in numbers[1:] if not any(close(n, k, dtype, scale) for k in kept)]
        texts.append("/".join(result(n, dtype) for n in kept))
    return text_of(wide, "", texts)


def complex_text(computed, part, rule, inputs):
    wide = computed[0]
    all_of = [rounded(t.detach().to(torch.complex128).resolve_conj().numpy(),
                      "c64" if part == "f32" else "c128").reshape(-1) for t in computed]
    if rule == "exact":
        return text_of(wide, "", (pair(shortest, v, part) for v in all_of[0]))
    parts = [all_of[0].real, all_of[0].imag]
    scale = largest(parts + inputs) if rule == "sum" else float(rule == "near")
    texts = []
    for numbers in zip(*all_of):
        kept = [complex(numbers[0])]
        for n in map(complex, numbers[1:]):
            if not any(close(n, k, part, scale) for k in kept):
                kept.append(n)
        texts.append("/".join(pair(result, n, part) for n in kept))
    return text_of(wide, "", texts)


def largest(arrays):
    """Of all finite numbers."""
    finite = [np.abs(a[np.isfinite(a)]) for a in arrays]
    return max((float(a.max()) for a in finite if a.size), default=0.0)


def weights(y):
    real = (0.5 + (torch.arange(y.numel()) % 7) / 8.0).reshape(y.shape)
    return (real * (1 + 0.5j) if y.is_complex() else real).to(y.dtype)


class Peer:
    """A function of (attributes, *tensors) that gives a tensor or a list of them."""

    def __init__(self, function, differentiated):
        self.function, self.differentiated = function, differentiated

    def __call__(self, attrs, inputs, dtype, torch_dtype):
        given = []
        for value in inputs:
            if isinstance(value, Index):
                tensor = torch.from_numpy(value.values)
                given.append(tensor.bool() if value.dtype == "bool" else tensor)
            elif is_complex(dtype):
                complex_dtype = {torch.float64: torch.complex128}.get(torch_dtype, torch_dtype)
                given.append(torch.tensor(value, dtype=complex_dtype))
            elif is_float(dtype):
                given.append(torch.tensor(value, dtype=torch_dtype))
            else:
                signed = np.vectorize(lambda v: wrapped(v, "i64"), otypes=[np.int64])
                given.append(torch.from_numpy(signed(value) if value.size else
                                              np.zeros(value.shape, np.int64)))
        leaves = []
        if self.differentiated and (is_float(dtype) or is_complex(dtype)):
            leaves = [g.requires_grad_() for g in given if g.is_floating_point() or g.is_complex()]
        outputs = self.function(attrs, *given)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        gradients = []
        if leaves:
            ys = [y for y in outputs if (y.is_floating_point() or y.is_complex()) and y.requires_grad]
            got = torch.autograd.grad(ys, leaves, [weights(y) for y in ys], allow_unused=True) \
                if ys else [None] * len(leaves)
            gradients = [torch.zeros_like(x) if g is None else g for g, x in zip(got, leaves)]
        return outputs, gradients


def attribute(value):
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (list, tuple)):
        return "x".join(str(v) for v in value)
    return str(value)


def case_line(golden, attrs, inputs, dtype):
    peer = Peer(golden.peer, golden.gradient)
    kind = np.float64 if is_float(dtype) else np.complex128 if is_complex(dtype) else object
    inputs = [v if isinstance(v, Index) else np.asarray(v, dtype=kind) for v in inputs]
    shown = ",".join(f"{k}={attribute(v)}" for k, v in attrs.items() if not k.startswith("_"))
    line = shown + "|" + ";".join(input_text(v, dtype) for v in inputs) + "|"
    try:
        outputs, gradients = peer(attrs, inputs, dtype, torch.float64)
    except (RuntimeError, ValueError, IndexError, ZeroDivisionError, np.linalg.LinAlgError):
        return line + "!|"
    outputs, gradients = [[y] for y in outputs], [[y] for y in gradients]
    narrower = {"f32": [torch.float32], "f64": [], "c64": [torch.complex64], "c128": []}
    for narrow in narrower.get(dtype, [torch.float32, TORCH.get(dtype)]):
        if not is_float(dtype) and not is_complex(dtype):
            break
        try:
            own = peer(attrs, inputs, dtype, narrow)
        except (RuntimeError, ValueError, TypeError):  # not in this type
            continue
        for lists, more in zip((outputs, gradients), own):
            for tensors, tensor in zip(lists, more):
                tensors.append(tensor)
    numbers = [v.reshape(-1) for v in inputs if not isinstance(v, Index)] if is_float(dtype) else []
    if is_complex(dtype):
        numbers = [part for v in inputs if not isinstance(v, Index)
                   for part in (v.real.reshape(-1), v.imag.reshape(-1))]
    texts = [outcome_text(y, dtype, golden.rule, numbers) for y in outputs]
    slopes = [outcome_text(y, dtype, golden.rule, numbers) for y in gradients]
    return line + ";".join(texts) + "|" + ";".join(slopes)


class Golden:
    def __init__(self, name, dtypes, rule, cases, peer, gradient):
        self.name, self.dtypes, self.rule = name, dtypes, rule
        self.cases, self.peer, self.gradient = cases, peer, gradient

    def blocks(self):
        for dtype in self.dtypes:
            rule = self.rule if is_float(dtype) or is_complex(dtype) else "exact"
            yield f"= {self.name} {dtype} {rule}"
            draw = Draw(dtype, zlib.crc32(f"{self.name} {dtype}".encode()))
            for attrs, inputs in self.cases(draw):
                yield case_line(self, attrs, inputs, dtype)


def main(arguments):
    here = pathlib.Path(__file__).parent
    folder = pathlib.Path(arguments[0]) if arguments else here / "ops"
    wanted = set(arguments[1:])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    for group in GROUPS:
        goldens = importlib.import_module("of_" + group).GOLDENS
        lines = [line for golden in goldens if not wanted or golden.name in wanted
                 for line in golden.blocks()]
        if lines:
            (folder / (group + ".txt")).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.modules["make"] = sys.modules["__main__"]  # of_*.py import from it
    main(sys.argv[1:])
