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


def linear(parameter, name, x_size, y_size):
    w, b = parameter(name + "/W", x_size, y_size), parameter(name + "/b", y_size)
    return lambda x: x @ w + b


class Lstm:
    """Gates in the order i, f, g, o."""

    def __init__(self, parameter, name, size, hidden):
        self.w = parameter(name + "/cell/W", size, 4 * hidden)
        self.r = parameter(name + "/cell/R", hidden, 4 * hidden)
        self.b = parameter(name + "/cell/b", 4 * hidden)

    def __call__(self, x, state):
        """x [time, batch, size]: all h, and the last state."""
        h, c = state
        all_h = []
        for step in x:
            i, f, g, o = (step @ self.w + h @ self.r + self.b).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            all_h.append(h)
        return torch.stack(all_h), (h, c)


@program
def word2vec():
    parameter = Parameters()
    vectors = parameter("net/vectors/W", 10, 4)
    w, b = parameter("net/W", 10, 4), parameter("net/b", 10)
    words, beside = torch.tensor([1, 7, 1]), torch.tensor([2, 9, 0])
    drawn = torch.tensor([0, 3, 5, 8])
    x = F.embedding(words, vectors)
    true = (x * w[beside]).sum(1) + b[beside] - torch.tensor([0.5, 0.125, 0.75]).log()
    noise = x @ w[drawn].T + b[drawn] - torch.tensor([0.75, 0.5, 0.25, 0.25]).log()
    loss = (F.softplus(-true) + F.softplus(noise).sum(1)).mean()
    return rows(parameter, loss)


@program
def vae():
    def numbers(rows, columns, low):
        i = torch.arange(rows * columns, dtype=torch.float64)
        return (low + 0.5 + 0.5 * torch.sin(3 * i * i + i)).reshape(rows, columns)

    parameter = Parameters()
    seen, mean = linear(parameter, "vae/seen", 12, 8), linear(parameter, "vae/mean", 8, 3)
    log_variance = linear(parameter, "vae/log_variance", 8, 3)
    drawn, picture = linear(parameter, "vae/drawn", 3, 8), linear(parameter, "vae/picture", 8, 12)
    x, noise = numbers(5, 12, 0), numbers(5, 3, -0.5)
    hidden = F.relu(seen(x))
    mu, log_var = mean(hidden), log_variance(hidden)
    logits = picture(F.relu(drawn(mu + torch.exp(log_var / 2) * noise)))
    coded = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
    apart = 0.5 * (mu**2 + log_var.exp() - log_var - 1).sum(1)
    return rows(parameter, (coded + apart).mean())


@program
def ptb_lstm():
    parameter = Parameters()
    meaning = parameter("model/meaning/W", 7, 4)
    layers = [Lstm(parameter, f"model/lstm/{i}", 4, 4) for i in range(2)]
    out = linear(parameter, "model/out", 4, 7)
    x, y = torch.tensor([[0, 4], [6, 2], [2, 5]]), torch.tensor([[6, 2], [2, 5], [1, 3]])
    states = [(torch.zeros(2, 4), torch.zeros(2, 4)) for _ in layers]
    for _ in range(2):
        states = [(h.detach(), c.detach()) for h, c in states]
        h = F.embedding(x, meaning)
        for i, layer in enumerate(layers):
            h, states[i] = layer(h, states[i])
    return rows(parameter, F.cross_entropy(out(h).reshape(-1, 7), y.reshape(-1)))


@program
def wide_and_deep():
    parameter = Parameters()
    pairs, users = parameter("net/pairs/W", 11, 1), parameter("net/users/W", 11, 3)
    things = parameter("net/things/W", 11, 3)
    hidden, out = linear(parameter, "net/hidden", 10, 4), linear(parameter, "net/out", 4, 1)
    user, thing = torch.tensor([0, 10, 7, 0]), torch.tensor([3, 1, 1, 10])
    seen = [[4, 5, 4], [], [9, 3], [1]]
    age = torch.tensor([[0.25], [-0.5], [1], [0.125]])
    before = torch.stack([things[torch.tensor(ids, dtype=torch.int64)].sum(0) / max(len(ids), 1) ** 0.5
                          for ids in seen])
    everything = torch.cat([users[user], things[thing], before, age], 1)
    logits = pairs[(user * 1_000_003 + thing) % 11] + out(F.relu(hidden(everything)))
    return rows(parameter, F.binary_cross_entropy_with_logits(
        logits.squeeze(1), torch.tensor([1.0, 0, 0, 1])))


@program
def seq2seq():
    parameter = Parameters()
    source = parameter("net/source/W", 6, 3)
    there = Lstm(parameter, "net/encoder/forward", 3, 2)
    back = Lstm(parameter, "net/encoder/backward", 3, 2)
    target = parameter("net/target/W", 6, 3)
    decoder = Lstm(parameter, "net/decoder", 3, 4)
    mixed, out = linear(parameter, "net/mixed", 8, 4), linear(parameter, "net/out", 4, 6)
    zero = (torch.zeros(1, 2), torch.zeros(1, 2))
    losses = []
    for ids, given, answer in (([2, 5, 4, 3], [1, 3, 4, 5, 2], [3, 4, 5, 2, 1]),
                               ([5, 2], [1, 2, 5], [2, 5, 1])):
        x = F.embedding(torch.tensor(ids), source).unsqueeze(1)
        h1, (f_h, f_c) = there(x, zero)
        h2, (b_h, b_c) = back(x.flip(0), zero)
        encoded = torch.cat([h1, h2.flip(0)], 2).squeeze(1)  # [time, 4]
        y = F.embedding(torch.tensor(given), target).unsqueeze(1)
        h, _ = decoder(y, (torch.cat([f_h, b_h], 1), torch.cat([f_c, b_c], 1)))
        h = h.squeeze(1)
        weights = F.softmax(h @ encoded.T / 4**0.5, dim=1)
        logits = out(torch.tanh(mixed(torch.cat([h, weights @ encoded], 1))))
        losses.append(F.cross_entropy(logits, torch.tensor(answer), reduction="none"))
    return rows(parameter, torch.cat(losses).mean())


@program
def gaussian_process():
    n, inputs = 12, 4
    p = Parameters()
    length, amplitude, noise = (p("process/log_length", inputs), p("process/log_amplitude"),
                                p("process/log_noise"))
    x = torch.sin(0.7 * torch.arange(n * inputs)).reshape(n, inputs)
    y = torch.cos(1.3 * torch.arange(n))
    distances = torch.cdist(x * torch.exp(-length), x * torch.exp(-length),
                            compute_mode="donot_use_mm_for_euclid_dist").square()
    covariance = torch.exp(2 * amplitude - 0.5 * distances) + torch.exp(2 * noise) * torch.eye(n)
    loss = -torch.distributions.MultivariateNormal(torch.zeros(n), covariance).log_prob(y)
    return rows(p, loss)


@program
def dcgan():
    p = Parameters()

    def norm(name, channels):
        scale, offset = p(f"{name}/scale", channels), p(f"{name}/offset", channels)
        return lambda x: F.batch_norm(x, None, None, scale, offset, training=True, eps=1e-3)

    # Pictures are [n,channels,height,width] here, and filters stand last in the program.
    def filters(name, kernel, a, b):
        return p(f"{name}/W", kernel, kernel, a, b).permute(3, 2, 0, 1)

    seed = p("generator/seed/W", 32, 7 * 7 * 32)
    norm1 = norm("generator/norm1", 32)
    middle = filters("generator/middle", 4, 16, 32)
    norm2 = norm("generator/norm2", 16)
    out, out_bias = filters("generator/out", 4, 1, 16), p("generator/out/b", 1)
    first, first_bias = filters("discriminator/first", 4, 1, 16), p("discriminator/first/b", 16)
    second = filters("discriminator/second", 4, 16, 32)
    norm3 = norm("discriminator/norm", 32)
    judge, judge_bias = p("discriminator/out/W", 7 * 7 * 32, 1), p("discriminator/out/b", 1)

    def generator(z):
        h = F.relu(norm1((z @ seed).reshape(-1, 7, 7, 32).permute(0, 3, 1, 2)))
        h = F.relu(norm2(F.conv_transpose2d(h, middle, stride=2, padding=1)))
        return torch.tanh(F.conv_transpose2d(h, out, out_bias, stride=2, padding=1))

    def discriminator(x):
        h = F.leaky_relu(F.conv2d(x, first, first_bias, stride=2, padding=1), 0.2)
        h = F.leaky_relu(norm3(F.conv2d(h, second, stride=2, padding=1)), 0.2)
        return h.permute(0, 2, 3, 1).flatten(1) @ judge + judge_bias

    def wave(step, *shape):
        count = torch.Size(shape).numel()
        return 0.5 + 0.5 * torch.sin(step * torch.arange(count)).reshape(shape)

    def loss(logits, label):
        return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))

    believed = discriminator(generator(wave(0.9, 3, 32)))
    known = discriminator(2 * wave(0.3, 3, 1, 28, 28) - 1)
    return (rows(p, loss(known, 1) + loss(believed, 0), "loss_d", ["discriminator/"]) +
            rows(p, loss(believed, 1), "loss_g", ["generator/"]))


@program
def dqn():
    p = Parameters()

    def network(name):
        layers = [(p(f"{name}/{layer}/W", a, b), p(f"{name}/{layer}/b", b))
                  for layer, a, b in [("first", 4, 64), ("second", 64, 64), ("out", 64, 2)]]

        def values(x):
            for i, (w, b) in enumerate(layers):
                x = (F.relu(x) if i else x) @ w + b
            return x
        return values

    values, target = network("values"), network("target")
    states = torch.sin(torch.arange(12.0)).reshape(3, 4)
    after = torch.cos(torch.arange(12.0)).reshape(3, 4)
    moves = torch.tensor([0, 1, 1])
    reached = 1 + 0.99 * torch.tensor([1.0, 0, 1]) * target(after).max(1).values
    guess = values(states).gather(1, moves[:, None])[:, 0]
    return rows(p, F.smooth_l1_loss(guess, reached.detach()), only=["values/"])


@program
def gpt():
    vocabulary, context, width, heads, layers = 5, 8, 8, 2, 2
    p = Parameters()
    tokens, places = p("gpt/tokens/W", vocabulary, width), p("gpt/places/W", context, width)

    def norm(name):
        scale, offset = p(f"{name}/scale", width), p(f"{name}/offset", width)
        return lambda x: F.layer_norm(x, [width], scale, offset, eps=1e-5)

    def linear(weights, bias, a, b):
        w, c = p(weights, a, b), p(bias, b)
        return lambda x: x @ w + c

    def attention(name):
        query, key, value, out = (linear(f"{name}/{part}", f"{name}/{part}_bias", width, width)
                                  for part in ["query", "key", "value", "out"])

        def split(x):
            return x.unflatten(-1, (heads, width // heads)).transpose(1, 2)
        return lambda x: out(F.scaled_dot_product_attention(
            split(query(x)), split(key(x)), split(value(x)), is_causal=True).transpose(1, 2).flatten(2))

    def block(name):
        before, attend, between = norm(f"{name}/norm1"), attention(f"{name}/attention"), norm(f"{name}/norm2")
        wide = linear(f"{name}/wide/W", f"{name}/wide/b", width, 4 * width)
        narrow = linear(f"{name}/narrow/W", f"{name}/narrow/b", 4 * width, width)

        def of(x):
            x = x + attend(before(x))
            return x + narrow(F.gelu(wide(between(x))))
        return of

    blocks = [block(f"gpt/block{i}") for i in range(layers)]
    last, head = norm("gpt/norm"), linear("gpt/head/W", "gpt/head/b", width, vocabulary)
    ids = torch.arange(12).reshape(2, 6) * 7 % 5
    after = (torch.arange(12) + 1).reshape(2, 6) * 7 % 5
    x = F.embedding(ids, tokens) + places[:6]
    for each in blocks:
        x = each(x)
    return rows(p, F.cross_entropy(head(last(x)).flatten(0, 1), after.flatten()))


@program
def export():
    p = Parameters()
    first, first_bias = p("digits/first/W", 5, 5, 1, 8).permute(3, 2, 0, 1), p("digits/first/b", 8)
    second, second_bias = p("digits/second/W", 5, 5, 8, 16).permute(3, 2, 0, 1), p("digits/second/b", 16)
    out, out_bias = p("digits/out/W", 7 * 7 * 16, 10), p("digits/out/b", 10)

    def conv(x, filters, bias):  # of the padding of 3, 1 is before the picture
        return F.relu(F.conv2d(F.pad(x, (1, 2, 1, 2)), filters, bias, stride=2))

    x = torch.sin(0.3 * torch.arange(2 * 28 * 28)).reshape(2, 1, 28, 28)
    h = conv(conv(x, first, first_bias), second, second_bias)
    logits = h.permute(0, 2, 3, 1).flatten(1) @ out + out_bias
    return rows(p, F.cross_entropy(logits, torch.tensor([3, 8])))


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
