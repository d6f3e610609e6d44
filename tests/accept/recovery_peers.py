#!/usr/bin/env python3
"""recovery_peers.py SYSTEM [--trials N] [--seed S] [--workers N] [--steps N]

What `troupe chaos` does to a program, done to one of torchrun, ray or tensorflow (parameter
servers): in each trial a worker is killed at a random moment of its first half, after a checkpoint,
and in the last one the program's first process (torchrun, the driver, the chief). Prints a line of
JSON for each of the two faults, with the fields of `troupe chaos --output json`, the processes of
workers that lived on (`survivors`), and whether two runs that nobody disturbed end alike.

TensorFlow's servers are started again at once by this script, as somebody has to do it; torchrun
and Ray start their workers again by themselves.
"""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recovery_programs.py")
PATIENCE_S = 60  # for the next step; what its first process left may still make some
START_S = 180  # for a start, and from the fault to the end
LOOK_S = 0.002


class Job:
    """One run of a system's program in a folder of its own. Its processes end with it."""

    def __init__(self, system, options):
        self.system, self.options = system, options
        self.folder = tempfile.mkdtemp(prefix=f"recovery_{system}_")
        self.environment = dict(
            os.environ, RUN=self.folder, STEPS=str(options.steps), WORKERS=str(options.workers),
            CHECKPOINT="5", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", CUDA_VISIBLE_DEVICES="",
            TF_CPP_MIN_LOG_LEVEL="3", PYTHONUNBUFFERED="1",
            # Else the workers of a second life ask the store for the addresses of the first.
            TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
        self.servers = {}
        if system == "tensorflow":
            self.begin_servers()
        command = [sys.executable, PROGRAM, system]
        if system == "torchrun":
            command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1",
                       f"--nproc-per-node={options.workers}", "--max-restarts=100",
                       "--monitor-interval=0.1", PROGRAM, system]
        self.first = self.start(command)

    def start(self, command):
        return subprocess.Popen(command, env=self.environment, start_new_session=True,
                                stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                                stdout=open(os.path.join(self.folder, "said"), "a"))

    def begin_servers(self):
        sockets = [socket.socket() for _ in range(self.options.workers + 2)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        *workers, server, chief = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
        for s in sockets:
            s.close()
        self.environment["CLUSTER"] = json.dumps(
            {"worker": workers, "ps": [server], "chief": [chief]})
        for number in range(self.options.workers):
            self.start_server("worker", number)
        self.start_server("ps", 0)

    def start_server(self, job, number):
        self.servers[job, number] = self.start(
            [sys.executable, PROGRAM, "server", job, str(number)])

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name)) as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def steps(self):
        return [int(line) for line in self.read("steps").splitlines()]

    def workers(self):
        pids = [self.read(f"pid.{number}") for number in range(self.options.workers)]
        return [int(pid) for pid in pids if pid]

    def result(self):
        return self.read("result")

    def kill_worker(self, number):
        if (worker := self.servers.get(("worker", number))) is not None:
            worker.kill()
            worker.wait()
            self.start_server("worker", number)
        else:
            os.kill(self.workers()[number], signal.SIGKILL)

    def wait_until(self, there, seconds):
        """False: the time is over."""
        end = time.monotonic() + seconds
        while not there():
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_S)
        return True

    def end(self):
        sessions = [p.pid for p in [self.first, *self.servers.values()]]
        # Ray's daemons are in sessions of their own, and have the folder in their environment.
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    ours = f"RUN={self.folder}\0".encode() in file.read()
                if ours or os.getsid(int(entry)) in sessions:
                    os.kill(int(entry), signal.SIGKILL)
            except (OSError, ProcessLookupError):
                pass
        for process in [self.first, *self.servers.values()]:
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def disturb(job, kill):
    """Milliseconds to the next step that had not been made, if it comes, and steps made twice."""
    done = job.steps()
    before, count = max(done), len(done)
    began = time.monotonic()
    kill()
    if not job.wait_until(lambda: max(job.steps()) > before, PATIENCE_S):
        return None, 0
    ms = (time.monotonic() - began) * 1000
    return ms, sum(step <= before for step in job.steps()[count:])


def middle(numbers, share=0.5):
    """None: there are none."""
    return sorted(numbers)[min(len(numbers) - 1, int(len(numbers) * share))] if numbers else None


def run_trials(system, options, whole, rng, fault, trials):
    times, twice, went_on, equal, survivors = [], [], 0, 0, []
    for _ in range(trials):
        job = Job(system, options)
        try:
            at = rng.randint(6, options.steps // 2)
            if not job.wait_until(lambda: job.steps()[-1:] >= [at], START_S):
                sys.exit(f"{system} did not get to step {at}:\n" + job.read("said")[-2000:])
            old = job.workers()
            if fault == "kill-worker":
                number = rng.randrange(options.workers)
                ms, again = disturb(job, lambda: job.kill_worker(number))
            else:
                number = None
                ms, again = disturb(job, job.first.kill)
            if ms is None:
                continue
            times.append(round(ms))
            twice.append(again)
            job.wait_until(job.result, START_S)
            survivors.append(sum(a == b for k, (a, b) in enumerate(zip(old, job.workers()))
                                 if k != number))
            went_on += bool(job.result())
            equal += job.result() == whole
        finally:
            job.end()
    return {"system": system, "fault": fault, "trials": trials, "went_on": went_on,
            "hash_equal": equal, "next_step_ms_p50": middle(times),
            "next_step_ms_p99": middle(times, 0.99), "steps_done_twice_p50": middle(twice),
            "survivors_p50": middle(survivors)}


def run_undisturbed(system, options):
    job = Job(system, options)
    try:
        if not job.wait_until(job.result, START_S):
            sys.exit(f"{system}, undisturbed:\n" + job.read("said")[-2000:])
        return job.result()
    finally:
        job.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("system", choices=("torchrun", "ray", "tensorflow"))
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    whole = run_undisturbed(options.system, options)
    same = whole == run_undisturbed(options.system, options)
    for fault, trials in (("kill-worker", options.trials), ("kill-master", 1)):
        row = run_trials(options.system, options, whole, rng, fault, trials)
        print(json.dumps(dict(row, same_undisturbed=same)), flush=True)


main()
