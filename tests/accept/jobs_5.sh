#!/usr/bin/env bash
# what goes on: `why-blocked` names planted endless waits, `status` what is stopped, full, cut or going in circles
source tests/accept/lib.sh
program=${BUILD:-build}/bin/waits
job=$scratch/job supervisor=

started() {  # started COMMAND...: under `troupe run`, in a new folder
  job=$scratch/job-$RANDOM
  "$TROUPE" run --job "$job" "${options[@]}" -- "$@" >"$job.out" 2>"$job.err" &
  supervisor=$!
}
options=()
stopped() { kill -TERM $supervisor 2>/dev/null || true; sleep 0.2; kill -TERM $supervisor 2>/dev/null || true; wait $supervisor 2>/dev/null || true; }
# within SECONDS COMMAND...: it comes true by then.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do ((SECONDS < until)) || return 1; sleep 0.2; done
}
blocked() { "$TROUPE" why-blocked "$job" >"$scratch/blocked" 2>&1 && grep -qE "$1" "$scratch/blocked"; }
status() { "$TROUPE" status "$job" >"$scratch/status" 2>&1 && grep -qE "$1" "$scratch/status"; }
below() {
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do echo "$child"; below "$child"; done
}
trainer() { below $supervisor | sed -n 1p; }
worker() { below $supervisor | sed -n "$((1 + $1))p"; }

planted() {  # planted MODE PATTERN ARGS...
  local mode=$1 pattern=$2
  shift 2
  started "$program" "$mode" "$@"
  expect "why-blocked: $mode" within 30 blocked "$pattern"
  grep -E "$pattern" "$scratch/blocked" | head -n 1 | cut -c -150 | sed 's/^/  | /' || cat "$scratch/blocked"
  stopped
}
line='at [^ ]*waits\.cpp:[0-9]+ on /job'
planted empty "waits [0-9.]+ s for queue 'letters', which is empty, in node '[^']+' \(Dequeue\) $line"
planted full "for queue 'letters', which is full \(capacity 1\), in node '[^']+' \(Enqueue\) $line"
planted lane "computes node '[^']+' \([A-Za-z_]+\) $line"
planted tensor "for tensor '[^']+' from /job:worker/task:1/cpu:0, which computes node '[^']+' \([A-Za-z_]+\) at [^ ]*waits\.cpp" --cluster local:2
planted dataset "for element 0 of dataset '[^']*', in node '[^']+' \([A-Za-z]+\) $line"
planted mutex "for mutex 'pen', which step [0-9]+ holds, in node '[^']+' \(MutexAcquire\) at [^ ]*waits\.cpp:[0-9]+"
planted branch "computes node '[^']+' \([A-Za-z_]+\) $line"

# A worker that is stopped, while somebody asks.
train=("$TROUPE" train mnist-softmax --steps 1000000 --threads 1 --examples 512)
started "${train[@]}" --cluster local:2 --replicas 2 --checkpoint-every 1s --no-recovery
expect "status: steps are made" within 60 status 'step [1-9][0-9]*/1000000, [1-9]'
victim=$(worker 2)
kill -STOP "$victim"
# Both are asked at once, since the worker is lost after 2 s.
within 10 blocked 'worker [01] at .*(has not said|to stage its writes)' &
asks=$!
expect "status: a stopped process by name" within 10 status "process $victim .* is stopped"
expect "why-blocked: the worker that does not answer" wait $asks
sed -n 2p "$scratch/blocked" | cut -c -150 | sed 's/^/  | /'
expect "a job that lost a worker comes back" within 30 status 'lives +[2-9]'
kill -9 "$victim" 2>/dev/null || true
stopped

# A disk that is full: no file may grow.
started "${train[@]}" --checkpoint-every 1s
expect "status: a first checkpoint" within 60 status 'checkpoint  step'
prlimit --pid "$(trainer)" --fsize=0:0
expect "status: a full disk by name" within 20 status 'problem .*checkpoint after step [0-9]+ failed'
grep -m 1 problem "$scratch/status" | cut -c -150 | sed 's/^/  | /' || true
stopped

# Faults that come faster than checkpoints, and a loop of crashes.
options=(--max-restarts 4)
started sh -c 'kill -9 $$'
code=0
wait $supervisor || code=$?
expect "a crash-loop ends with its cause within the budget (137, was $code)" same "$code" 137
expect "its cause" grep -q 'ended by signal 9 (Killed), 5 times' "$job.err"
expect "status: faults faster than checkpoints" status 'faults come faster than checkpoints'
options=()

# Ends that are nobody's fault.
began=$(now_ms) code=0
"$TROUPE" run --job "$scratch/usage" -- "$TROUPE" train mnist-softmax --stepss 3 >"$scratch/o" 2>&1 || code=$?
expect "a usage error ends at once ($(($(now_ms) - began)) ms)" same "$code" 2
expect "after one life" same "$(grep -c started "$scratch/usage/lives.log")" 1
code=0
"$TROUPE" run --job "$scratch/shape" -- "$program" shape >"$scratch/o" 2>&1 || code=$?
expect "a shape error without try ends at once (1, was $code)" same "$code" 1
expect "after one life" same "$(grep -c started "$scratch/shape/lives.log")" 1
expect "with its line" grep -q 'waits.cpp:' "$scratch/o"

# The socket is not disturbed by who has no business there.
started "$program" empty
expect "why-blocked answers" within 30 blocked 'letters'
control=$(echo "$job"/control.*)
expect "1,000 connections with nonsense" python3 - "$control" <<'PY'
import os, socket, sys
for i in range(1000):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    try:
        s.send(os.urandom(100))
    except OSError:
        pass
PY
expect "and it answers still" blocked 'letters'
expect "the socket's mode is 600" same "$(stat -c %a "$control")" 600
kill -STOP "$(trainer)"
expect "why-blocked: a program that is stopped" blocked 'it is stopped'
kill -CONT "$(trainer)"
kill -9 "$(trainer)"
expect "the next life answers" within 20 blocked 'letters'
stopped

# What monitors read.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
fetch() { python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode())' "http://127.0.0.1:$port/$1" 2>&1; }
shows() { fetch "$1" >"$scratch/page" && grep -qE "$2" "$scratch/page"; }
options=(--metrics "$port")
started "$TROUPE" train mnist-mlp --steps 1000000 --quiet
options=()
expect "readyz: at a step" within 30 shows readyz 'ready, at step'
expect "healthz" shows healthz '^ok'
expect "metrics: a life, a step and a loss" within 20 shows metrics 'troupe_job_figure\{name="loss",program="0"\} [0-9.]+'
kill -STOP "$(trainer)"
refuses() { ! shows "$@"; }
expect "readyz: not a program that is stopped" within 10 refuses readyz 'ready, at step'
expect "metrics: it is stopped" within 10 shows metrics 'troupe_job_stopped_processes 1'
kill -9 "$(trainer)"
expect "metrics: the next life" within 20 shows metrics 'troupe_job_lives_total 2'
expect "readyz: it is ready again" within 30 shows readyz 'ready, at step'
stopped
conclude
