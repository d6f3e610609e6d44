#!/usr/bin/env bash
# troupe train --trace: a trace of all processes that keeps Perfetto's rules, on one clock, for <= 5 %
# ROUNDS: of the measurement, which is for a machine that does nothing else.
source tests/accept/lib.sh
train() { "$TROUPE" train mnist-conv --quiet --output json --examples 6400 "$@"; }
check() { python3 tests/accept/check_trace.py "$@"; }
# reject WHAT JQ: the checker says no to the trace after that change.
reject() {
  jq -c "$2" "$scratch/two.json" >"$scratch/broken.json"
  expect "the checker refuses $1" bash -c "! python3 tests/accept/check_trace.py --workers 2 \
    '$scratch/broken.json' >'$scratch/said' 2>&1"
}

train --steps 20 --cluster local:2 --replicas 2 --trace "$scratch/two.json" >"$scratch/two.result"
expect "two workers: the trace is right" check --workers 2 "$scratch/two.json"
expect "10 steps are in it" same "$(field traced_steps <"$scratch/two.result")" 10
expect "each step is a run of the master" same 10 \
  "$(jq '[.traceEvents[] | select(.cat == "run" and .name == "run")] | length' "$scratch/two.json")"
train --steps 20 --trace "$scratch/one.json" >"$scratch/one.result"
expect "one process: the trace is right" check "$scratch/one.json"
expect "a trace changes no bit" same "$(field params_sha256 <"$scratch/two.result")" \
  "$(train --steps 20 --cluster local:2 --replicas 2 | field params_sha256)"

reject "a flow without its end" '.traceEvents |= map(select(.ph != "f"))'
reject "a flow that goes back" '(.traceEvents[] | select(.ph == "s") | .ts) += 1000000'
reject "a negative time" '(.traceEvents[] | select(.ph == "X") | .ts) -= 1000000'
reject "spans that overlap" '(.traceEvents[] | select(.cat == "burst") | .dur) += 5000'
reject "a clock that is off" '.otherData.workers[0].clock_offset_us = 300'
reject "a worker that told half" '.otherData.workers[1].complete = false'
reject "a trace without tensors" '.traceEvents |= map(select(.name != "tensor"))'
reject "threads without a name" '.traceEvents |= map(select(.name != "thread_name"))'

code=0
train --steps 4 --trace "$scratch/no/such/folder" >"$scratch/refused" 2>&1 || code=$?
expect "a file that cannot be written is refused at once" same "$code" 1
expect "by its name" grep -q "$scratch/no/such/folder" "$scratch/refused"
train --steps 5 --trace "$scratch/short.json" --trace-steps 50 >"$scratch/short.result"
expect "a run that is shorter is in the trace as a whole" \
  same "$(field traced_steps <"$scratch/short.result")" 5
expect "whose trace is right" check "$scratch/short.json"
train --steps 8 --trace /dev/full >"$scratch/full.result" 2>"$scratch/full.said"
expect "a full disk costs the trace, not the result" grep -q trace_error "$scratch/full.result"

code=0
"$TROUPE" train mnist-conv --quiet --no-recovery --examples 6400 --steps 100000 --cluster local:2 --replicas 2 \
  --trace "$scratch/killed.json" --trace-steps 100000 >/dev/null 2>&1 &
job=$!
until [[ $(pgrep -c -P $job) -ge 2 && -e $scratch/killed.json ]]; do sleep 0.1; done
sleep 3
kill -9 "$(pgrep -P $job | head -n 1)"
wait $job || code=$?
expect "a worker that is killed is lost as ever" same "$code" 75
expect "and the trace holds what the others did" check --rules-only "$scratch/killed.json"

steps=${STEPS:-100}
for ((round = 1; round <= ${ROUNDS:-5}; ++round)); do
  for side in off on; do
    traced=()
    [[ $side == on ]] && traced=(--trace "$scratch/cost.json" --trace-steps "$steps")
    train --steps "$steps" --cluster local:2 --replicas 2 "${traced[@]}" |
      field steps_per_second >>"$scratch/cost.$side"
  done
done
median() { sort -g "$1" | awk '{ r[NR] = $1 } END { print r[int((NR + 1) / 2)] }'; }
off=$(median "$scratch/cost.off") on=$(median "$scratch/cost.on")
figure "steps/s without and with a trace, medians" "$off $on"
expect "a trace of every step costs at most 5 %" at_least "$on" "$(awk -v o="$off" 'BEGIN { print o * 0.95 }')"
expect "which is right, too" check --workers 2 "$scratch/cost.json"
conclude
