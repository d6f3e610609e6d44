#!/usr/bin/env bash
# checkpoints cost at most 3.5 %, pass no process that does not need them, and are whole whenever one is resumed
# SECONDS_EACH: of each run whose speed is measured. KILLS: while checkpoints are written. MIB: of the large state.
source tests/accept/lib.sh
seed=${SEED:-$RANDOM}
RANDOM=$seed
figure "seed" "$seed"
program=${BUILD:-build}/bin/state
state() { timeout 600 "$program" checkpoints "$@" 2>"$scratch/err" || { cat "$scratch/err" >&2; return 1; }; }
value() { sed -n "s/^$1 //p" "$scratch/$2"; }
newest() { ls "$1" | grep '^ckpt-' | sort -V | tail -n 1; }
tensors() { jq -r .tensors_sha256 "$1/$(newest "$1")/manifest.json"; }

# Crashes at each call of the file system, full disks at each call, each changed bit: in memory.
for test in "a crash at any call*" "a full disk at any call*" "hostile changes of one bit*" \
  "hostile truncations*" "shards of several writers*" "a folder that is not that of the draft*"; do
  cases serialization "$test" >"$scratch/cases" || { cat "$scratch/cases"; expect "$test" false; }
done
for test in "a full disk at any call of a shard*" "each process writes the variables*"; do
  cases actors "$test" >"$scratch/cases" || { cat "$scratch/cases"; expect "$test" false; }
done

# What one every 10 s costs, with 16 MiB of variables: runs with and without, in turns.
state 16 200 --threads 1 >"$scratch/first"
steps=$(awk -v ms="$(value ms_per_step first)" -v s="${SECONDS_EACH:-24}" 'BEGIN { printf "%d", 1000 * s / ms }')
for round in 1 2 3; do
  state 16 "$steps" --threads 1 >"$scratch/without.$round"
  state 16 "$steps" --threads 1 --job-dir "$scratch/cost.$round" --checkpoint-every 10s >"$scratch/with.$round"
done
median() { for round in 1 2 3; do value ms_per_step "$1.$round"; done | sort -g | sed -n 2p; }
ratio=$(awk -v a="$(median with)" -v b="$(median without)" 'BEGIN { printf "%.4f", a / b }')
figure "ms of a step with and without checkpoints, ratio" "$(median with), $(median without), $ratio"
expect "one every 10 s costs at most 3.5 %" at_most "$ratio" 1.035

# A large state on two workers: the program's process holds none of it.
mib=${MIB:-1024}
state "$mib" 12 --cluster local:2 --replicas 2 --threads 1 --job-dir "$scratch/large" --checkpoint-every 4 \
  >"$scratch/large.out"
grown=$((($(value peak large.out) - $(value before large.out)) >> 20))
figure "$mib MiB on two workers: the program's memory grows by, MiB" "$grown"
expect "the program's memory grows by at most 64 MiB" at_most "$grown" 64
expect "each worker writes half" same "$(jq '[.files[] | select(.tensors) | .size] | length' \
  "$scratch/large/$(newest "$scratch/large")/manifest.json")" 2
state "$mib" 16 --cluster local:2 --replicas 2 --threads 1 --job-dir "$scratch/large" >"$scratch/again.out"
grown=$((($(value peak again.out) - $(value before again.out)) >> 20))
figure "resumed after step, memory grows by, MiB" "$(value resumed again.out), $grown"
expect "resumed: the program's memory grows by at most 64 MiB" at_most "$grown" 64

# The same, of whose workers one is killed while the other still lives; and on one process.
# lose_worker NAME NUMBER READY ARGS...: a program on two workers, of which that one is killed once READY
# holds; `code` is how the program ends, `grown` by how many MiB its memory grows.
lose_worker() {
  local name=$1 number=$2 ready=$3 job victim
  shift 3
  "$program" checkpoints "$@" --cluster local:2 --replicas 2 --threads 1 \
    >"$scratch/$name.out" 2>"$scratch/$name.err" &
  job=$!
  until "$ready" || ! kill -0 $job 2>/dev/null; do sleep 0.1; done
  victim=$(cat /proc/$job/task/*/children 2>/dev/null | tr ' ' '\n' | sed -n "${number}p")
  kill -9 "$victim" 2>/dev/null || true
  code=0
  wait $job || code=$?
  grown=$((($(value peak "$name.out") - $(value before "$name.out")) >> 20))
}
written() { [[ -n $(newest "$scratch/killed" 2>/dev/null) ]]; }
lose_worker killed 1 written "$mib" 16 --job-dir "$scratch/killed" --checkpoint-every 4
figure "a worker killed: exit code, memory grows by, MiB" "$code, $grown"
expect "a worker killed: the job goes on" same "$code" 0
expect "a worker killed: it was noticed" grep -q "going on from commit" "$scratch/killed.err"
expect "a worker killed: the program's memory grows by at most 64 MiB" at_most "$grown" 64
expect "a worker killed: the same sum" same "$(value sum killed.out)" "$(value sum again.out)"
expect "a worker killed: the same bits" same "$(tensors "$scratch/killed")" "$(tensors "$scratch/large")"
rm -rf "$scratch/killed" "$scratch/large"

# A worker killed where the state is kept in the machine's memory: no disk, and nothing of it is left.
kept() { ls -d /dev/shm/troupe-"$(id -u)"-*/ckpt-* 2>/dev/null || true; }
before=$(kept | wc -l)
kept_more() { (($(kept | wc -l) > before)); }
lose_worker memory 2 kept_more 256 150 --checkpoint-memory 1s
figure "a worker killed, state in memory: exit code, the program's memory grows by, MiB" "$code, $grown"
expect "state in memory: the job goes on" same "$code" 0
expect "state in memory: the loss was noticed" grep -q "going on from commit" "$scratch/memory.err"
expect "state in memory: the program's memory grows by at most 64 MiB" at_most "$grown" 64
expect "state in memory: the sum" same "$(value sum memory.out)" "$(awk 'BEGIN { s = 0; for (i = 0; i < 16; i++) s += i + 150; print s }')"
expect "state in memory: nothing is left of it" same "$(kept | wc -l)" "$before"

# Killed at random moments of writing one after the other: each life finds a whole one.
kills=${KILLS:-30} lives=0 bad=0
for ((i = 0; i < kills; i++)); do
  "$program" checkpoints 64 1000000 --threads 1 --job-dir "$scratch/often" --checkpoint-every 1 \
    >"$scratch/often.out" 2>"$scratch/often.err" &
  job=$!
  sleep "$((RANDOM % 2)).$((4 + RANDOM % 6))$((RANDOM % 10))"
  kill -9 $job 2>/dev/null && lives=$((lives + 1))
  wait $job 2>/dev/null || true
  [[ -z $(newest "$scratch/often" 2>/dev/null) ]] || "$TROUPE" ckpt verify "$scratch/often/$(newest "$scratch/often")" \
    >"$scratch/verify" 2>&1 || { bad=$((bad + 1)); cat "$scratch/verify"; }
done
last=$(newest "$scratch/often")
state 64 "$((${last#ckpt-} + 1))" --threads 1 --job-dir "$scratch/often" >"$scratch/often.out"
figure "killed while writing: lives, last step" "$lives, ${last#ckpt-}"
expect "killed while writing: the newest is whole each time" same "$bad" 0
expect "killed while writing: the last life continues" same "$(value resumed often.out)" "${last#ckpt-}"

# A folder into which nothing can be written: training goes on, and says so; the exit code, too.
mkdir "$scratch/full"
code=0
(trap '' XFSZ; ulimit -f 16384; exec "$program" checkpoints 64 8 --threads 1 --job-dir "$scratch/full" --checkpoint-every 2) \
  >"$scratch/full.out" 2>"$scratch/full.err" || code=$?
expect "no room: training goes on to its end" same "$(value sum full.out)" "$(awk 'BEGIN { s = 0; for (i = 0; i < 8; i++) s += i + 8; print s }')"
expect "no room: it is said" grep -qE "checkpoint|resource_exhausted" "$scratch/full.err"
expect "no room: the exit code is 1 (was $code)" same "$code" 1
expect "no room: nothing half-written is left" test -z "$(ls -A "$scratch/full" | grep -v '^\.lock' || true)"

# A worker that does not share the folder, as on another machine: refused by name, unless the job gathers.
if unshare -m true 2>/dev/null; then
  head -c 32 /dev/urandom | base64 >"$scratch/secret"
  chmod 600 "$scratch/secret"
  mkdir "$scratch/apart"
  apart() {  # apart PORT OPTIONS...: trains on two workers, of which the second has another folder there
    local port=$1 code=0 trainer
    shift
    "$TROUPE" train mnist-softmax --examples 512 --steps 30 --checkpoint-every 10 --replicas 2 --quiet \
      --listen "127.0.0.1:$port" --wait-for 2 --secret-file "$scratch/secret" \
      --checkpoint-dir "$scratch/apart/ckpt" "$@" >"$scratch/apart.out" 2>"$scratch/apart.err" &
    trainer=$!
    until grep -q ":$(printf '%04X' "$port") 00000000:0000 0A" /proc/net/tcp || ! kill -0 $trainer; do sleep 0.1; done
    "$TROUPE" worker --master "127.0.0.1:$port" --secret-file "$scratch/secret" >"$scratch/apart.1" 2>&1 &
    unshare -m bash -c 'mount -t tmpfs none "$0" && exec "$@"' "$scratch/apart" \
      "$TROUPE" worker --master "127.0.0.1:$port" --secret-file "$scratch/secret" >"$scratch/apart.2" 2>&1 &
    wait $trainer || code=$?
    return $code
  }
  port=$((20000 + RANDOM % 20000))
  code=0
  apart $port || code=$?
  expect "another folder: no checkpoint, exit code 1 (was $code)" same "$code" 1
  expect "another folder: it is refused by name" \
    grep -q "apart/ckpt.*shared by all machines.*task:1" "$scratch/apart.err"
  want=$(sed -n 's/^params_sha256 //p' "$scratch/apart.out")
  code=0
  apart $((port + 1)) --gather || code=$?
  expect "another folder, gathered: exit code 0 (was $code)" same "$code" 0
  expect "another folder, gathered: the same bits" \
    same "$(sed -n 's/^params_sha256 //p' "$scratch/apart.out")" "$want"
  expect "another folder, gathered: it is whole" \
    "$TROUPE" ckpt verify "$scratch/apart/ckpt/$(newest "$scratch/apart/ckpt")"
else
  figure "another folder" "skipped: unshare -m is not allowed"
fi
conclude
