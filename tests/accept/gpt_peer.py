"""What tests/programs/gpt.cpp does, in PyTorch: gpt_peer.py STEPS LAYERS THREADS"""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY, CONTEXT, WIDTH, HEADS = 50257, 1024, 768, 12
BATCH, TIME = 2, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (
            part.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in self.attn(self.ln_1(x)).split(WIDTH, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x))))


class Gpt(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, WIDTH)
        self.wpe = nn.Embedding(CONTEXT, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(layers))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(TIME))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


steps, layers = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(int(sys.argv[3]))
model = Gpt(layers)
adam = torch.optim.Adam(model.parameters(), lr=1e-4)
drawn = torch.tensor([i * 7919 % VOCABULARY for i in range(BATCH * TIME + 1)])
x, y = drawn[:-1].view(BATCH, TIME), drawn[1:].view(BATCH, TIME)
for step in range(steps):
    loss = F.cross_entropy(model(x).view(-1, VOCABULARY), y.view(-1))
    adam.zero_grad()
    loss.backward()
    adam.step()
    print(f"{step} loss {loss.item():.5f}", flush=True)
print("parameters", sum(p.numel() for p in model.parameters()))
for line in open("/proc/self/status"):
    if line.startswith("VmHWM:"):
        print("peak", int(line.split()[1]) >> 10)
