#!/usr/bin/env bash
# jobs that are launched and kept by their surroundings: systemd, a pod's hook, Slurm, hosts, and a network that breaks
# Needs python3; the network needs root and iproute2, and is skipped without.
source tests/accept/lib.sh
(umask 077; head -c 32 /dev/urandom >"$scratch/secret")
train=("$TROUPE" train mnist-softmax --examples 512 --threads 1 --quiet)
endless=("${train[@]}" --steps 100000000 --checkpoint-every 1s)
hash_of() { sed -n 's/^params_sha256 //p'; }
says_within() {  # FILE TEXT SECONDS
  local i
  for ((i = 0; i < $3 * 20; ++i)); do grep -q -- "$2" "$1" 2>/dev/null && return; sleep 0.05; done
  return 1
}
lives() { grep -c '"started"' "$1/lives.log" 2>/dev/null || true; }
code_of() { local code=0; "$@" >"$scratch/out" 2>"$scratch/err" || code=$?; echo "$code"; }

echo "== systemd and stop"
cat >"$scratch/manager.py" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\0" + sys.argv[1][1:] if sys.argv[1][0] == "@" else sys.argv[1])
print("bound", flush=True)
while True:
    print(s.recv(4096).decode(), flush=True)
END
for socket in "$scratch/notify" "@$scratch/notify"; do
  job=$scratch/told
  [[ $socket != @* ]] || job=$scratch/told-abstract
  python3 "$scratch/manager.py" "$socket" >"$job.told" &
  manager=$!
  says_within "$job.told" '^bound$' 30
  NOTIFY_SOCKET=$socket WATCHDOG_USEC=400000 "$TROUPE" run --job "$job" -- \
    sh -c "env >$job.env; exec $(printf '%q ' "${endless[@]}")" >/dev/null 2>&1 &
  supervisor=$!
  expect "READY=1" says_within "$job.told" '^READY=1$' 10
  expect "its status" says_within "$job.told" '^STATUS=step [1-9][0-9]*, life 1$' 10
  expect "it is alive" says_within "$job.told" '^WATCHDOG=1$' 10
  expect "the program does not inherit the socket" same "$(grep -c 'NOTIFY\|WATCHDOG' "$job.env" || true)" 0
  expect "stop ends it" same "$(code_of "$TROUPE" stop "$job" --timeout 30)" 0
  code=0
  wait "$supervisor" || code=$?
  expect "its code is that of SIGTERM" same "$code" 143
  expect "STOPPING=1" says_within "$job.told" '^STOPPING=1$' 10
  expect "a checkpoint is left" test -n "$(ls "$job/checkpoints")"
  expect "stop of a job that is over" same "$(code_of "$TROUPE" stop "$job")" 1
  kill "$manager" || true
done
"$TROUPE" run --job "$scratch/slow" -- sh -c 'trap "" TERM; touch '"$scratch/slow.there"'; sleep 3' &
slow=$!
until [[ -e $scratch/slow.there ]]; do sleep 0.05; done
expect "stop that waits for too short a time" \
  same "$(code_of "$TROUPE" stop "$scratch/slow" --timeout 0.5)" 75
wait "$slow" || true

echo "== Slurm's environment"
whole=$("${train[@]}" --steps 300 --replicas 2 | hash_of)
slurm() { SLURM_PROCID=$1 SLURM_NTASKS=3 SLURM_JOB_ID=$$ SLURM_STEP_NODELIST=localhost \
  TROUPE_SECRET_FILE=$scratch/secret "${train[@]}" --steps 300 --replicas 2 --cluster slurm; }
slurm 1 >"$scratch/s1" 2>&1 & one=$!
slurm 2 >"$scratch/s2" 2>&1 & two=$!
expect "rank 0 ends with the bits of one process" same "$(slurm 0 2>/dev/null | hash_of)" "$whole"
expect "rank 1 ends with 0" wait "$one"
expect "rank 2 ends with 0" wait "$two"

echo "== workers that the supervisor keeps"
kept() {  # NAME OPTION...: kills a worker, and then the program
  local job=$scratch/$1 supervisor i victim
  shift
  "$TROUPE" run --job "$job" "$@" -- "${train[@]}" --steps 4000 --replicas 2 \
    --checkpoint-every 20 >"$job.out" 2>"$job.err" &
  supervisor=$!
  for i in 1 2; do
    until [[ $(lives "$job") -ge 1 && $(find "$job/checkpoints" -name 'ckpt-*' 2>/dev/null) ]] &&
      { ((i == 1)) || grep -q 'going on from commit' "$job.err"; }; do
      kill -0 "$supervisor" 2>/dev/null || break
      sleep 0.05
    done
    sleep 0.3
    if ((i == 1)); then victim=$(sed -n 's/.*"worker started".*"pid":\([0-9]*\).*/\1/p' "$job/lives.log" | head -n 1)
    else victim=$(sed -n 's/.*"event":"started".*"pid":\([0-9]*\).*/\1/p' "$job/lives.log" | tail -n 1); fi
    kill -9 "$victim" 2>/dev/null || true
  done
  local code=0
  wait "$supervisor" || code=$?
  expect "the lost worker costs no life" same "$(lives "$job")" 2
  expect "it ends with 0 (was $code)" same "$code" 0
  expect "the bits of one process" same "$(hash_of <"$job.out")" "$long"
  ((code == 0)) || tail -n 5 "$job.err"
}
long=$("${train[@]}" --steps 4000 --replicas 2 | hash_of)
kept local --workers 2
printf 'host[1-2]  # a list\n\n' >"$scratch/hosts"
printf '#!/bin/sh\nshift 2\nexec "%s" "$@"\n' "$TROUPE" >"$scratch/ssh"  # HOST troupe worker ...
chmod +x "$scratch/ssh"
kept remote --hosts "$scratch/hosts" --ssh "$scratch/ssh" --listen 127.0.0.1:$((20000 + $$ % 10000))
printf '%s\n' '-oProxyCommand' >"$scratch/bad"
expect "a host that is an option is refused" \
  same "$(code_of "$TROUPE" run --job "$scratch/b" --hosts "$scratch/bad" --listen 127.0.0.1:7 -- true)" 2

echo "== four network namespaces"
name=troupe$$
if ip netns add "$name-m" 2>/dev/null; then
  clean() { local n; for n in m a b c; do ip netns del "$name-$n" 2>/dev/null || true; done; rm -rf "$scratch"; }
  trap clean EXIT
  ip netns exec "$name-m" ip link add bridge type bridge
  ip netns exec "$name-m" ip addr add 10.77.0.1/24 dev bridge
  ip netns exec "$name-m" ip link set bridge up
  ip netns exec "$name-m" ip link set lo up
  at=2
  for n in a b c; do
    ip netns add "$name-$n"
    ip link add "up$n" netns "$name-m" type veth peer name eth netns "$name-$n"
    ip netns exec "$name-m" ip link set "up$n" master bridge up
    ip netns exec "$name-$n" ip addr add 10.77.0.$((at++))/24 dev eth
    ip netns exec "$name-$n" ip link set eth up
    ip netns exec "$name-$n" ip link set lo up
  done
  job=$scratch/net
  ip netns exec "$name-m" "$TROUPE" run --job "$job" -- "${endless[@]}" --replicas 2 \
    --listen 10.77.0.1:7077 --wait-for 2 --spares 1 --secret-file "$scratch/secret" >/dev/null 2>"$job.err" &
  supervisor=$!
  worker() {
    ip netns exec "$name-$1" "$TROUPE" worker --master 10.77.0.1:7077 \
      --secret-file "$scratch/secret" --orphan-timeout 30 >"$scratch/worker-$1" 2>&1 &
  }
  for n in a b; do worker $n; done
  step() { "$TROUPE" status "$job" --output json 2>/dev/null | jq -r '.step // 0'; }
  gets_on() { local from i; from=$(step); for i in $(seq 40); do (($(step) > from)) && return; done; return 1; }
  until [[ -n $(ls "$job/checkpoints" 2>/dev/null) ]]; do sleep 0.1; done
  ip netns exec "$name-b" ip link set eth down
  sleep 1
  ip netns exec "$name-b" ip link set eth up
  expect "a link that is down for 1 s: the job gets on" gets_on
  expect "in the same life" same "$(lives "$job")" 1
  worker c  # the spare
  spare=$!
  connected() {  # of 10.77.0.4
    local i
    for ((i = 0; i < 300; ++i)); do
      ip netns exec "$name-m" grep -q ' 04004D0A:[0-9A-F]* 01 ' /proc/net/tcp && return
      sleep 0.05
    done
    return 1
  }
  expect "the spare is there" connected
  ip netns exec "$name-b" ip link set eth down
  expect "down for good: the program goes back" says_within "$job.err" 'going on from commit' 15
  expect "and gets on with the spare" gets_on
  expect "in the same life" same "$(lives "$job")" 1
  expect "the worker waits for a master" says_within "$scratch/worker-b" 'waiting at most 30 s' 15
  expect "the job ends in order" same "$(code_of "$TROUPE" stop "$job" --timeout 30)" 0
  wait "$supervisor" || true
  code=0
  wait "$spare" || code=$?
  expect "the spare is told to leave" same "$code" 0
  cat "$job.err"
else
  figure "network namespaces" "skipped: they need root and iproute2"
fi
conclude
