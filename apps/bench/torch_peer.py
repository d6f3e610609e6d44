#!/usr/bin/env python3
"""Times one training step of a small network in PyTorch, for `troupe bench train --peer torch`.

usage: torch_peer.py MODEL THREADS SECONDS      MODEL: mlp, lenet
prints one line of JSON: {"torch": version, "model": ..., "threads": ..., "ms": median}

PyTorch is set up as well as it can be on a CPU: OpenBLAS built for OpenMP, freed memory kept by
malloc rather than given back to the kernel at each step, AVX-512 where the processor has it,
images with the channels last. All of that must be in the environment before torch is loaded, so
the script starts itself a second time.
"""
import json
import os
import sys
import time


def tuned_environment(threads):
    env = dict(os.environ)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # would hide the real processor
        env.pop(name, None)
    openmp = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
    if os.path.isdir(openmp):
        env["LD_LIBRARY_PATH"] = openmp
    env["MALLOC_MMAP_THRESHOLD_"] = str(4 << 30)
    env["MALLOC_TRIM_THRESHOLD_"] = str(8 << 30)
    with open("/proc/cpuinfo") as cpuinfo:
        if "avx512f" in cpuinfo.read():
            env["ATEN_CPU_CAPABILITY"] = "avx512"
    env["OMP_NUM_THREADS"] = env["OPENBLAS_NUM_THREADS"] = str(threads)
    env["TROUPE_TORCH_PEER"] = "tuned"
    return env


def mlp(nn, torch):
    net = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return net, torch.randn(100, 784), torch.randint(0, 10, (100,))


def lenet(nn, torch):
    last = torch.channels_last
    net = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 512), nn.ReLU(), nn.Linear(512, 10))
    images = torch.randn(64, 1, 28, 28).contiguous(memory_format=last)
    return net.to(memory_format=last), images, torch.randint(0, 10, (64,))


MODELS = {"mlp": mlp, "lenet": lenet}


def main():
    model, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if os.environ.get("TROUPE_TORCH_PEER") != "tuned":
        os.execve(sys.executable, [sys.executable] + sys.argv, tuned_environment(threads))
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    net, x, y = MODELS[model](nn, torch)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    for _ in range(20):
        step()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 9:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    times.sort()
    print(json.dumps({"torch": torch.__version__, "model": model, "threads": threads,
                      "steps": len(times), "ms": 1e3 * times[len(times) // 2]}))


if __name__ == "__main__":
    main()
