#!/usr/bin/env bash
# jobs on the emulated GPU under `troupe run`: killed, a GPU that fails, one that is full
# Not hardware. Each ends with the hash of the undisturbed run, or with the cause by name.
# SEED: of the moments and processes, which is printed. STEPS: of each job.
source tests/accept/lib.sh
build=$(cd "${BUILD:-build}" && pwd)
export TROUPE_CUDA_PATH=$build/fake-cuda:$build/fake-nvrtc:- TROUPE_CUDA_CACHE=-
expect "the driver is the fake one" grep -q 'the fake driver' <("$TROUPE" doctor)
seed=${SEED:-$RANDOM}
RANDOM=$seed
figure "seed" "$seed"

one=(train mnist-mlp --device cuda --threads 1 --examples 500 --batch 20 --steps "${STEPS:-60}"
  --output json --quiet)
two=("${one[@]}" --cluster local:2 --replicas 2)
kept=(--checkpoint-every 5)

# below PID: the processes that it started, and those that they started.
below() {
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do echo "$child"; below "$child"; done
}
between() { awk -v r=$RANDOM -v a="$1" -v b="$2" 'BEGIN { print a + (b - a) * r / 32768 }'; }
hash_in() { tail -n 1 "$1" | field params_sha256; }

# undisturbed NAME COMMAND...: sets `whole` to its hash.
undisturbed() {
  local name=$1
  shift
  timeout 600 "$@" >"$scratch/$name.whole" 2>"$scratch/$name.whole.err" ||
    tail -n 5 "$scratch/$name.whole.err"
  whole=$(hash_in "$scratch/$name.whole")
  expect "$name: undisturbed" test -n "$whole"
}
# supervised NAME FAKE OPTIONS PROGRAM...: under troupe run, on a GPU like that. Sets `code`.
supervised() {
  local name=$1 fake=$2 options=$3
  shift 3
  code=0
  TROUPE_FAKE_CUDA=$fake timeout 600 "$TROUPE" run --job "$scratch/$name" $options -- "$@" \
    >"$scratch/$name.out" 2>"$scratch/$name.err" || code=$?
}
# came_back NAME: the job ended with the hash of the whole run.
came_back() {
  figure "$1: lives" "$(grep -c started "$scratch/$1/lives.log")"
  expect "$1: ends with 0 (was $code)" same "$code" 0
  ((code == 0)) || tail -n 3 "$scratch/$1.err" | cut -c -400
  expect "$1: the same bits" same "$whole" "$(hash_in "$scratch/$1.out")"
}
said() { grep -q -- "$2" "$scratch/$1.err" "$scratch/$1.out" "$scratch/$1/lives.log"; }

# killed NAME PROGRAM...: a random process of the job is killed again and again.
killed() {
  local name=$1 supervisor pids kills=0
  shift
  supervised "$name" delay_us=50,seed=3 "" "$@" &
  supervisor=$!
  while kill -0 $supervisor 2>/dev/null; do
    sleep "$(between 0.8 1.8)"
    # The shell's child is timeout, whose child is the supervisor.
    mapfile -t pids < <(below "$supervisor" | while read -r pid; do
      [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") != *" run --job "* ]] && echo "$pid"
    done)
    ((${#pids[@]} && kills < 6)) || continue
    kill -9 "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null && kills=$((kills + 1))
  done
  code=0
  wait $supervisor || code=$?
  code=$(jq -rs 'map(select(.event == "ended")) | last | .how | ltrimstr("ended with exit code ")' \
    "$scratch/$name/lives.log")
  figure "$name: kills" "$kills"
  expect "$name: at least once killed" at_least "$kills" 1
  came_back "$name"
}

undisturbed one "$TROUPE" "${one[@]}"
killed one-killed "$TROUPE" "${one[@]}" "${kept[@]}"

# An error that stays, in the middle of a step: of the program's own GPU.
supervised failed "launch_error_at=500,once=$scratch/failed.once" "" "$TROUPE" "${one[@]}" "${kept[@]}"
came_back failed
expect "failed: a life ended with 75" said failed 'ended with exit code 75'
expect "failed: by name" said failed 'cuda:0 has failed: .*CUDA_ERROR_ILLEGAL_ADDRESS.* in one of the nodes'
# While the host waits for each kernel the node is known.
supervised found "launch_error_at=500,once=$scratch/found.once" "" \
  "$TROUPE" "${one[@]}" "${kept[@]}" --cuda-sync
came_back found
expect "found: the node by name" said found "CUDA_ERROR_ILLEGAL_ADDRESS[^;]*(in node '"

# A GPU that fails at the same place of each life: the budget ends the job, with the cause.
supervised broken launch_error_at=20 "--max-restarts 2" "$TROUPE" "${one[@]}" "${kept[@]}"
expect "broken: ends with 75 (was $code)" same "$code" 75
expect "broken: by name" said broken 'CUDA_ERROR_ILLEGAL_ADDRESS'
figure "broken: lives" "$(grep -c started "$scratch/broken/lives.log")"
expect "broken: as often as the budget says" same "$(grep -c started "$scratch/broken/lives.log")" 3

# No memory in one life: the step has no effect, and the job ends with what holds the memory. Begun again,
# it goes on.
supervised full "out_of_memory_from=2,once=$scratch/full.once" "" \
  "$TROUPE" "${one[@]}" "${kept[@]}"
figure "full: exit code" "$code"
expect "full: ends with 1 (was $code)" same "$code" 1
expect "full: by name" said full 'resource_exhausted: no memory for .* are in use.*the most is held'
supervised full "" "" "$TROUPE" "${one[@]}" "${kept[@]}"
came_back full

# With workers.
undisturbed two "$TROUPE" "${two[@]}"
killed two-killed "$TROUPE" "${two[@]}" "${kept[@]}"
supervised worker-failed "launch_error_at=400,once=$scratch/worker.once" "" \
  "$TROUPE" "${two[@]}" "${kept[@]}"
came_back worker-failed
expect "worker-failed: by name" said worker-failed 'worker [01] .* is lost: .*CUDA_ERROR_ILLEGAL_ADDRESS'
supervised worker-ended "launch_error_at=400,once=$scratch/ended.once" "" \
  "$TROUPE" "${two[@]}" "${kept[@]}" --no-recovery
came_back worker-ended
expect "worker-ended: a life ended with 75" said worker-ended 'ended with exit code 75'
expect "worker-ended: a second life" at_least "$(grep -c started "$scratch/worker-ended/lives.log")" 2
expect "what decides" cases apps 'a GPU that fails in a step*,a GPU without memory names*,the host waits*'
figure "seconds" "$SECONDS"
conclude
