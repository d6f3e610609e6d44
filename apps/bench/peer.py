"""What the scripts share that time a step of a peer."""
import json
import os
import subprocess
import sys
import time


def environment(threads):
    """Of a process that keeps freed memory rather than give it back to the kernel at each step,
    which must be told before it begins."""
    return dict(os.environ, MALLOC_MMAP_THRESHOLD_=str(4 << 30), MALLOC_TRIM_THRESHOLD_=str(8 << 30),
                OMP_NUM_THREADS=str(threads))


def run_again(env):
    """Runs the script that calls this once more, in another environment."""
    return subprocess.run([sys.executable] + sys.argv, env=env).returncode


def say(figures):
    print(json.dumps(figures), flush=True)


def time_rounds(step, first, about):
    """After `first` steps that do not count says what stands ready; then a round for each line of
    input, which is the seconds that it takes."""
    for _ in range(first):
        step()
    say(about)
    for line in sys.stdin:
        time_round(step, float(line))


def time_round(step, seconds):
    times = timed(step, seconds)
    say({"ms": 1e3 * times[len(times) // 2], "p99": 1e3 * times[int(len(times) * 0.99)]})


def time_named_rounds(prepare, about):
    """The same of several steps: a line is the name of one, which prepare(name) makes when it is
    asked for the first time, and the seconds."""
    say(about)
    ready = None
    for line in sys.stdin:
        name, seconds = line.split()
        if ready != name:
            ready, step = name, prepare(name)
            timed(step, 0.05)  # does not count
        time_round(step, float(seconds))


def timed(step, seconds):
    """The seconds of each step, in their order by size."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 9:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return sorted(times)
