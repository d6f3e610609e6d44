"""What the scripts share that time a step of a peer."""
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


def timed(step, seconds, first):
    """The seconds of each step, in their order by size, after `first` ones that do not count."""
    for _ in range(first):
        step()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 9:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return sorted(times)
