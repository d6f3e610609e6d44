#!/usr/bin/env python3
"""Trains the networks of docs/programs.md in PyTorch, at the sizes of the programs in apps/examples.

    torch_programs.py [--threads N] [--steps N] [PROGRAM...]

prints for each program the median of the milliseconds that a step takes. A step has its data in
memory before; where the program draws random numbers, so does this.
"""
import argparse
import os
import statistics
import sys
import time

import torch_peer

parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("programs", nargs="*")
arguments = parser.parse_args()
if os.environ.get("TROUPE_TORCH_PEER") != "tuned":  # before torch is loaded
    sys.exit(torch_peer.run_again(arguments.threads, plain=False))

import torch
import torch.nn as nn
import torch.nn.functional as F

PROGRAMS = {}


def program(f):
    """A function that makes the network, and returns a function that does a step."""
    PROGRAMS[f.__name__] = f
    return f


def sparse(rows, size, deviation):
    table = nn.Embedding(rows, size, sparse=True)
    nn.init.normal_(table.weight, std=deviation)
    return table


def descend(optimizer, loss, net=None, most=None):
    """Makes a step, with gradients of `net` cut to the norm `most`; returns the loss."""
    optimizer.zero_grad()
    loss.backward()
    if net is not None:
        nn.utils.clip_grad_norm_(net.parameters(), most)
    optimizer.step()
    return loss.item()


@program
def word2vec():
    words, size, batch, drawn = 5000, 64, 256, 64
    vectors, weights, biases = sparse(words, size, 0.1), sparse(words, size, 0.1), sparse(words, 1, 0)
    optimizer = torch.optim.Adagrad(
        [p for table in (vectors, weights, biases) for p in table.parameters()], lr=0.2)
    ids = torch.arange(words, dtype=torch.float64)
    law = torch.log((ids + 2) / (ids + 1)) / torch.log(torch.tensor(words + 1.0))
    expected = (-torch.expm1(1.2 * drawn * torch.log1p(-law))).float().log()
    data = [(torch.multinomial(law, batch, True), torch.multinomial(law, batch, True)) for _ in range(20)]

    def step(i):
        x, beside = data[i % len(data)]
        noise = torch.multinomial(law, drawn)
        rows = vectors(x)
        true = (rows * weights(beside)).sum(1) + biases(beside).squeeze(1) - expected[beside]
        wrong = rows @ weights(noise).T + biases(noise).squeeze(1) - expected[noise]
        loss = (F.softplus(-true) + F.softplus(wrong).sum(1)).mean()
        return descend(optimizer, loss)

    return step


@program
def vae():
    pixels, units, code, batch = 784, 256, 10, 128
    seen, mean, log_variance = nn.Linear(pixels, units), nn.Linear(units, code), nn.Linear(units, code)
    drawn, picture = nn.Linear(code, units), nn.Linear(units, pixels)
    net = nn.ModuleList([seen, mean, log_variance, drawn, picture])
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    data = torch.rand(20, batch, pixels)

    def step(i):
        x = data[i % len(data)]
        hidden = F.relu(seen(x))
        mu, log_var = mean(hidden), log_variance(hidden)
        z = mu + torch.exp(0.5 * log_var) * torch.randn_like(mu)
        coded = F.binary_cross_entropy_with_logits(picture(F.relu(drawn(z))), x, reduction="sum")
        loss = (coded + 0.5 * (mu**2 + log_var.exp() - log_var - 1).sum()) / batch
        return descend(optimizer, loss)

    return step


@program
def ptb_lstm():
    words, size, layers, streams, steps = 404, 128, 2, 20, 20
    meaning, lstm, out = nn.Embedding(words, size), nn.LSTM(size, size, layers), nn.Linear(size, words)
    net = nn.ModuleList([meaning, lstm, out])
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = torch.randint(words, (20, steps + 1, streams))
    state = (torch.zeros(layers, streams, size), torch.zeros(layers, streams, size))

    def step(i):
        nonlocal state
        ids = data[i % len(data)]
        h, left = lstm(meaning(ids[:-1]), state)
        state = tuple(part.detach() for part in left)
        loss = F.cross_entropy(out(h).reshape(-1, words), ids[1:].reshape(-1))
        return descend(optimizer, loss, net, 5)

    return step


@program
def wide_and_deep():
    rows, size, units, batch, most = 1_000_000, 16, 64, 256, 5
    pairs, users = sparse(rows, 1, 0.01), sparse(rows, size, 0.1)
    things = nn.Embedding(rows, size, sparse=True)
    hidden, out = nn.Linear(3 * size + 1, units), nn.Linear(units, 1)
    net = nn.ModuleList([pairs, users, things, hidden, out])
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.1)

    def numbers(*shape):
        return torch.exp(torch.rand(*shape) * torch.log(torch.tensor(float(rows)))).long() - 1

    data = [(numbers(batch), numbers(batch), numbers(batch, most), torch.randint(most + 1, (batch,)),
             torch.rand(batch, 1), torch.randint(2, (batch,)).float()) for _ in range(20)]

    def step(i):
        user, thing, seen, count, age, liked = data[i % len(data)]
        within = torch.arange(most) < count[:, None]
        starts = torch.cumsum(count, 0) - count
        before = F.embedding_bag(seen[within], things.weight, starts, mode="sum", sparse=True)
        before = before / count.clamp(min=1).float().sqrt()[:, None]
        everything = torch.cat([users(user), things(thing), before, age], 1)
        logits = pairs((user * 1_000_003 + thing) % rows) + out(F.relu(hidden(everything)))
        loss = F.binary_cross_entropy_with_logits(logits.squeeze(1), liked)
        return descend(optimizer, loss)

    return step


@program
def seq2seq():
    symbols, most, size, hidden, batch = 20, 12, 32, 64, 64
    source, target = nn.Embedding(symbols, size), nn.Embedding(symbols, size)
    encoder = nn.LSTM(size, hidden, bidirectional=True)
    decoder = nn.LSTM(size, 2 * hidden)
    mixed, out = nn.Linear(4 * hidden, 2 * hidden), nn.Linear(2 * hidden, symbols)
    net = nn.ModuleList([source, target, encoder, decoder, mixed, out])
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

    def batch_of(low, high):
        lengths = torch.randint(low, high + 1, (batch,))
        longest = int(lengths.max())
        ids = torch.randint(2, symbols, (batch, longest))
        ids[torch.arange(longest) >= lengths[:, None]] = 0
        given, answer = torch.zeros(2, batch, longest + 1, dtype=torch.int64)
        for row, n in enumerate(lengths.tolist()):
            given[row, 0] = answer[row, n] = 1
            given[row, 1 : n + 1] = answer[row, :n] = ids[row, :n].flip(0)
        return ids, lengths, given, answer

    data = [batch_of(*((3, 5), (6, 9), (10, most))[i % 3]) for i in range(21)]

    def step(i):
        ids, lengths, given, answer = data[i % len(data)]
        packed = nn.utils.rnn.pack_padded_sequence(source(ids.T), lengths, enforce_sorted=False)
        packed, (h, c) = encoder(packed)
        encoded, _ = nn.utils.rnn.pad_packed_sequence(packed)
        encoded = encoded.transpose(0, 1)
        first = tuple(torch.cat([part[0], part[1]], 1).unsqueeze(0) for part in (h, c))
        states = decoder(target(given.T), first)[0].transpose(0, 1)
        found = F.scaled_dot_product_attention(states, encoded, encoded, (ids > 0).unsqueeze(1))
        logits = out(torch.tanh(mixed(torch.cat([states, found], 2))))
        each = F.cross_entropy(logits.reshape(-1, symbols), answer.reshape(-1), reduction="none")
        counts = (answer.reshape(-1) > 0).float()
        loss = (each * counts).sum() / counts.sum()
        return descend(optimizer, loss, net, 5)

    return step


@program
def gaussian_process():
    samples, inputs = 400, 4
    torch.set_default_dtype(torch.float64)
    x = 4 * torch.rand(samples, inputs) - 2
    y = torch.sin(2 * x[:, :1]) * torch.cos(x[:, 1:2]) + 0.1 * torch.randn(samples, 1)
    torch.set_default_dtype(torch.float32)
    length = torch.zeros(inputs, dtype=torch.float64, requires_grad=True)
    amplitude, noise = torch.zeros(2, dtype=torch.float64).unbind()
    amplitude.requires_grad_(), noise.requires_grad_()
    optimizer = torch.optim.Adam([length, amplitude, noise], lr=0.1)
    one = torch.eye(samples, dtype=torch.float64)

    def step(i):
        a = x * torch.exp(-length)
        squares = a.square().sum(1, keepdim=True)
        distance = squares + squares.T - 2 * a @ a.T
        covariance = torch.exp(2 * amplitude - 0.5 * distance) + torch.exp(2 * noise) * one
        factor = torch.linalg.cholesky(covariance)
        white = torch.linalg.solve_triangular(factor, y, upper=False)
        loss = 0.5 * white.square().sum() + factor.diagonal().log().sum()
        return descend(optimizer, loss)

    return step


@program
def dcgan():
    noise, batch = 32, 64

    class Pictures(nn.Module):
        def forward(self, x):
            return x.unflatten(1, (32, 7, 7))

    generator = nn.Sequential(
        nn.Linear(noise, 7 * 7 * 32, bias=False), Pictures(), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh())
    discriminator = nn.Sequential(
        nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1, bias=False),
        nn.BatchNorm2d(32), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(7 * 7 * 32, 1))
    optimizers = [torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.5, 0.999))
                  for net in (discriminator, generator)]
    data = torch.rand(20, batch, 1, 28, 28)

    def loss(logits, label):
        return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))

    def step(i):
        drawn = generator(torch.randn(batch, noise)).detach()
        one = loss(discriminator(2 * data[i % len(data)] - 1), 1) + loss(discriminator(drawn), 0)
        first = descend(optimizers[0], one)
        other = loss(discriminator(generator(torch.randn(batch, noise))), 1)
        return first + descend(optimizers[1], other)

    return step


@program
def dqn():
    batch = 64
    values, target = (nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                                    nn.Linear(64, 2)) for _ in range(2))
    optimizer = torch.optim.Adam(values.parameters(), lr=2.5e-4)
    data = [(torch.randn(batch, 4).numpy(), torch.randint(2, (batch,)).numpy(),
             torch.randn(batch, 4).numpy(), torch.ones(batch).numpy()) for _ in range(20)]

    def step(i):
        states, moves, after, goes_on = (torch.from_numpy(part) for part in data[i % len(data)])
        with torch.no_grad():
            reached = 1 + 0.99 * goes_on * target(after).max(1).values
        loss = F.smooth_l1_loss(values(states).gather(1, moves[:, None])[:, 0], reached)
        return descend(optimizer, loss)

    return step


@program
def gpt():
    letters, context, width, heads, batch = 34, 64, 64, 4, 16

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.inside, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            parts = (part.unflatten(-1, (heads, -1)).transpose(1, 2)
                     for part in self.inside(self.before(x)).chunk(3, -1))
            seen = F.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).flatten(2))
            return x + self.narrow(F.gelu(self.wide(self.between(x))))

    tokens, places = nn.Embedding(letters, width), nn.Embedding(context, width)
    rest = nn.Sequential(Block(), Block(), nn.LayerNorm(width), nn.Linear(width, letters))
    net = nn.ModuleList([tokens, places, rest])
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    data = torch.randint(letters, (20, batch, context + 1))

    def step(i):
        ids = data[i % len(data)]
        logits = rest(tokens(ids[:, :-1]) + places(torch.arange(context)))
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        return descend(optimizer, loss, net, 1)

    return step


@program
def export():
    batch = 64
    net = nn.Sequential(
        nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(1, 8, 5, 2), nn.ReLU(),
        nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(8, 16, 5, 2), nn.ReLU(),
        nn.Flatten(), nn.Linear(7 * 7 * 16, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    data = [(torch.rand(batch, 1, 28, 28), torch.randint(10, (batch,))) for _ in range(20)]

    def step(i):
        pictures, labels = data[i % len(data)]
        loss = F.cross_entropy(net(pictures), labels)
        return descend(optimizer, loss)

    return step


torch.set_num_threads(arguments.threads)
for name in arguments.programs or PROGRAMS:
    torch.manual_seed(1)
    step, times = PROGRAMS[name](), []
    for i in range(arguments.steps):
        began = time.perf_counter()
        step(i)
        times.append(1000 * (time.perf_counter() - began))
    print(f"{name}\t{statistics.median(times[len(times) // 10:]):.3f}", flush=True)
