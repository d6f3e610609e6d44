"""The functions of function_cases.cpp in PyTorch, by their names.

Each makes its inputs and returns what is timed: the function with a result of its own. Pictures and
volumes have their channels last in memory, as there.
"""

MILLION = 1 << 20


def uniform(torch, *shape, low=-1.0, high=1.0):
    return torch.rand(*shape) * (high - low) + low


def of(function, *shapes, low=-1.0, high=1.0):
    """A function of (torch, *tensors) of uniform numbers."""

    def prepare(torch):
        inputs = [uniform(torch, *shape, low=low, high=high) for shape in shapes]
        return lambda: function(torch, *inputs)

    return prepare


def unary(name, low=-1.0, high=1.0):
    return of(lambda torch, x: getattr(torch, name)(x), (MILLION,), low=low, high=high)


def clip(torch):
    x, low, high = uniform(torch, MILLION), uniform(torch, MILLION) / 2 - 0.5, torch.rand(MILLION)
    return lambda: torch.clamp(x, low, high)


def bincount(torch):
    x = torch.randint(0, 1000, (MILLION,))
    return lambda: torch.bincount(x, minlength=1000)


def bits(function):
    def prepare(torch):
        x = torch.randint(0, 10**9, (MILLION,), dtype=torch.int32)
        by = torch.randint(0, 31, (MILLION,), dtype=torch.int32)
        return lambda: function(torch, x, by)

    return prepare


def search_sorted(torch):
    sequence, x = uniform(torch, 10000).sort()[0], uniform(torch, MILLION)
    return lambda: torch.searchsorted(sequence, x)


def unique(torch):
    x = torch.randint(0, 1000, (MILLION,))
    return lambda: torch.unique(x, sorted=False, return_inverse=True, return_counts=True)


def in_top_k(torch):
    x, target = uniform(torch, 1024, 1000), torch.randint(0, 1000, (1024, 1))
    return lambda: (x > x.gather(1, target)).sum(1) < 5


def where(torch):
    mask = uniform(torch, MILLION) > 0
    return lambda: mask.nonzero()


def boolean_mask(torch):
    x, mask = uniform(torch, 65536, 16), uniform(torch, 65536) > 0
    return lambda: x[mask]


def gather_nd(torch):
    x, at = uniform(torch, 1024, 1024), torch.randint(0, 1024, (100000, 2))
    return lambda: x[at[:, 0], at[:, 1]]


def scatter_nd(torch):
    x, at = uniform(torch, 100000), torch.randint(0, 1024, (100000, 2))
    return lambda: torch.zeros(1024, 1024).index_put_((at[:, 0], at[:, 1]), x, accumulate=True)


def sequence_mask(torch):
    lengths = torch.randint(0, 1024, (1024,))
    return lambda: torch.arange(1024) < lengths[:, None]


def segments(function, ordered=False):
    def prepare(torch):
        x, ids = uniform(torch, 65536, 64), torch.randint(0, 1000, (65536,))
        ids = ids.sort()[0] if ordered else ids
        return lambda: function(torch, x, ids)

    return prepare


def sums(torch, x, ids):
    return torch.zeros(1000, 64).index_add_(0, ids, x)


def reduced(name):
    return lambda torch, x, ids: torch.full((1000, 64), -3e38 if name == "amax" else 0.0).index_reduce_(
        0, ids, x, name, include_self=name == "amax")


def segment_reduced(name):
    def prepare(torch):
        x, lengths = uniform(torch, 65536, 64), torch.bincount(torch.randint(0, 1000, (65536,)),
                                                               minlength=1000)
        return lambda: torch.segment_reduce(x, name, lengths=lengths, axis=0)

    return prepare


def definite(torch, x):
    return x @ x.mT + x.shape[-1] * torch.eye(x.shape[-1])


def channels_last(torch, *shape):
    """Of (n, places..., c): (n, c, places...) with the channels last in memory."""
    x = uniform(torch, *shape)
    return x.movedim(-1, 1)


def windows(function, shape, filters=None):
    """Filters are as PyTorch has them."""

    def prepare(torch):
        x = channels_last(torch, *shape)
        if filters is None:
            return lambda: function(torch.nn.functional, x)
        w = uniform(torch, *filters)
        if len(filters) == 4:
            w = w.to(memory_format=torch.channels_last)
        return lambda: function(torch.nn.functional, x, w)

    return prepare


def ctc(slope):
    def prepare(torch):
        logits, labels = uniform(torch, 64, 16, 32), torch.randint(1, 32, (16, 16))
        lengths, frames = torch.full((16,), 16), torch.full((16,), 64)

        def loss():
            scores = torch.log_softmax(logits, 2)
            return torch.nn.functional.ctc_loss(scores, labels, frames, lengths, reduction="sum")

        if not slope:
            return loss
        logits.requires_grad_()
        return lambda: torch.autograd.grad(loss(), logits)

    return prepare


def optimizer(make):
    def prepare(torch):
        parameter = torch.nn.Parameter(torch.zeros(MILLION))
        rule, grad = make(torch.optim, [parameter]), uniform(torch, MILLION)

        def step():
            parameter.grad = grad
            rule.step()

        return step

    return prepare


SQUARE, PICTURES = (1024, 1024), (16, 32, 32, 64)
FUNCTIONS = {
    **{name: unary(name) for name in ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "atanh")},
    "acosh": unary("acosh", 1.0, 2.0),
    "lgamma": unary("lgamma", 0.1, 1.1),
    "digamma": unary("digamma", 0.1, 1.1),
    "atan2": of(lambda t, y, x: t.atan2(y, x), (MILLION,), (MILLION,)),
    "log_sum_exp": of(lambda t, x: t.logsumexp(x, 1), SQUARE),
    "cumsum_rows": of(lambda t, x: t.cumsum(x, 1), SQUARE),
    "cumsum_columns": of(lambda t, x: t.cumsum(x, 0), SQUARE),
    "cumprod_rows": of(lambda t, x: t.cumprod(x, 1), SQUARE),
    "clip_by_value": clip,
    "einsum": of(lambda t, x, y: t.einsum("bqd,bkd->bqk", x, y), (32, 64, 64), (32, 64, 64)),
    "bincount": bincount,
    "bitwise_and": bits(lambda t, x, by: x & by),
    "left_shift": bits(lambda t, x, by: x << by),
    "top_k": of(lambda t, x: t.topk(x, 10), SQUARE),
    "sort_rows": of(lambda t, x: t.sort(x, stable=True), SQUARE),
    "sort_million": of(lambda t, x: t.sort(x, stable=True), (MILLION,)),
    "argsort_rows": of(lambda t, x: t.argsort(x, stable=True), SQUARE),
    "search_sorted": search_sorted,
    "unique": unique,
    "in_top_k": in_top_k,
    "where": where,
    "boolean_mask": boolean_mask,
    "gather_nd": gather_nd,
    "scatter_nd": scatter_nd,
    "roll": of(lambda t, x: t.roll(x, (3, 5), (0, 1)), SQUARE),
    "diag": of(lambda t, x: t.diag_embed(x), (64, 256)),
    "tril": of(lambda t, x: t.tril(x), SQUARE),
    "mirror_pad": windows(lambda f, x: f.pad(x, (2, 2, 2, 2), "reflect"), (8, 64, 64, 16)),
    "sequence_mask": sequence_mask,
    "space_to_depth": windows(lambda f, x: f.pixel_unshuffle(x, 2), (8, 64, 64, 32)),
    "depth_to_space": windows(lambda f, x: f.pixel_shuffle(x, 2), (8, 32, 32, 128)),
    "segment_sum": segment_reduced("sum"),
    "segment_max": segment_reduced("max"),
    "unsorted_segment_sum": segments(sums),
    "unsorted_segment_mean": segments(reduced("mean")),
    "unsorted_segment_max": segments(reduced("amax")),
    "inverse": of(lambda t, x: t.linalg.inv(x), (256, 256)),
    "inverse_batch": of(lambda t, x: t.linalg.inv(x), (64, 32, 32)),
    "determinant": of(lambda t, x: t.linalg.det(x), (64, 32, 32)),
    "log_determinant": of(lambda t, x: t.linalg.slogdet(x), (256, 256)),
    "cholesky": of(lambda t, x: t.linalg.cholesky(definite(t, x)), (256, 256)),
    "cholesky_batch": of(lambda t, x: t.linalg.cholesky(definite(t, x)), (64, 32, 32)),
    "solve": of(lambda t, a, b: t.linalg.solve(a, b), (256, 256), (256, 16)),
    "triangular_solve": of(lambda t, a, b: t.linalg.solve_triangular(
        a + 256 * t.eye(256), b, upper=False), (256, 256), (256, 16)),
    "least_squares": of(lambda t, a, b: t.linalg.lstsq(a, b), (256, 64), (256, 16)),
    "qr": of(lambda t, x: t.linalg.qr(x), (256, 64)),
    "svd": of(lambda t, x: t.linalg.svd(x), (64, 64)),
    "self_adjoint_eig": of(lambda t, x: t.linalg.eigh(x), (64, 64)),
    "conv1d": windows(lambda f, x, w: f.conv1d(x, w, padding=2), (16, 256, 32), (64, 32, 5)),
    "conv3d": windows(lambda f, x, w: f.conv3d(x, w, padding=1), (4, 8, 16, 16, 8), (16, 8, 3, 3, 3)),
    "conv1d_transpose": windows(lambda f, x, w: f.conv_transpose1d(x, w, stride=2, padding=1),
                                (16, 128, 64), (64, 32, 4)),
    "conv2d_transpose": windows(lambda f, x, w: f.conv_transpose2d(x, w, stride=2, padding=1),
                                (16, 16, 16, 32), (32, 16, 4, 4)),
    "conv3d_transpose": windows(lambda f, x, w: f.conv_transpose3d(x, w, stride=2, padding=1),
                                (2, 4, 8, 8, 16), (16, 8, 4, 4, 4)),
    "depthwise_conv2d": windows(lambda f, x, w: f.conv2d(x, w, padding=1, groups=64), PICTURES,
                                (64, 1, 3, 3)),
    "grouped_conv2d": windows(lambda f, x, w: f.conv2d(x, w, padding=1, groups=4), PICTURES,
                              (64, 16, 3, 3)),
    "max_pool1d": windows(lambda f, x: f.max_pool1d(x, 2), (32, 1024, 64)),
    "avg_pool1d": windows(lambda f, x: f.avg_pool1d(x, 2), (32, 1024, 64)),
    "max_pool3d": windows(lambda f, x: f.max_pool3d(x, 2), (4, 16, 16, 16, 32)),
    "avg_pool3d": windows(lambda f, x: f.avg_pool3d(x, 2), (4, 16, 16, 16, 32)),
    "resize_nearest": windows(lambda f, x: f.interpolate(x, (128, 128), mode="nearest-exact"),
                              (8, 64, 64, 16)),
    "resize_bilinear": windows(lambda f, x: f.interpolate(x, (128, 128), mode="bilinear"),
                               (8, 64, 64, 16)),
    "gelu": of(lambda t, x: t.nn.functional.gelu(x), (MILLION,)),
    "silu": of(lambda t, x: t.nn.functional.silu(x), (MILLION,)),
    "leaky_relu": of(lambda t, x: t.nn.functional.leaky_relu(x), (MILLION,)),
    "selu": of(lambda t, x: t.selu(x), (MILLION,)),
    "local_response_norm": windows(lambda f, x: f.local_response_norm(x, 5, 5.0, 0.5), PICTURES),
    "group_norm": windows(lambda f, x, w: f.group_norm(x, 8, w, w), PICTURES, (64,)),
    "instance_norm": windows(lambda f, x, w: f.instance_norm(x, weight=w, bias=w), PICTURES, (64,)),
    "rms_norm": of(lambda t, x, w: t.nn.functional.rms_norm(x, (1024,), w, 1e-5), SQUARE, (1024,)),
    "attention": of(lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(
        q[None], k[None], v[None]), (32, 128, 64), (32, 128, 64), (32, 128, 64)),
    "sigmoid_cross_entropy": of(lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(
        x, y, reduction="none"), (MILLION,), (MILLION,), low=0.0),
    "mean_squared_error": of(lambda t, x, y: t.nn.functional.mse_loss(x, y), (MILLION,), (MILLION,)),
    "huber": of(lambda t, x, y: t.nn.functional.huber_loss(x, y, reduction="none"), (MILLION,),
                (MILLION,)),
    "cosine_distance": of(lambda t, a, b: 1 - t.nn.functional.cosine_similarity(a, b), SQUARE, SQUARE),
    "ctc_loss": ctc(False),
    "ctc_loss_grad": ctc(True),
    "adagrad": optimizer(lambda o, p: o.Adagrad(p)),
    "rmsprop": optimizer(lambda o, p: o.RMSprop(p)),
    "adadelta": optimizer(lambda o, p: o.Adadelta(p)),
}
