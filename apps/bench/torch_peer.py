#!/usr/bin/env python3
"""Times one training step of a small network in PyTorch, for `troupe bench train --peer torch`, or
one of its operations, for `troupe bench kernels --peer torch`.

usage: torch_peer.py MODEL THREADS [--plain|--gpu]      MODEL: mlp, lenet, resnet20, char_lstm, embedding_ROWS
       torch_peer.py kernels THREADS [--plain]
prints a line of JSON when it is ready: {"torch": version, "mkl": ...}, and one for each line of its
input, which is the seconds of a round: {"ms": median, "p99": ...}. A line for kernels begins with
the name of one, as in torch_kernels.py or torch_functions.py.

"mkl" is "" where nothing is to be said. PyTorch from PyPI computes with MKL, which takes its slow
path on processors that are not Intel's. There it is told otherwise by a preloaded library of one
function, if there is a C compiler to make it with: "fast path preloaded", else (and with --plain)
"slow path".

With --gpu a training step is one on the GPU, as `troupe bench gpu` times it: the batch comes from
pinned host memory, and the loss is fetched; or MODEL is matmul.bf16.N or matmul.f32.N. Products of
f32 are not rounded to TF32.

PyTorch is set up as well as it can be on a CPU: OpenBLAS built for OpenMP, freed memory kept by
malloc rather than given back to the kernel at each step, AVX-512 where the processor has it,
images with the channels last. All of that must be in the environment before torch is loaded, so
the script starts itself a second time.
"""
import os
import subprocess
import sys
import tempfile

import peer
import torch_functions
import torch_kernels

# What MKL asks to know whose processor it runs on. A library that is loaded before it answers.
FAST_PATH = b"int mkl_serv_intel_cpu_true(void) { return 1; }\n"


def intel(cpuinfo):
    return "GenuineIntel" in cpuinfo


def make_fast_path(folder, compiler="cc"):
    """The library to preload, made in `folder`; None without a C compiler that works."""
    path = os.path.join(folder, "libfast_mkl.so")
    try:
        subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", path],
                       input=FAST_PATH, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return path


def run_again(threads, plain):
    """Runs this script in its tuned environment, with the fast path where there is one to take."""
    env = tuned_environment(threads)
    with open("/proc/cpuinfo") as cpuinfo:
        other = not intel(cpuinfo.read())
    env["TROUPE_TORCH_MKL"] = "slow path" if other else ""
    with tempfile.TemporaryDirectory() as folder:
        path = make_fast_path(folder) if other and not plain else None
        if path:
            env["LD_PRELOAD"] = ":".join(filter(None, [path, env.get("LD_PRELOAD")]))
            env["TROUPE_TORCH_MKL"] = "fast path preloaded"
        return peer.run_again(env)


def tuned_environment(threads):
    env = peer.environment(threads)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # would hide the real processor
        env.pop(name, None)
    openmp = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
    if os.path.isdir(openmp):
        env["LD_LIBRARY_PATH"] = openmp
    with open("/proc/cpuinfo") as cpuinfo:
        if "avx512f" in cpuinfo.read():
            env["ATEN_CPU_CAPABILITY"] = "avx512"
    env["OPENBLAS_NUM_THREADS"] = str(threads)
    env["TROUPE_TORCH_PEER"] = "tuned"
    return env


# Each model makes a network, a batch, the labels, and the rate of SGD.
def mlp(nn, torch):
    net = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return net, torch.randn(100, 784), torch.randint(0, 10, (100,)), 1e-2


def lenet(nn, torch):
    last = torch.channels_last
    net = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 512), nn.ReLU(), nn.Linear(512, 10))
    images = torch.randn(64, 1, 28, 28).contiguous(memory_format=last)
    return net.to(memory_format=last), images, torch.randint(0, 10, (64,)), 1e-2


def resnet20(nn, torch):
    last = torch.channels_last

    class Block(nn.Module):
        def __init__(self, channels_in, channels, stride):
            super().__init__()
            self.c1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
            self.n1 = nn.BatchNorm2d(channels)
            self.c2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.n2 = nn.BatchNorm2d(channels)
            self.shortcut = nn.Identity()
            if stride != 1 or channels_in != channels:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(channels_in, channels, 1, stride, bias=False),
                    nn.BatchNorm2d(channels))

        def forward(self, x):
            y = self.n2(self.c2(nn.functional.relu(self.n1(self.c1(x)))))
            return nn.functional.relu(y + self.shortcut(x))

    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    before = 16
    for channels in (16, 32, 64):
        for block in range(3):
            layers.append(Block(before, channels, 2 if block == 0 and channels > 16 else 1))
            before = channels
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    images = torch.randn(64, 3, 32, 32).contiguous(memory_format=last)
    net = nn.Sequential(*layers).to(memory_format=last)
    return net, images, torch.randint(0, 10, (64,)), 1e-1


def char_lstm(nn, torch):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(128, 256)
            self.layers = nn.LSTM(256, 256, 2)
            self.out = nn.Linear(256, 128)

        def forward(self, x):
            return self.out(self.layers(self.table(x))[0]).reshape(-1, 128)

    labels = torch.randint(0, 128, (50 * 32,))
    return Net(), torch.randint(0, 128, (50, 32)), labels, 1e-1


MODELS = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20, "char_lstm": char_lstm}


def training_step(model, torch, gpu=False):
    from torch import nn
    from torch.nn import functional

    net, x, y, rate = MODELS[model](nn, torch)
    if gpu:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        net, x, y = net.cuda(), x.pin_memory(), y.pin_memory()
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    def step_on_gpu():
        optimizer.zero_grad()
        batch, labels = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        loss = functional.cross_entropy(net(batch), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step_on_gpu if gpu else step


def embedding_step(rows, torch):
    """Of gradient descent over two embeddings with sparse gradients, as in embedding_bench.cpp: each
    step takes the next of 64 batches of ids."""
    tables = [torch.nn.Embedding(rows, 128, sparse=True) for _ in range(2)]
    for table in tables:
        torch.nn.init.uniform_(table.weight, -0.1, 0.1)
    optimizer = torch.optim.SGD([table.weight for table in tables], lr=0.01)
    batches = [torch.randint(0, rows, (2, 1024)) for _ in range(64)]
    steps = 0

    def step():
        nonlocal steps
        ids = batches[steps % len(batches)]
        steps += 1
        optimizer.zero_grad()
        (tables[0](ids[0]) * tables[1](ids[1])).sum(1).square().mean().backward()
        optimizer.step()

    return step


def products_on_gpu(dtype, n, calls, torch):
    """Matrices of n rows and columns, multiplied so many times, as `troupe bench gpu` does."""
    torch.backends.cuda.matmul.allow_tf32 = False
    kind = {"bf16": torch.bfloat16, "f32": torch.float32}[dtype]
    a, b = (torch.empty(n, n, device="cuda").uniform_(-1, 1).to(kind) for _ in range(2))

    def step():
        for _ in range(calls):
            torch.matmul(a, b)
        torch.cuda.synchronize()

    return step


def main():
    model, threads = sys.argv[1], int(sys.argv[2])
    gpu = "--gpu" in sys.argv
    if os.environ.get("TROUPE_TORCH_PEER") != "tuned" and not gpu:
        sys.exit(run_again(threads, "--plain" in sys.argv))
    import torch
    import torch.nn

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    mkl = os.environ.get("TROUPE_TORCH_MKL", "") if torch.backends.mkl.is_available() else ""
    about = {"torch": torch.__version__, "mkl": mkl}
    if gpu:
        about["gpu"] = torch.cuda.get_device_name()
        if model.startswith("matmul."):
            about["calls"] = 20
            _, dtype, n = model.split(".")
            peer.time_rounds(products_on_gpu(dtype, int(n), about["calls"], torch), 1, about)
        else:
            peer.time_rounds(training_step(model, torch, gpu), 20, about)
    elif model == "kernels":
        named = {**torch_kernels.KERNELS, **torch_functions.FUNCTIONS}
        peer.time_named_rounds(lambda name: named[name](torch), about)
    elif model.startswith("embedding_"):
        peer.time_rounds(embedding_step(int(model.split("_")[1]), torch), 128, about)
    else:
        peer.time_rounds(training_step(model, torch), 20, about)


if __name__ == "__main__":
    main()
