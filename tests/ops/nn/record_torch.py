#!/usr/bin/env python3
"""Records what PyTorch computes, for torch_reference_test.cpp: nobody needs PyTorch to run tests.

usage: record_torch.py > torch_reference.hpp

A recurrent layer in f64 learns to follow a target, by AdamW, for three steps. Matrices are written
as ours are: [in, gates hidden], the transpose of PyTorch's. PyTorch's LSTM has two biases that are
added; the second one is held at zero, as ours has one.
"""
import torch

TIME, BATCH, IN, HIDDEN, STEPS = 5, 3, 4, 3, 3


def numbers(tensor):
    return ", ".join(repr(float(x)) for x in tensor.detach().reshape(-1))


def ours(name, tensor):
    return tensor.detach().t().contiguous() if name.startswith("weight") else tensor.detach()


def record(name, layer, trained):
    x = torch.randn(TIME, BATCH, IN)
    target = torch.randn(TIME, BATCH, HIDDEN)
    parameters = dict(layer.named_parameters())
    for key, parameter in parameters.items():
        if key not in trained:
            torch.nn.init.zeros_(parameter)
            parameter.requires_grad_(False)
    before = [ours(key, parameters[key]).clone() for key in trained]
    optimizer = torch.optim.AdamW([parameters[key] for key in trained], lr=0.05,
                                  betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)
    losses, output, gradients = [], None, None
    for _ in range(STEPS):
        optimizer.zero_grad()
        y = layer(x)[0]
        loss = ((y - target) ** 2).mean()
        loss.backward()
        if output is None:
            output = y
            gradients = [ours(key, parameters[key].grad).clone() for key in trained]
        losses.append(loss)
        optimizer.step()
    after = [ours(key, parameters[key]) for key in trained]

    def lists(tensors):
        return ",\n     ".join("{" + numbers(t) + "}" for t in tensors)

    print(f"""inline const TorchReference {name}{{
    {{{numbers(x)}}},
    {{{numbers(target)}}},
    {{{lists(before)}}},
    {{{numbers(output)}}},
    {{{lists(gradients)}}},
    {{{numbers(torch.stack(losses))}}},
    {{{lists(after)}}}}};
""")


def main():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(7)
    print(f"""// Recorded by record_torch.py with PyTorch {torch.__version__.split("+")[0]}.
#pragma once

#include <vector>

namespace troupe::test {{

// clang-format off
inline constexpr int kTorchTime = {TIME}, kTorchBatch = {BATCH}, kTorchIn = {IN}, kTorchHidden = {HIDDEN};

// A layer that learns by AdamW{{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6,
// .weight_decay = 0.1}} to make the squared distance of its output from a target small.
struct TorchReference {{
  std::vector<double> x, target;               // [time, batch, in or hidden]
  std::vector<std::vector<double>> before;     // the parameters: W, R, and what biases are trained
  std::vector<double> output;                  // [time, batch, hidden], of the first step
  std::vector<std::vector<double>> gradients;  // of the first step
  std::vector<double> losses;                  // before each step
  std::vector<std::vector<double>> after;      // the parameters after all steps
}};
""")
    record("kTorchLstm", torch.nn.LSTM(IN, HIDDEN), ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0"])
    record("kTorchGru", torch.nn.GRU(IN, HIDDEN),
           ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"])
    print("// clang-format on\n\n}  // namespace troupe::test")


if __name__ == "__main__":
    main()
