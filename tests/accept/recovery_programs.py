"""Programs that recovery_peers.py disturbs: recovery_programs.py torchrun | ray | tensorflow

Each trains the network of mnist-conv (two convolutions of 5x5, 32 and 64 channels, 512 hidden
units) by momentum on drawn data that depends on worker and step alone, 64 examples a worker, with a
checkpoint every CHECKPOINT steps that is there as a whole or not at all, as the system's own
examples do it. In the folder RUN it leaves `pid.N` of worker N, a line of `steps` for each step,
and last `result`, a hash of the parameters. STEPS and WORKERS say how many.
"""
import hashlib
import os
import sys

RUN = os.environ["RUN"]
STEPS, WORKERS = int(os.environ["STEPS"]), int(os.environ["WORKERS"])
CHECKPOINT = int(os.environ["CHECKPOINT"])
BATCH, RATE, MOMENTUM = 64, 0.01, 0.9


def write(name, text):
    """A file of the folder that is there as a whole."""
    path = os.path.join(RUN, name)
    with open(f"{path}.{os.getpid()}", "w") as file:
        file.write(text)
    os.replace(f"{path}.{os.getpid()}", path)


def begin_worker(number):
    write(f"pid.{number}", str(os.getpid()))


def did(step):
    with open(os.path.join(RUN, "steps"), "a") as file:
        file.write(f"{step}\n")


def end(arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    write("result", digest.hexdigest())


# ------------------------------------------------------------------ PyTorch


def torch_network():
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 512), nn.ReLU(), nn.Linear(512, 10))


def torch_loss(network, worker, step):
    import torch

    generator = torch.Generator().manual_seed(step * WORKERS + worker)
    pictures = torch.rand(BATCH, 1, 28, 28, generator=generator)
    labels = torch.randint(0, 10, (BATCH,), generator=generator)
    return torch.nn.functional.cross_entropy(network(pictures), labels)


class TorchTraining:
    """Network and rule, with their checkpoint."""

    def __init__(self):
        import torch

        self.network, self.step = torch_network(), 0
        self.rule = torch.optim.SGD(self.network.parameters(), lr=RATE, momentum=MOMENTUM)
        self.path = os.path.join(RUN, "checkpoint.pt")
        if os.path.exists(self.path):
            kept = torch.load(self.path)
            self.network.load_state_dict(kept["network"])
            self.rule.load_state_dict(kept["rule"])
            self.step = kept["step"]

    def save(self):
        import torch

        torch.save({"network": self.network.state_dict(), "rule": self.rule.state_dict(),
                    "step": self.step}, self.path + ".new")
        os.replace(self.path + ".new", self.path)

    def stepped(self):
        self.rule.step()
        self.step += 1
        did(self.step)
        if self.step % CHECKPOINT == 0:
            self.save()

    def end(self):
        end(p.detach().numpy() for p in self.network.parameters())


def torchrun():
    """One worker of torchrun's: all of them begin again from the checkpoint."""
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    begin_worker(rank)
    dist.init_process_group("gloo")
    training = TorchTraining()
    network = torch.nn.parallel.DistributedDataParallel(training.network)
    while training.step < STEPS:
        training.rule.zero_grad()
        torch_loss(network, rank, training.step).backward()
        if rank == 0:
            training.stepped()
        else:
            training.rule.step()
            training.step += 1
    if rank == 0:
        training.end()
    dist.destroy_process_group()


def ray():
    """The driver has the parameters, actors that are started again compute gradients."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    import torch

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)

    @ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)
    class Worker:
        def __init__(self, number):
            begin_worker(number)
            self.number, self.network = number, torch_network()

        def gradients(self, parameters, step):
            with torch.no_grad():
                for mine, given in zip(self.network.parameters(), parameters):
                    mine.copy_(torch.from_numpy(given))
            self.network.zero_grad()
            torch_loss(self.network, self.number, step).backward()
            return [p.grad.numpy() for p in self.network.parameters()]

    workers = [Worker.remote(number) for number in range(WORKERS)]
    training = TorchTraining()
    while training.step < STEPS:
        now = ray.put([p.detach().numpy() for p in training.network.parameters()])
        all_gradients = ray.get([w.gradients.remote(now, training.step) for w in workers])
        for p, *parts in zip(training.network.parameters(), *all_gradients):
            p.grad = torch.from_numpy(sum(parts[1:], parts[0].copy())) / WORKERS
        training.stepped()
    training.end()
    ray.shutdown()


# ------------------------------------------------------------------ TensorFlow


def tensorflow_cluster():
    """Of this process's strategy, or of the server that it is to be."""
    import json

    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    return tf, tf.train.ClusterSpec(json.loads(os.environ["CLUSTER"]))


def server(job, number):
    """A worker, or the parameter server, until it is killed."""
    if job == "worker":
        begin_worker(number)
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    tf, cluster = tensorflow_cluster()
    tf.distribute.Server(cluster, job_name=job, task_index=number, protocol="grpc").join()


def tensorflow():
    """Each worker's gradients change the parameters of the server as they come. A step is one of
    each worker."""
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    tf, cluster = tensorflow_cluster()
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type="chief", task_id=0, rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        layers = tf.keras.layers
        network = tf.keras.Sequential([
            layers.Input((28, 28, 1)),
            layers.Conv2D(32, 5, padding="same", activation="relu"), layers.MaxPool2D(),
            layers.Conv2D(64, 5, padding="same", activation="relu"), layers.MaxPool2D(),
            layers.Flatten(), layers.Dense(512, activation="relu"), layers.Dense(10)])
        momenta = [tf.Variable(tf.zeros_like(v)) for v in network.trainable_variables]
        done = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def gradients_of(seed):
        pictures = tf.random.stateless_uniform((BATCH, 28, 28, 1), (seed, 0))
        labels = tf.random.stateless_uniform((BATCH,), (seed, 1), 0, 10, tf.int32)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, network(pictures)))
        variables = network.trainable_variables
        for v, momentum, g in zip(variables, momenta, tape.gradient(loss, variables)):
            momentum.assign(MOMENTUM * momentum + g)
            v.assign_sub(RATE / WORKERS * momentum)
        return loss

    checkpoint = tf.train.Checkpoint(network=network, momenta=momenta, done=done)
    manager = tf.train.CheckpointManager(checkpoint, os.path.join(RUN, "tf"), max_to_keep=2)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint)
    for step in range(int(done.numpy()), STEPS):
        for worker in range(WORKERS):
            coordinator.schedule(gradients_of, args=(tf.constant(step * WORKERS + worker),))
        coordinator.join()
        done.assign(step + 1)
        did(step + 1)
        if (step + 1) % CHECKPOINT == 0:
            manager.save()
    end(v.numpy() for v in network.trainable_variables)
    os._exit(0)  # else it waits for workers


if __name__ == "__main__":
    if sys.argv[1] == "server":
        server(sys.argv[2], int(sys.argv[3]))
    else:
        {"torchrun": torchrun, "ray": ray, "tensorflow": tensorflow}[sys.argv[1]]()
