"""Loops in TensorFlow, for the rows executor.loop.* of `troupe bench --peer tensorflow`.

LOOPS: by the row's name, how many of its units (iterations, or nodes) a step has, and where it
runs: "" in the caller's thread, "devices" on two devices of one process, "processes" on two servers
of a cluster. What loops do is what apps/bench/loop_bench.cpp and spread_loop_bench.cpp say.
"""
import socket
import subprocess
import sys

TRIPS, LONG, NESTED, SPREAD = 50_000, 1_000, 250, 400

LOOPS = {
    "count": (TRIPS, ""),
    "carry_1KiB": (TRIPS, ""),
    "carry_1MiB": (TRIPS, ""),
    "nested": (NESTED * NESTED, ""),
    "body64": (LONG * 64, ""),
    "two_partitions": (SPREAD, "devices"),
    "two_partitions_there_and_back": (SPREAD, "devices"),
    "two_processes": (SPREAD, "processes"),
    "there_and_back": (SPREAD, "processes"),
}


def repeat(tf, trips, value, body):
    """`for (i = 0; i < trips; ++i) value = body(value)`: the last value, and i."""
    limit = tf.constant(trips, tf.int64)
    i, last = tf.while_loop(lambda i, _: i < limit, lambda i, value: (i + 1, body(value)),
                            [tf.constant(0, tf.int64), value])
    return last, i


def carried(tf, name):
    if name == "nested":
        return repeat(tf, NESTED, tf.ones([1], tf.uint8),
                      lambda value: repeat(tf, NESTED, value, lambda inner: inner)[0])
    if name == "body64":
        def hand_on(value):
            for _ in range(64):
                value = tf.identity(value)
            return value
        return repeat(tf, LONG, tf.ones([4], tf.uint8), hand_on)
    size = {"count": 1, "carry_1KiB": 1 << 10, "carry_1MiB": 1 << 20}[name]
    return repeat(tf, TRIPS, tf.ones([size], tf.uint8), lambda value: value)


def spread(tf, name, here, there):
    back = name.endswith("there_and_back")

    def body(value):
        with tf.device(there):
            value = value + 1.0
        if back:
            value = value + 1.0
        return value

    with tf.device(here):
        return repeat(tf, SPREAD, tf.constant(0.0, tf.float64), body)


def two_servers(tf):
    """Addresses, and the second server in a process of its own, which ends with our end of a pipe."""
    sockets = [socket.socket() for _ in range(2)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    addresses = ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    other = subprocess.Popen([sys.executable, __file__] + addresses, stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL)
    return addresses, other


def serve(tf, addresses, task, config=None):
    return tf.distribute.Server({"worker": addresses}, "worker", task, config=config)


def step_of(tf, name, mode):
    """Runs the loop once; and what to do in the end."""
    _, where = LOOPS[name]
    # What hands a value on would be left out: nodes are what is measured.
    if mode == "function":
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        run = tf.function(lambda: carried(tf, name))
        return lambda: run()[1].numpy(), lambda: None
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
    if where == "":
        config.inter_op_parallelism_threads = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    target, end = "", lambda: None
    if where == "processes":
        addresses, other = two_servers(tf)
        target = serve(tf, addresses, 0, config).target
        end = other.kill
        values = spread(tf, name, "/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0")
    elif where == "devices":
        config.device_count["CPU"] = 2
        values = spread(tf, name, "/cpu:0", "/cpu:1")
    else:
        values = carried(tf, name)
    session = tf.compat.v1.Session(target, config=config)
    return session.make_callable(list(values)), end


def main():
    """The second server: python3 tensorflow_loops.py ADDRESS ADDRESS."""
    import tensorflow as tf
    server = serve(tf, sys.argv[1:3], 1)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main()
