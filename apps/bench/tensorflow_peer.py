#!/usr/bin/env python3
"""Times one step of a small network, or a loop, in TensorFlow, for `troupe bench --peer tensorflow`.

usage: tensorflow_peer.py MODEL THREADS MODE
       MODEL: mlp, lenet, resnet20, char_lstm: a training step; null: ten nodes that do nothing;
              loop.NAME: one of tensorflow_loops.py
       MODE:  graph (a session of version 1, made callable), function (tf.function)
prints a line of JSON when it is ready: {"tensorflow": version, "units": iterations or nodes of a
loop, else 1}, and one for each line of its input, which is the seconds of a round: {"ms": median,
"p99": ...}

TensorFlow is set up as well as it can be on a CPU: in graph mode the session runs in the caller's
thread (inter_op_parallelism_threads = -1), a function has as many threads as are asked for (with one
it would still take two CPUs, for ops beside each other), freed memory is kept by malloc rather than
given back to the kernel at each step. The latter must be in the environment before the process
begins, so the script starts itself a second time.
"""
import os
import sys

import peer
import tensorflow_loops


def tuned_environment(threads):
    return dict(peer.environment(threads), CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3",
                TROUPE_TENSORFLOW_PEER="tuned")


def channels_of(x):
    return int(x.shape[-1])


class Network:
    """Variables in the order in which a network asks for them: made by the first pass through it,
    the same ones again in each later one."""

    def __init__(self, tf, random):
        self.tf, self.random = tf, random
        self.weights, self.averages = [], []
        self.begin()

    def begin(self):
        self.taken = {"weights": 0, "averages": 0}
        self.moved = []  # (average, value of this batch)

    def take(self, kind, value):
        known = getattr(self, kind)
        if self.taken[kind] == len(known):
            known.append(self.tf.Variable(value(), trainable=kind == "weights"))
        self.taken[kind] += 1
        return known[self.taken[kind] - 1]

    def weight(self, shape, fan_in):
        return self.take("weights", lambda: (
            self.random.uniform(-1, 1, shape) / fan_in ** 0.5).astype("float32"))

    def dense(self, x, size):
        width = channels_of(x)
        return self.tf.nn.bias_add(self.tf.matmul(x, self.weight([width, size], width)),
                                   self.weight([size], width))

    def conv(self, x, size, channels, stride=1, bias=True):
        around = size // 2
        fan_in = size * size * channels_of(x)
        y = self.tf.nn.conv2d(x, self.weight([size, size, channels_of(x), channels], fan_in), stride,
                              [[0, 0], [around, around], [around, around], [0, 0]])
        return self.tf.nn.bias_add(y, self.weight([channels], fan_in)) if bias else y

    def norm(self, x):
        channels = channels_of(x)
        numbers = lambda value: lambda: self.random.uniform(value, value, [channels]).astype(
            "float32")
        y, mean, variance = self.tf.compat.v1.nn.fused_batch_norm(
            x, self.take("weights", numbers(1)), self.take("weights", numbers(0)), epsilon=1e-5,
            is_training=True)[:3]
        self.moved += [(self.take("averages", numbers(0)), mean),
                       (self.take("averages", numbers(1)), variance)]
        return y


def mlp(net, x):
    relu = net.tf.nn.relu
    return net.dense(relu(net.dense(relu(net.dense(x, 512)), 512)), 10)


def lenet(net, x):
    tf = net.tf
    for channels in (32, 64):
        x = tf.nn.max_pool2d(tf.nn.relu(net.conv(x, 5, channels)), 2, 2, "VALID")
    return net.dense(tf.nn.relu(net.dense(tf.reshape(x, [64, 7 * 7 * 64]), 512)), 10)


def resnet20(net, x):
    relu = net.tf.nn.relu
    x = relu(net.norm(net.conv(x, 3, 16, bias=False)))
    for channels in (16, 32, 64):
        for block in range(3):
            stride = 2 if block == 0 and channels > 16 else 1
            y = relu(net.norm(net.conv(x, 3, channels, stride, False)))
            y = net.norm(net.conv(y, 3, channels, bias=False))
            if stride > 1:
                x = net.norm(net.conv(x, 1, channels, stride, False))
            x = relu(x + y)
    return net.dense(net.tf.reduce_mean(x, [1, 2]), 10)


def char_lstm(net, x):
    """Two layers in a while loop, as dynamic_rnn makes it."""
    tf, time_, batch, units = net.tf, 50, 32, 256
    layers = []
    inputs = tf.gather(net.weight([128, units], 1), x)
    for _ in range(2):
        layers.append((tf.identity(net.weight([2 * units, 4 * units], units)),
                       tf.identity(net.weight([4 * units], units))))
    read = tf.TensorArray(tf.float32, time_, element_shape=[batch, units]).unstack(inputs)
    written = tf.TensorArray(tf.float32, time_, element_shape=[batch, units])

    def cell(x, h, c, layer):
        gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), layer[0]), layer[1])
        i, f, g, o = tf.split(gates, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    def body(t, h0, c0, h1, c1, written):
        h0, c0 = cell(read.read(t), h0, c0, layers[0])
        h1, c1 = cell(h0, h1, c1, layers[1])
        return t + 1, h0, c0, h1, c1, written.write(t, h1)

    zero = tf.zeros([batch, units])
    last = tf.while_loop(lambda t, *_: t < time_, body,
                         (tf.constant(0), zero, zero, zero, zero, written),
                         maximum_iterations=time_)
    return net.dense(tf.reshape(last[-1].stack(), [time_ * batch, units]), 128)


# The network, the shape of its batch (of numbers below a limit, or of noise), how many labels of
# how many kinds, the rate of SGD.
MODELS = {
    "mlp": (mlp, [100, 784], None, 100, 10, 1e-2),
    "lenet": (lenet, [64, 28, 28, 1], None, 64, 10, 1e-2),
    "resnet20": (resnet20, [64, 32, 32, 3], None, 64, 10, 1e-1),
    "char_lstm": (char_lstm, [50, 32], 128, 50 * 32, 128, 1e-1),
}


def loss_of(tf, network, net, x, y):
    net.begin()
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=y.read_value(), logits=network(net, x.read_value())))


def graph_session(tf, threads):
    return tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=-1))


def training_step(tf, model, threads, mode):
    import numpy
    network, shape, limit, count, kinds, rate = MODELS[model]
    random = numpy.random.default_rng(7)
    batch = random.integers(0, limit, shape) if limit else random.standard_normal(shape, "float32")
    x = tf.Variable(batch.astype("int32") if limit else batch, trainable=False)
    y = tf.Variable(random.integers(0, kinds, count).astype("int32"), trainable=False)
    net = Network(tf, random)
    if mode == "graph":
        loss = loss_of(tf, network, net, x, y)
        train = tf.compat.v1.train.MomentumOptimizer(rate, 0.9).minimize(loss, var_list=net.weights)
        moves = [average.assign_sub(0.1 * (average - value)) for average, value in net.moved]
        session = graph_session(tf, threads)
        session.run(tf.compat.v1.global_variables_initializer())
        return session.make_callable(tf.group(train, *moves))
    loss_of(tf, network, net, x, y)  # makes the variables
    speeds = [tf.Variable(tf.zeros_like(w), trainable=False) for w in net.weights]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(tf, network, net, x, y)
        gradients = tape.gradient(loss, net.weights)
        for weight, speed, gradient in zip(net.weights, speeds, gradients):
            tf.raw_ops.ResourceApplyMomentum(
                var=weight.handle, accum=speed.handle, lr=rate,
                grad=tf.convert_to_tensor(gradient), momentum=0.9)
        for average, value in net.moved:
            average.assign_sub(0.1 * (average - value))
        return loss

    return lambda: step().numpy()  # which is there when the step is done


def null_step(tf, threads, mode):
    def nodes():
        last = None
        for _ in range(10):
            with tf.control_dependencies([last] if last is not None else []):
                last = tf.no_op()
        return last

    if mode == "graph":
        last = nodes()
        return graph_session(tf, threads).make_callable(last)

    @tf.function
    def step():
        nodes()

    return step


def main():
    model, threads, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if os.environ.get("TROUPE_TENSORFLOW_PEER") != "tuned":
        sys.exit(peer.run_again(tuned_environment(threads)))
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    if mode == "graph":
        tf.compat.v1.disable_v2_behavior()
        tf.compat.v1.enable_resource_variables()
    units, end = 1, lambda: None
    if model.startswith("loop."):
        name = model[len("loop."):]
        units = tensorflow_loops.LOOPS[name][0]
        step, end = tensorflow_loops.step_of(tf, name, mode)
        first = 2
    elif model == "null":
        step, first = null_step(tf, threads, mode), 1000
    else:
        step, first = training_step(tf, model, threads, mode), 20
    try:
        peer.time_rounds(step, first, {"tensorflow": tf.__version__, "units": units})
    finally:
        end()


if __name__ == "__main__":
    main()
