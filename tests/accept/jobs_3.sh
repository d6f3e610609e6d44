#!/usr/bin/env bash
# `troupe chaos`: mnist-conv on 4 workers goes on through each fault with the parameters of an undisturbed run
# TRIALS: of each fault. FAULTS: those that are not to be all. SEED: of the moments and processes.
# SUBJECT: tests/programs/subject.cpp, built. PYTHON: one with torch, ray or tensorflow, which are then tried
# beside it, PEER_TRIALS times each.
source tests/accept/lib.sh
seed=${SEED:-$RANDOM} trials=${TRIALS:-30}
figure "seed" "$seed"
code=0
"$TROUPE" chaos --seed "$seed" --trials "$trials" ${FAULTS:+--faults "$FAULTS"} --output json \
  --folder "$scratch/jobs" -- "$TROUPE" train mnist-conv --cluster local:4 --replicas 4 --threads 1 \
  --examples 2048 --steps "${STEPS:-60}" --checkpoint-every 5 >"$scratch/rows" 2>"$scratch/errors" || code=$?
((code == 0)) || tail -n 5 "$scratch/errors"
# A NaN is the program's own, so a program of the tests makes it; its mistakes are found.
: "${SUBJECT:=$PWD/build/bin/subject}"
subject() {  # subject FAULT KIND
  "$TROUPE" chaos --seed "$seed" --trials "$trials" --faults "$1" --folder "$scratch/$1-$2" -- \
    "$SUBJECT" "$2" --checkpoint-every 400 --quiet >"$scratch/subject" 2>&1
}
finds() {  # finds FAULT KIND
  ! subject "$@" && grep -q 'BAD the result is another one' "$scratch/subject"
}
jq -r '.[] | "\(.fault): \(.trials) trials, \(.went_on) went on, \(.hash_equal) equal, next step after " +
  "\(.next_step_ms_p50 | round) ms (p99 \(.next_step_ms_p99 | round)), \(.steps_done_twice_p50) steps twice, " +
  "\(.restarts) restarts \(.trouble)"' "$scratch/rows"
expect "each fault goes on with the same bits; crash-loop ends, and oom may, with the cause" same "$code" 0
if [[ -z ${FAULTS:-} ]]; then
  expect "a NaN that is dropped and done again leaves the same bits" subject nan right
  for mistake in forgets-position older-state step-twice ends-early; do
    expect "kill-master finds '$mistake'" finds kill-master "$mistake"
  done
  expect "nan finds 'loses-step'" finds nan loses-step
fi
row() { jq -r ".[] | select(.fault == \"$1\") | .$2" "$scratch/rows"; }
limit() {  # limit FAULT MILLISECONDS: the median, where the fault is among those that were chosen
  local ms
  ms=$(row "$1" next_step_ms_p50)
  [[ -z $ms ]] || expect "$1: next step after $2 ms (median)" at_most "${ms%.*}" "$2"
}
limit kill-worker 700
limit kill-master 2000
limit stop 3000
limit cut 3000
limit half-open 3000

# Others under the same fault. Who asks for less than the same bits may be sooner.
python=${PYTHON:-python3}
beside() {  # beside SYSTEM MODULE
  local ours theirs
  if ! "$python" -c "import $2" 2>/dev/null; then
    figure "beside $1" "skipped: $python cannot import $2"
    return
  fi
  if ! "$python" tests/accept/recovery_peers.py "$1" --seed "$seed" --trials "${PEER_TRIALS:-5}" \
    >"$scratch/$1" 2>"$scratch/errors"; then
    tail -n 20 "$scratch/errors"
    expect "$1 can be tried" false
    return
  fi
  jq -r '"\(.system), \(.fault): \(.trials) trials, \(.went_on) went on, \(.hash_equal) equal " +
    "(undisturbed: \(.same_undisturbed)), next step after \(.next_step_ms_p50) ms (p99 " +
    "\(.next_step_ms_p99)), \(.steps_done_twice_p50) steps twice, \(.survivors_p50) workers lived on"' "$scratch/$1"
  theirs=$(jq -r 'select(.fault == "kill-worker" and .hash_equal == .trials) | .next_step_ms_p50' "$scratch/$1")
  ours=$(row kill-worker next_step_ms_p50)
  [[ -z $theirs || -z $ours ]] ||
    expect "kill-worker: the next step is no later than that of $1" at_most "$ours" "$theirs"
}
beside torchrun torch.distributed.run
beside ray ray
beside tensorflow tensorflow
conclude
