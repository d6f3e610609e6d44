"""Single operations of PyTorch, those of the rows that kernel_bench.cpp compares, by their names.

Each makes its inputs and returns what is timed: the operation with a result of its own.
"""

MILLION = 1 << 20


def uniform(torch, *shape):
    return torch.rand(*shape) * 2 - 1


def positive(torch, *shape):
    return torch.rand(*shape) + 0.1


def unary(name, make=uniform, dtype="float32"):
    def prepare(torch):
        x = make(torch, MILLION).to(getattr(torch, dtype))
        function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
        return lambda: function(x)

    return prepare


def cast_bf16(torch):
    x = uniform(torch, MILLION)
    return lambda: x.to(torch.bfloat16)


def add_bf16(torch):
    x, y = (uniform(torch, MILLION).bfloat16() for _ in range(2))
    return lambda: x + y


def power(torch):
    x, y = positive(torch, MILLION), uniform(torch, MILLION)
    return lambda: torch.pow(x, y)


def reduction(name, shape, axes):
    def prepare(torch):
        x = uniform(torch, *shape)
        function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
        return lambda: function(x, dim=axes)

    return prepare


def normal(torch):
    return lambda: torch.randn(MILLION)


def reverse(torch):
    x = uniform(torch, 1024, 1024)
    return lambda: torch.flip(x, [1])


def transpose(torch):
    x = uniform(torch, 1024, 1024)
    return lambda: x.t().contiguous()


def rows(name):
    def prepare(torch):
        x = uniform(torch, 1000, 1000)
        function = getattr(torch.nn.functional, name)
        return lambda: function(x, dim=1)

    return prepare


def layer_norm(torch):
    x, scale, offset = uniform(torch, 1024, 1024), torch.ones(1024), torch.zeros(1024)
    return lambda: torch.nn.functional.layer_norm(x, (1024,), scale, offset)


def layer_norm_grad(torch):
    x, dy, scale = uniform(torch, 1024, 1024), uniform(torch, 1024, 1024), torch.ones(1024)
    offset, aten = torch.zeros(1024), torch.ops.aten
    _, mean, inverse = aten.native_layer_norm(x, (1024,), scale, offset, 1e-5)
    return lambda: aten.native_layer_norm_backward(
        dy, x, (1024,), mean, inverse, scale, offset, [True, True, True])


def group_norm_grad(torch):
    x, dy = (uniform(torch, 16, 32, 32, 64).permute(0, 3, 1, 2) for _ in range(2))
    scale, aten = torch.ones(64), torch.ops.aten
    _, mean, inverse = aten.native_group_norm(x, scale, torch.zeros(64), 16, 64, 1024, 8, 1e-5)
    return lambda: aten.native_group_norm_backward(
        dy, x, mean, inverse, scale, 16, 64, 1024, 8, [True, True, True])


def matmul(dtype, *shape):
    def prepare(torch):
        x, y = (uniform(torch, *shape).to(getattr(torch, dtype)) for _ in range(2))
        return lambda: x @ y

    return prepare


KERNELS = {
    "cast_bf16": cast_bf16,
    "add_bf16": add_bf16,
    "exp_f64": unary("exp", dtype="float64"),
    "pow": power,
    "max_of_rows": reduction("amax", (1024, 1024), (1,)),
    "max_of_columns": reduction("amax", (1024, 1024), (0,)),
    "sum_of_rows": reduction("sum", (1024, 1024), (1,)),
    "sum_of_columns": reduction("sum", (1024, 1024), (0,)),
    "mean_of_images": reduction("mean", (32, 32, 32, 32), (1, 2)),
    "normal": normal,
    "reverse": reverse,
    "transpose": transpose,
    "softmax": rows("softmax"),
    "log_softmax": rows("log_softmax"),
    "layer_norm": layer_norm,
    "layer_norm_grad": layer_norm_grad,
    "group_norm_grad": group_norm_grad,
    "matmul_f16": matmul("float16", 512, 512),
    "matmul_bf16": matmul("bfloat16", 512, 512),
    "batch_matmul_f16": matmul("float16", 8, 256, 256),
    "batch_matmul_bf16": matmul("bfloat16", 8, 256, 256),
}
KERNELS.update({name: unary(name) for name in ("erf", "log1p", "sin", "cos", "exp", "softplus")})
