"""Convolutions, pools, activations, norms, pictures, attention."""

import numpy as np
import torch
import torch.nn.functional as F

from inputs import FLOATS, WIDE, hostile, rounded, tensors
from make import Golden, Index
from of_math import unary

NEAR, FAR = (-2.0, 2.0), (-30.0, 30.0)


# --- windows: x [n, places..., c]; PyTorch has channels first, and no SAME with strides ---


def channels_first(x):
    return x.movedim(-1, 1)


def channels_last(x):
    return x.movedim(1, -1)


def borders(attrs, sizes, window, strides, dilations):
    """What SAME and EXPLICIT put before and after each dimension."""
    if attrs["padding"] == "VALID":
        return [(0, 0)] * len(sizes)
    if attrs["padding"] == "EXPLICIT":
        flat = attrs["explicit_paddings"]
        return list(zip(flat[::2], flat[1::2]))
    found = []
    for size, k, step, dilation in zip(sizes, window, strides, dilations):
        whole = max(0, (-(-size // step) - 1) * step + (k - 1) * dilation + 1 - size)
        found.append((whole // 2, whole - whole // 2))
    return found


def padded(x, pads, value=0.0):
    """x with channels first."""
    return F.pad(x, [v for p in reversed(pads) for v in p], value=value)


def listed(attrs, name, rank):
    value = attrs.get(name, attrs.get(name[:-1], 1))
    return list(value) if isinstance(value, (list, tuple)) else [value] * rank


def convolution(rank):
    def peer(attrs, x, filters):
        steps, dilations = listed(attrs, "strides", rank), listed(attrs, "dilations", rank)
        pads = borders(attrs, x.shape[1:-1], filters.shape[:rank], steps, dilations)
        kernel = filters.movedim((-1, -2), (0, 1)).contiguous()
        y = (F.conv1d, F.conv2d, F.conv3d)[rank - 1](
            padded(channels_first(x), pads), kernel, None, steps, 0, dilations,
            attrs.get("groups", 1))
        return channels_last(y)

    return peer


def depthwise(attrs, x, filters):
    h, w, c, m = filters.shape
    return convolution(2)({**attrs, "groups": c}, x, filters.reshape(h, w, 1, c * m))


def transposed(rank):
    """The gradient of the convolution that takes the result to x."""

    def peer(attrs, x, filters):
        steps, dilations = listed(attrs, "strides", rank), listed(attrs, "dilations", rank)
        extra = listed(attrs, "output_paddings", rank) if "output_padding" in attrs else [0] * rank
        sizes = []
        for d in range(rank):
            reach = (filters.shape[d] - 1) * dilations[d] + 1
            if attrs["padding"] == "SAME":
                sizes.append(x.shape[1 + d] * steps[d])
            else:
                cut = sum(attrs["explicit_paddings"][2 * d:2 * d + 2]) \
                    if attrs["padding"] == "EXPLICIT" else 0
                sizes.append((x.shape[1 + d] - 1) * steps[d] + reach - cut + extra[d])
        k = filters.shape[-2] * attrs.get("groups", 1)
        whole = torch.zeros([x.shape[0]] + sizes + [k], dtype=x.dtype, requires_grad=True)
        y = convolution(rank)(attrs, whole, filters)
        return torch.autograd.grad(y, whole, x, create_graph=True)[0]

    return peer


def window_attrs(i, rank, single):
    """Strides, dilations and paddings in turn."""
    padding = ("SAME", "VALID", "EXPLICIT")[i % 3]
    step, dilation = (1, 2, 1, 1)[i % 4], (1, 1, 2)[i % 3] if i % 4 != 1 else 1
    attrs = {"padding": padding}
    if single:
        attrs.update(stride=step, dilation=dilation)
    else:
        attrs.update(strides=[step] * rank, dilations=[dilation] * rank)
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [(d + i) % 2 for d in range(2 * rank)]
    return attrs


def conv_cases(rank, turned=False, of_channels=False, single=False):
    places = {1: [(5,), (4,), (3,)], 2: [(3, 4), (3, 3), (4, 3)], 3: [(3, 3, 3), (3, 3, 2)]}[rank]

    def cases(draw):
        rules = hostile(draw.dtype)
        for i in range(42):
            attrs = window_attrs(i, rank, single)
            groups = 2 if i % 5 == 4 and not of_channels else 1
            c, k = ((2, 2) if groups == 2 else (1 + i % 2, 1 + i % 3 // 2)) if rank < 3 else (groups, groups)
            window = [2] * rank if i % 2 or rank == 3 else [3] + [2] * (rank - 1)
            if rank == 3 and i % 3 == 2:
                attrs["dilations"] = [1] * 3
            n = 0 if i % 21 == 20 else 1
            x = draw.numbers((n,) + places[i % len(places)] + (c,))
            if groups > 1:
                attrs["groups"] = groups
            if of_channels:
                shape = window + [c, k]
            elif turned:  # [..., outputs / groups, inputs]
                shape = window + [k // groups if groups > 1 else k, c]
            else:
                shape = window + [c // groups, k]
            filters = draw.numbers(tuple(shape))
            if i < 30 and i % 2 == 0:
                x = draw.with_hostile(x, rules[i // 2 % len(rules)])
            elif i < 30:
                filters = draw.with_hostile(filters, rules[i // 2 % len(rules)])
            yield attrs, [x, filters]

    return cases


def conv(name, rank, turned=False, single=False):
    peer = transposed(rank) if turned else convolution(rank)
    return Golden(name, FLOATS, "sum", conv_cases(rank, turned, single=single), peer, True)


def pool_cases(rank):
    places = {1: [(4,), (5,), (3,)], 2: [(4, 4), (3, 5), (2, 3)], 3: [(2, 2, 3), (3, 2, 2)]}[rank]
    size, strides = ("size", "stride") if rank == 1 else ("ksize", "strides") if rank == 2 \
        else ("size", "strides")

    def cases(draw):
        for i, x in enumerate(tensors(draw, [(1,) + p + (c,) for p in places for c in (1, 2)] +
                                      [(0,) + places[0] + (1,)])):
            window, step = 2 + (i % 4 == 3 and rank == 1), 1 + i % 2
            attrs = {"padding": ("VALID", "SAME")[i // 2 % 2]}
            attrs[size] = window if rank == 1 else [window] * rank
            attrs[strides] = step if rank == 1 else [step] * rank
            yield attrs, [x]

    return cases


def pool(largest, rank):
    def peer(attrs, x):
        window = attrs.get("size", attrs.get("ksize"))
        window = [window] if rank == 1 else window
        steps = attrs.get("strides", attrs.get("stride"))
        steps = [steps] if rank == 1 else steps
        pads = borders({"padding": attrs["padding"]}, x.shape[1:-1], window, steps, [1] * rank)
        y = padded(channels_first(x), pads, -float("inf") if largest else 0.0)
        counted = padded(torch.ones_like(channels_first(x)), pads)
        for d in range(rank):
            y, counted = (t.unfold(2 + d, window[d], steps[d]) for t in (y, counted))
        y, counted = y.flatten(2 + rank), counted.flatten(2 + rank)
        if not largest:
            # By choice: padding beside an infinity is none.
            return channels_last(y.sum(-1) / counted.sum(-1))
        values = y.detach().numpy()
        at = torch.from_numpy(np.argmax(values, -1)) if values.size else \
            torch.zeros(values.shape[:-1], dtype=torch.int64)  # the first, or the first NaN
        return channels_last(torch.take_along_dim(y, at[..., None], -1)[..., 0])

    return peer


def pooled(name, largest, rank):
    return Golden(name, WIDE, "sum", pool_cases(rank), pool(largest, rank), True)


# --- norms ---


def norm_cases(groups):
    def cases(draw):
        shapes = [(2, 2, 4), (1, 3, 4), (2, 4), (0, 2, 4), (1, 2, 2, 4), (2, 1, 4)]
        for i, x in enumerate(tensors(draw, shapes if groups else shapes + [(4,)])):
            attrs = {"epsilon": [1e-5, 0.25][i % 2]}
            inputs = [x, draw.numbers((4,)), draw.numbers((4,))]
            if groups == "group":
                attrs["groups"] = [1, 2, 4][i % 3]
            yield attrs, inputs if groups else inputs[:2]

    return cases


def group_norm(attrs, x, scale, offset):
    y = F.group_norm(channels_first(x), attrs.get("groups", x.shape[-1]), scale, offset,
                     attrs["epsilon"]) if x.numel() else channels_first(x * scale + offset)
    return channels_last(y)


def rms_norm(attrs, x, scale):
    return F.rms_norm(x, (x.shape[-1],), scale, attrs["epsilon"]) if x.numel() else x * scale


def response_cases(draw):
    for i, x in enumerate(tensors(draw, [(1, 2, 5), (2, 4), (0, 3), (1, 1, 2, 6), (3, 3)])):
        yield {"radius": 1 + i % 3, "bias": [1, 0.5][i % 2], "alpha": [1, 0.25, 2][i % 3],
               "beta": [0.5, 0.75, 1][i // 2 % 3]}, [x]


def response(attrs, x):
    size = 2 * attrs["radius"] + 1
    y = x.reshape(-1, 1, x.shape[-1]).movedim(-1, 1)
    y = F.local_response_norm(y, size, attrs["alpha"] * size, attrs["beta"], attrs["bias"])
    return y.movedim(1, -1).reshape(x.shape)


# --- pictures ---


def resize_cases(draw):
    shapes = [(1, 2, 3, 1), (1, 3, 2, 2), (2, 2, 2, 1), (0, 2, 2, 1), (1, 4, 1, 1)]
    for i, x in enumerate(tensors(draw, shapes, count=60)):
        size = [1 + int(v) for v in draw.indices((2,), 5)]
        yield {"method": "nearest" if i % 2 else "bilinear", "_size": size}, [x, Index(np.array(size))]


def resize(attrs, x, size):
    if not x.numel():
        return (x.sum() + torch.zeros([x.shape[0]] + attrs["_size"] + [x.shape[-1]], dtype=x.dtype))
    nearest = attrs["method"] == "nearest"
    y = F.interpolate(channels_first(x), attrs["_size"], mode="nearest-exact" if nearest else "bilinear",
                      align_corners=None if nearest else False)
    return channels_last(y)


def crop_cases(draw):
    shapes = [(1, 3, 3, 1), (2, 2, 4, 1), (1, 4, 3, 2), (0, 3, 3, 1)]
    for x in tensors(draw, shapes):
        top, left = (int(draw.indices((), n)) for n in x.shape[1:3])
        yield {"top": top, "left": left, "height": int(draw.indices((), x.shape[1] - top + 1)),
               "width": int(draw.indices((), x.shape[2] - left + 1))}, [x]


def crop(attrs, x):
    return x[:, attrs["top"]:attrs["top"] + attrs["height"],
             attrs["left"]:attrs["left"] + attrs["width"]]


def crop_and_resize_cases(draw):
    shapes = [(1, 3, 3, 1), (2, 2, 4, 1), (1, 4, 3, 2), (2, 1, 2, 1)]
    for i, x in enumerate(tensors(draw, shapes)):
        k = 2 if i % 11 else 0
        # Off the lines between pixels, where slopes have steps.
        boxes = rounded(np.round(draw.random.uniform(-0.3, 1.3, (k, 4)), 3) + 0.0007, draw.dtype)
        yield {"height": 1 + i % 3, "width": 1 + i // 3 % 2, "outside": [0, 0.5][i % 2]}, \
            [x, boxes, Index(draw.indices((k,), x.shape[0]))]


def crop_and_resize(attrs, x, boxes, indices):
    """As TensorFlow's: the corners of a box are the centres of the corners of its part."""
    rows = []

    def along(begin, end, count, size, i):
        part = 0.5 if count == 1 else i / (count - 1)
        at = (begin + (end - begin) * part) * (size - 1)
        if not 0 <= float(at) <= size - 1:
            return None
        low = int(torch.floor(at.detach()))
        return low, min(low + 1, size - 1), at - low

    outside = x.sum() * 0 if bool(torch.isfinite(x).all()) else torch.zeros((), dtype=x.dtype)
    outside = outside + torch.full((x.shape[-1],), attrs["outside"], dtype=x.dtype)
    for box, picture in zip(boxes, indices.tolist()):
        for i in range(attrs["height"]):
            v = along(box[0], box[2], attrs["height"], x.shape[1], i)
            for j in range(attrs["width"]):
                h = along(box[1], box[3], attrs["width"], x.shape[2], j)
                if v is None or h is None:
                    rows.append(outside)
                    continue
                p = x[picture]
                top = p[v[0], h[0]] + (p[v[0], h[1]] - p[v[0], h[0]]) * h[2]
                bottom = p[v[1], h[0]] + (p[v[1], h[1]] - p[v[1], h[0]]) * h[2]
                rows.append(top + (bottom - top) * v[2])
    shape = (boxes.shape[0], attrs["height"], attrs["width"], x.shape[-1])
    return torch.stack(rows).reshape(shape) if rows else x.sum() * 0 + torch.zeros(shape, dtype=x.dtype)


def in_top_k_cases(draw):
    for i, x in enumerate(tensors(draw, [(2, 4), (3, 3), (0, 3), (1, 5), (4, 2)])):
        yield {"k": i % 5}, [x, Index(draw.indices((x.shape[0],), x.shape[1]), draw.pick(["i32", "i64"]))]


def in_top_k(attrs, x, targets):
    """As TensorFlow's: false for a row that is not finite, ties at the boundary are in."""
    own = torch.take_along_dim(x, targets.long()[:, None], 1)
    return ((x > own).sum(1) < attrs["k"]) & torch.isfinite(x).all(1)


# --- attention ---


def attention_cases(draw):
    rules = hostile(draw.dtype)
    for i in range(42):
        b, queries, keys, size = ((1, 2, 3, 2), (2, 2, 2, 1), (1, 1, 3, 2), (0, 2, 2, 2))[i % 4]
        q, k = draw.numbers((b, queries, size)), draw.numbers((b, keys, size))
        inputs = [q, k, draw.numbers((b, keys, 2))]
        if i < 30:
            inputs[i % 3] = draw.with_hostile(inputs[i % 3], rules[i // 2 % len(rules)])
        attrs = {"causal": i % 5 == 1 and queries == keys}
        if i % 3 == 2 and not attrs["causal"]:
            inputs.append(Index(draw.indices((queries, keys), 3) > 0, "bool"))
        yield attrs, inputs


def attention(attrs, q, k, v, mask=None):
    if not q.numel():
        return (q.sum() + k.sum() + v.sum()) * 0 + torch.zeros(q.shape[:-1] + v.shape[-1:], dtype=q.dtype)
    if attrs["causal"]:
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is None:
        return torch.softmax(scores, -1) @ v
    # By choice: a NaN that is masked is none, and a query that may look nowhere gets zeros.
    weights = torch.softmax(torch.where(mask, scores, scores.new_tensor(-float("inf"))), -1)
    weights = torch.where(mask.any(-1, keepdim=True), weights, weights.new_tensor(0.0))
    return weights @ v


def cache_cases(draw):
    """Steps of one position each, with a cache, beside causal attention of the whole."""
    rules = hostile(draw.dtype)
    for i in range(40):
        b, steps, size = ((1, 3, 2), (2, 2, 1), (1, 2, 2), (0, 2, 1))[i % 4]
        inputs = [draw.numbers((b, steps, size)) for _ in range(3)]
        if i < 30:
            inputs[i % 3] = draw.with_hostile(inputs[i % 3], rules[i // 2 % len(rules)])
        yield {}, inputs


def step_by_step(attrs, q, k, v):
    return torch.cat([attention({"causal": False}, q[:, i:i + 1], k[:, :i + 1], v[:, :i + 1])
                      for i in range(q.shape[1])], 1)


GOLDENS = [
    conv("conv1d_transpose", 1, True, True), conv("conv2d_transpose", 2, True),
    conv("conv3d_transpose", 3, True),
    Golden("depthwise_conv2d", FLOATS, "sum", conv_cases(2, of_channels=True), depthwise, True),
    conv("Conv2D", 2), conv("conv1d", 1, single=True), conv("conv3d", 3),
    pooled("max_pool1d", True, 1), pooled("avg_pool1d", False, 1), pooled("AvgPool", False, 2),
    pooled("max_pool3d", True, 3), pooled("avg_pool3d", False, 3),
    unary("gelu", F.gelu, NEAR, FAR, rule="near"), unary("silu", F.silu, NEAR, FAR),
    unary("leaky_relu", F.leaky_relu, NEAR, FAR, dtypes=WIDE), unary("selu", F.selu, NEAR, FAR, dtypes=WIDE),
    Golden("local_response_norm", FLOATS, "sum", response_cases, response, True),
    Golden("group_norm", FLOATS, "sum", norm_cases("group"), group_norm, True),
    Golden("instance_norm", FLOATS, "sum", norm_cases("instance"), group_norm, True),
    Golden("rms_norm", FLOATS, "sum", norm_cases(None), rms_norm, True),
    Golden("Resize", FLOATS, "sum", resize_cases, resize, True),
    Golden("crop", FLOATS, "exact", crop_cases, crop, True),
    Golden("crop_and_resize", WIDE, "sum", crop_and_resize_cases, crop_and_resize, True),
    Golden("InTopK", FLOATS, "exact", in_top_k_cases, in_top_k, False),
    Golden("scaled_dot_product_attention", WIDE, "sum", attention_cases, attention, True),
    Golden("KeyValueCache", WIDE, "sum", cache_cases,
           step_by_step, True),
]
