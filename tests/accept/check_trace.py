#!/usr/bin/env python3
"""check_trace.py FILE [--workers N] [--rules-only]

Checks a trace of `troupe train --trace` against the rules by which Perfetto reads it, and against
what a trace of training on N local worker processes has to show. Prints figures; each rule that is
broken is a line on stderr, and the exit code 1.
"""
import argparse
import json
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from decimal import Decimal

MOST_OFFSET_US = 200
problems = []


def expect(condition, text):
    if not condition:
        problems.append(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_float=Decimal, parse_int=Decimal)


def check_slices(events):
    """The slices of each thread, in order. They nest or are disjoint."""
    threads = defaultdict(list)
    for e in events:
        if e["ph"] != "X":
            continue
        expect(e["ts"] >= 0 and e["dur"] >= 0, f"negative time: {e}")
        threads[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"], e))
    for thread, slices in threads.items():
        slices.sort(key=lambda s: (s[0], -s[1]))
        open_ends = []
        for begin, end, e in slices:
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            expect(not open_ends or end <= open_ends[-1], f"overlap on thread {thread}: {e}")
            open_ends.append(end)
    return threads


def check_names(events, threads):
    processes = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for pid, tid in threads:
        expect(pid in processes, f"process {pid} has no name")
        expect((pid, tid) in named, f"thread {tid} of process {pid} has no name")
    tids = Counter(tid for _, tid in threads)
    expect(all(n == 1 for n in tids.values()), "two processes share the number of a thread")


def holder(threads, flow):
    """The innermost slice that is open where an end of a flow stands."""
    slices = threads[flow["pid"], flow["tid"]]
    for i in range(bisect_right(slices, flow["ts"], key=lambda s: s[0]) - 1, -1, -1):
        if flow["ts"] < slices[i][1]:
            return slices[i][2]
    return None


def check_flows(events, threads):
    """Pairs of slices: where each flow begins and ends."""
    ends = defaultdict(list)
    for e in events:
        if e["ph"] in "sf":
            ends[e["id"]].append(e)
    pairs = []
    for flow, both in ends.items():
        if [e["ph"] for e in sorted(both, key=lambda e: e["ph"], reverse=True)] != ["s", "f"]:
            problems.append(f"flow {flow} has not one beginning and one end")
            continue
        start, end = sorted(both, key=lambda e: e["ph"], reverse=True)
        expect(end.get("bp") == "e", f"flow {flow} does not end at its slice")
        expect(start["ts"] <= end["ts"], f"flow {flow} goes back in time")
        expect((start["name"], start["cat"]) == (end["name"], end["cat"]),
               f"flow {flow} has two names")
        at = holder(threads, start), holder(threads, end)
        if None in at:
            problems.append(f"flow {flow} is bound to no slice")
            continue
        expect((at[0]["cat"], at[1]["cat"]) == ("send", "receive"), f"flow {flow} joins {at}")
        pairs.append(at)
    return pairs


def check_content(events, pairs, about, workers):
    kinds = Counter((e["pid"], e["cat"]) for e in events if e["ph"] == "X")
    pids = {pid for pid, _ in kinds}
    expect(len(pids) == workers + 1, f"{len(pids)} processes, not {workers + 1}")
    for worker in about["workers"]:
        pid = worker["pid"]
        expect(worker["complete"], f"process {pid} did not tell all")
        for kind in ("node", "burst", "wait", "receive"):
            expect(kinds[pid, kind] > 0, f"process {pid} has no {kind}")
        offset, error = worker["clock_offset_us"], worker["clock_error_us"]
        if offset is None:
            problems.append(f"the clock of process {pid} is not known")
            continue
        print(f"clock of process {pid}: offset {offset} us, error {error} us")
        # On one machine all read the same clock.
        expect(abs(offset) <= MOST_OFFSET_US, f"the clock of process {pid} is {offset} us off")
        expect(abs(offset) <= error, f"process {pid}: offset {offset} us, but error {error} us")
    expect(len(about["workers"]) == workers, "a worker is missing in otherData")
    if workers > 1:
        transfers = sum(1 for a, b in pairs if a["name"] == b["name"] == "tensor")
        print(f"tensors between processes: {transfers}")
        expect(transfers > 0, "no tensor crosses between processes")
    if workers > 0:
        print(f"messages between processes: {len(pairs)}")
        expect(len(pairs) > 0, "no message crosses between processes")
    expect(any(e["ph"] == "X" and e["cat"] == "wait" for e in events), "nobody waits")
    expect(any(e["ph"] == "X" and e["cat"] == "run" for e in events), "no run is shown")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--workers", type=int, default=0, help="worker processes of the job")
    parser.add_argument("--rules-only", action="store_true", help="not what it has to show")
    args = parser.parse_args()
    document = read(args.file)
    events, about = document["traceEvents"], document["otherData"]
    threads = check_slices(events)
    check_names(events, threads)
    pairs = check_flows(events, threads)
    if not args.rules_only:
        check_content(events, pairs, about, args.workers)
    print(f"spans: {sum(len(s) for s in threads.values())}, dropped {about['dropped_spans']}, "
          f"left out {about['left_out_spans']}, moved receives {about['moved_receives']}")
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
