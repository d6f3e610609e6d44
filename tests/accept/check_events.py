# check_events.py LOGS RESULT CHECKPOINTS PRINTED: what tests/accept/programs_6.sh wrote, as TensorBoard's own reader
# and its server see it. Prints figures; ends with 1 at the first thing that is not so.
import glob
import io
import json
import logging
import math
import os
import re
import struct
import subprocess
import sys
import time
import urllib.request
import wave

import numpy as np
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

logs, result_file, checkpoints, printed = sys.argv[1:5]
result = json.load(open(result_file))
steps = 60
shown = [1] + list(range(5, steps + 1, 5))


def figure(name, value):
    print("  %-44s %s" % (name, value))


def need(condition, what):
    if not condition:
        print("  not so: %s" % what)
        sys.exit(1)


def same(a, b, what):
    need(a == b, "%s: %r, not %r" % (what, a, b))


def near(a, b, what):
    need(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-9), "%s: %r, not %r" % (what, a, b))


logging.getLogger("tensorboard").setLevel(logging.ERROR)  # a graph for each life of the run
everything = {"scalars": 0, "histograms": 0, "images": 0, "tensors": 0, "compressedHistograms": 0}
conv = EventAccumulator(logs + "/conv", size_guidance=everything)
conv.Reload()
tags = conv.Tags()
files = len(glob.glob(logs + "/conv/*tfevents*"))
figure("event files", files)
need(files == 2, "the run was killed once")

# Curves: each step once, in order.
for tag in tags["scalars"]:
    at = [e.step for e in conv.Scalars(tag)]
    same(at, sorted(set(at)), "steps of " + tag)
loss = conv.Scalars("loss")
# A life shows its own first step, too.
begun = [e.step for e in loss if e.step not in shown]
need(len(begun) <= 1, "at most one step more: %r" % begun)
same([e.step for e in loss if e.step in shown], shown, "steps of loss")
same(np.float32(loss[-1].value), np.float32(result["loss"]), "the last loss")
need(loss[-1].value < loss[0].value, "the loss falls")
near(conv.Scalars("test_accuracy")[0].value, result["test_accuracy"], "test_accuracy")
near(conv.Scalars("learning_rate")[0].value, 0.02, "learning_rate")
now = time.time()
need(all(now - 3600 < e.wall_time <= now for e in loss), "wall times")
figure("curves", len(tags["scalars"]))

# Distributions of the parameters: those of the checkpoint.
newest = max(glob.glob(checkpoints + "/ckpt-*"), key=lambda p: int(p.rsplit("-", 1)[1]))
same(newest.rsplit("-", 1)[1], str(steps), "the newest checkpoint")
variables = {}
for shard in glob.glob(newest + "/*.safetensors"):
    data = open(shard, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        variables[name] = np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4")
compared = 0
for tag in tags["histograms"]:
    name = tag.removeprefix("parameters/")
    values = variables[name].astype(np.float64)
    event = conv.Histograms(tag)[-1]
    same(event.step, steps, "the last step of " + tag)
    h = event.histogram_value
    same((h.min, h.max, h.num), (values.min(), values.max(), float(values.size)), tag)
    near(h.sum, values.sum() if abs(values.sum()) > 1e-3 else h.sum, "sum of " + tag)
    near(h.sum_squares, (values**2).sum(), "sum of squares of " + tag)
    same(sum(h.bucket), h.num, "buckets of " + tag)
    edges = [-math.inf] + list(h.bucket_limit)
    for low, high, count in zip(edges, edges[1:], h.bucket):
        inside = np.count_nonzero((values >= low) & (values < high))
        same(float(inside), count, "bucket below %g of %s" % (high, tag))
    near(conv.Scalars("norms/" + name)[-1].value, np.linalg.norm(values), "norm of " + name)
    compared += 1
need(compared >= 8, "all parameters of mnist-conv")
figure("distributions that are the checkpoint's", compared)

# Pictures.
for i in range(3):
    pictures = conv.Images("batch/image/%d" % i)
    need(len(pictures) >= len(shown) - 1, "pictures of steps")
    for e in pictures:
        same((e.width, e.height), (28, 28), "size of a picture")
        need(e.encoded_image_string.startswith(b"\x89PNG\r\n"), "a picture is PNG")
        same(struct.unpack(">II", e.encoded_image_string[16:24]), (28, 28), "size in PNG")
figure("pictures", 3 * len(pictures))

# Text.
plugins = plugin_event_accumulator.EventAccumulator(logs + "/conv", size_guidance={"tensors": 0})
plugins.Reload()
same(plugins.SummaryMetadata("options").plugin_data.plugin_name, "text", "plugin of the options")
options = tensor_util.make_ndarray(plugins.Tensors("options")[0].tensor_proto).item().decode()
need("| example | mnist-conv |" in options and "| seed | 5 |" in options, options)
figure("text", "options, %d bytes" % len(options))

# The graph.
graph = conv.Graph()
nodes = {n.name: n for n in graph.node}
same(len(nodes), len(graph.node), "names differ")
for n in graph.node:
    for i in n.input:
        need(i.lstrip("^").split(":")[0] in nodes, "input %s of %s" % (i, n.name))
devices = {n.device for n in graph.node if n.device}
same(devices, {"/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0"}, "devices")
scopes = {n.split("/")[0] for n in nodes}
need({"conv", "train", "gradients"} <= scopes, "scopes: %r" % sorted(scopes))
shape = nodes["conv/c1/W"].attr["_output_shapes"].list.shape[0]
same([d.size for d in shape.dim], [5, 5, 1, 32], "shape of conv/c1/W")
need(any(i.startswith("^") for n in graph.node for i in n.input), "control edges")
figure("nodes of the graph", len(nodes))

# What each node took.
runs = tags["run_metadata"]
need(len(runs) == 2 and "step 4" in runs, "run metadata: %r" % runs)
for tag in runs:
    stats = conv.RunMetadata(tag).step_stats.dev_stats
    same({d.device for d in stats}, devices, "devices of " + tag)
    ran = [n for d in stats for n in d.node_stats]
    known = [n for n in ran if n.node_name in nodes]
    need(len(known) > len(ran) / 2 and "conv/c1/Conv2D" in {n.node_name for n in known}, tag)
    need(all(n.all_end_rel_micros > 0 for n in ran), "times of " + tag)
    need(all(now - 3600 < n.all_start_micros / 1e6 < now + 1 for n in ran), "beginnings of " + tag)
figure("run metadata", ", ".join("%s: %d nodes" % (t, sum(len(d.node_stats) for d in
       conv.RunMetadata(t).step_stats.dev_stats)) for t in runs))

# The README's program: what it printed.
example = EventAccumulator(logs + "/example", size_guidance=everything)
example.Reload()
lines = re.findall(r"step (\d+)/\d+  loss ([\d.]+)  accuracy ([\d.]+)", open(printed).read())
need(len(lines) >= 5, "lines of the README's program")
for tag, column in (("loss", 1), ("accuracy", 2)):
    same([(e.step, "%.4f" % e.value) for e in example.Scalars(tag)],
         [(int(l[0]), l[column]) for l in lines], tag + " of the README's program")
need(len(example.Scalars("steps_per_second")) >= 4, "its speed")
figure("points of the README's program", len(lines))

# A program with known values.
known = EventAccumulator(logs + "/shown", size_guidance={**everything, "audio": 0})
known.Reload()
five = [1, 2, 3, 4, 5]
for tag, value in (("known/step", lambda i: i), ("plain", lambda i: i / 4), ("power", lambda i: 256),
                   ("chosen", lambda i: 256), ("known/infinity", lambda i: math.inf)):
    same([(e.step, e.value) for e in known.Scalars(tag)], [(i, value(i)) for i in five], tag)
need(all(math.isnan(e.value) for e in known.Scalars("known/nan")), "NaN")
h = known.Histograms("known/histogram")[0].histogram_value
same((h.min, h.max, h.num, h.sum), (-0.5, 3e20, 5, 3e20), "a histogram")
edges = [-math.inf] + list(h.bucket_limit)
full = [(low, high, n) for low, high, n in zip(edges, edges[1:], h.bucket) if n]
same([n for _, _, n in full], [1, 1, 2, 1], "its buckets")
for (low, high, _), value in zip(full, (-0.5, 0, 0.25, 3e20)):
    need(low <= value < high, "the bucket of %g: [%g, %g)" % (value, low, high))
same(known.Histograms("known/empty")[0].histogram_value.num, 0, "an empty histogram")
sound = known.Audio("known/tone/audio")[0]
same((sound.sample_rate, sound.length_frames, sound.content_type), (8000, 8000, "audio/wav"), "sound")
with wave.open(io.BytesIO(sound.encoded_audio_string)) as wav:
    same(wav.getparams()[:4], (2, 2, 8000, 8000), "WAV")
    samples = np.frombuffer(wav.readframes(8000), "<i2").reshape(-1, 2)
need(np.abs(samples[:, 0] - 32768 * np.sin(np.arange(8000) * 0.3)).max() <= 1, "its samples")
need(not samples[:, 1].any(), "its silence")
picture = known.Images("known/ramp/image")[0]
same((picture.width, picture.height), (4, 4), "a picture")
need(picture.encoded_image_string.startswith(b"\x89PNG"), "a picture is PNG")
texts = plugin_event_accumulator.EventAccumulator(logs + "/shown", size_guidance={"tensors": 0})
texts.Reload()
table = tensor_util.make_ndarray(texts.Tensors("known/table")[0].tensor_proto)
same([s.decode() for s in table.flatten()], ["a", "b", "gr\u00fc\u00df", "\ufffd"], "a table")
library = {f.signature.name: {n.op for n in f.node_def} for f in known.Graph().library.function}
need("square" in library and "Mul" in library["square"] and len(library) >= 5,
     "functions: %r" % library)
same(known.Tags()["run_metadata"], ["step 5"], "its run metadata")
figure("functions of a graph", len(library))

# The server that people look at.
server = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", logs, "--port", "0",
                           "--host", "127.0.0.1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
try:
    port = None
    for line in server.stdout:
        found = re.search(r"http://[^:]+:(\d+)", line)
        if found:
            port = found.group(1)
            break
    need(port, "the server says where it is")

    def ask(path):
        with urllib.request.urlopen("http://127.0.0.1:%s/data/%s" % (port, path), timeout=30) as r:
            return r.read()

    deadline = time.time() + 60
    while time.time() < deadline:
        runs = json.loads(ask("runs"))
        scalars = json.loads(ask("plugin/scalars/tags"))
        if set(runs) >= {"conv", "example"} and "test_accuracy" in scalars.get("conv", {}):
            break
        time.sleep(0.5)
    need("test_accuracy" in scalars["conv"], "curves in the server: %r" % list(scalars))
    points = json.loads(ask("plugin/scalars/scalars?tag=loss&run=conv"))
    same([p[1] for p in points], [e.step for e in loss], "steps of loss in the server")
    need("parameters/conv/c1/W" in json.loads(ask("plugin/histograms/tags"))["conv"], "histograms")
    need("batch/image/0" in json.loads(ask("plugin/images/tags"))["conv"], "pictures in the server")
    need("options" in json.loads(ask("plugin/text/tags"))["conv"], "text in the server")
    need(b"Conv2D" in ask("plugin/graphs/graph?run=conv&limit_attr_size=1024"
                          "&large_attrs_key=_too_large_attrs"), "the graph in the server")
    need(b"node_stats" in ask("plugin/graphs/run_metadata?run=conv&tag=step%204"), "run metadata")
    figure("its server", "shows both runs")
finally:
    server.terminate()
    server.wait()
