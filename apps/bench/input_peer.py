#!/usr/bin/env python3
"""Times the input of a step in PyTorch (DataLoader) or TensorFlow (tf.data), for
`troupe bench input --peer torch` and `--peer tensorflow`.

usage: input_peer.py LIBRARY KIND FOLDER THREADS MODE
       LIBRARY: torch, tensorflow
       KIND: images: FOLDER/CLASS/*.jpg as f32 [32,224,224,3] in [0,1] and labels
             records: FOLDER/*.tfrecord of tf.Example as u8 [128,28,28] and labels
       MODE: of torch "alone" (the process itself) or "workers" (THREADS processes); of tensorflow
             "map"
prints a line of JSON when it is ready: {"version": ..., "units": examples of a step}, and one for
each line of its input: {"ms": of a step, "p99": the same}. A step is many batches, of which two may
be made before the clock starts.

Nothing is shuffled. Each reads as its documentation tells to: pictures by Pillow, which has no
other way to a JPEG file than libjpeg-turbo, messages of TFRecord files by a reader of ours, since
PyTorch has none.
"""
import glob
import os
import struct
import sys
import time

import peer

IMAGE_BATCH, RECORD_BATCH = 32, 128
IMAGE_STEP, RECORD_STEP = 8, 64  # batches


def field(data, at):
    """Number, value or bounds, and what follows: of a field of a protocol buffer."""
    key, at = varint(data, at)
    if key & 7 == 0:
        value, at = varint(data, at)
        return key >> 3, value, at
    size, at = varint(data, at)
    return key >> 3, (at, at + size), at + size


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def features(record):
    """By name, the bounds of a feature's first value, or the value."""
    _, (at, end), _ = field(record, 0)
    out = {}
    while at < end:
        _, (entry, after), at = field(record, at)
        _, (name, name_end), entry = field(record, entry)
        _, (feature, _), _ = field(record, entry)
        _, (values, _), _ = field(record, feature)
        _, value, _ = field(record, values)
        if isinstance(value, tuple) and value[1] - value[0] < 16:  # packed numbers
            value = varint(record, value[0])[0]
        out[bytes(record[name:name_end])] = value
    return out


def torch_batches(kind, folder, threads, mode):
    import numpy
    import torch
    torch.set_num_threads(threads)
    workers = threads if mode == "workers" else 0
    options = dict(num_workers=workers)
    if workers:  # two batches ahead, as the others
        options.update(prefetch_factor=max(1, 2 // workers), persistent_workers=True)

    class Images(torch.utils.data.Dataset):
        def __init__(self):
            classes = sorted(os.listdir(folder))
            self.files = [(path, label) for label, name in enumerate(classes)
                          for path in sorted(glob.glob(f"{folder}/{name}/*.jpg"))]

        def __len__(self):
            return len(self.files)

        def __getitem__(self, i):
            from PIL import Image
            path, label = self.files[i]
            with Image.open(path) as image:
                pixels = image.convert("RGB").resize((224, 224), Image.BILINEAR)
            return torch.from_numpy(numpy.array(pixels)), label

    class Records(torch.utils.data.IterableDataset):
        def __iter__(self):
            files = sorted(glob.glob(f"{folder}/*.tfrecord"))
            info = torch.utils.data.get_worker_info()
            for path in files[info.id::info.num_workers] if info else files:
                with open(path, "rb") as file:
                    while head := file.read(12):
                        record = file.read(struct.unpack("<Q", head[:8])[0])
                        file.read(4)  # checksums are not verified
                        found = features(record)
                        begin, end = found[b"image"]
                        image = numpy.frombuffer(record, numpy.uint8, end - begin, begin)
                        yield image.reshape(28, 28), found[b"label"]

    def stack_records(examples):
        return (torch.from_numpy(numpy.stack([image for image, _ in examples])),
                torch.tensor([label for _, label in examples]))

    if kind == "images":
        loader = torch.utils.data.DataLoader(Images(), IMAGE_BATCH, drop_last=True, **options)
        convert = lambda batch: (batch[0].float().div_(255), batch[1])
    else:
        loader = torch.utils.data.DataLoader(Records(), RECORD_BATCH, drop_last=True,
                                             collate_fn=stack_records, **options)
        convert = lambda batch: batch

    def batches():
        while True:
            for batch in loader:
                yield convert(batch)
    return torch.__version__, batches()


def tensorflow_batches(kind, folder, threads, _mode):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    if kind == "images":
        classes = sorted(os.listdir(folder))
        files = [(path, label) for label, name in enumerate(classes)
                 for path in sorted(glob.glob(f"{folder}/{name}/*.jpg"))]
        data = tf.data.Dataset.from_tensor_slices(
            ([path for path, _ in files], [label for _, label in files]))

        def read(path, label):
            image = tf.io.decode_jpeg(tf.io.read_file(path), 3, dct_method="INTEGER_ACCURATE")
            return tf.image.resize(image, [224, 224], antialias=True) / 255.0, label
        data = data.repeat().map(read, threads).batch(IMAGE_BATCH, True)
    else:
        wanted = {"image": tf.io.FixedLenFeature([], tf.string),
                  "label": tf.io.FixedLenFeature([], tf.int64)}

        def parse(records):
            found = tf.io.parse_example(records, wanted)
            images = tf.io.decode_raw(found["image"], tf.uint8)
            return tf.reshape(images, [-1, 28, 28]), found["label"]
        files = sorted(glob.glob(f"{folder}/*.tfrecord"))
        data = tf.data.TFRecordDataset(files).repeat().batch(RECORD_BATCH, True).map(parse, threads)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    return tf.__version__, iter(data.prefetch(2).with_options(options))


def seconds_used(process):
    """Of processors, by a process and those below it."""
    try:
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children") as file:
                used += sum(seconds_used(child) for child in file.read().split())
        return used
    except OSError:  # it has ended
        return 0.0


def settle():
    """Until the batches ahead are made: others are measured next."""
    before = -1.0
    while (used := seconds_used(os.getpid())) - before > 0.011:
        before = used
        time.sleep(0.05)


def main():
    library, kind, folder, threads, mode = sys.argv[1:]
    make = {"torch": torch_batches, "tensorflow": tensorflow_batches}[library]
    version, batches = make(kind, folder, int(threads), mode)
    batch, step = ((IMAGE_BATCH, IMAGE_STEP) if kind == "images" else (RECORD_BATCH, RECORD_STEP))

    def take():
        for _ in range(step):
            next(batches)

    take()
    settle()
    peer.say({"version": version, "units": batch * step})
    for _ in sys.stdin:
        begin = time.perf_counter()
        take()
        ms = 1e3 * (time.perf_counter() - begin)
        settle()
        peer.say({"ms": ms, "p99": ms})


if __name__ == "__main__":
    if os.environ.get("TROUPE_INPUT_PEER") == "tuned":
        main()
    else:
        sys.exit(peer.run_again(dict(peer.environment(int(sys.argv[4])), CUDA_VISIBLE_DEVICES="",
                                     TF_CPP_MIN_LOG_LEVEL="3", TROUPE_INPUT_PEER="tuned")))
