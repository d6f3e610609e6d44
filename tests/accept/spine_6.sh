#!/usr/bin/env bash
# benchmarks against their limits; meant for a machine that does nothing else
source tests/accept/lib.sh
# ONLY: only those groups of benchmarks. ROUNDS: medians of so many.
groups=${ONLY:-executor step channel train}
"$TROUPE" --version | sed 's/^/  /'
has_group() { [[ " $groups " == *" $1 "* ]]; }
# rows GROUP... [OPTION...]: of the benchmarks.
rows() {
  local peer=()
  [[ " $* " != *" train "* ]] || peer=(--peer torch)
  "$TROUPE" bench "$@" --rounds "${ROUNDS:-5}" "${peer[@]}" --output json
}
# shellcheck disable=SC2086
rows $groups >"$scratch/rows"

# of NAME FIELD
of() { jq -r --arg n "$1" --arg f "$2" 'map(select(.name == $n)) | .[0][$f] // empty' "$scratch/rows"; }
# again NAME: measures this row anew. A machine has slow minutes, and a row is looked at for one.
again() {
  rows "${1%%.*}" --only "$1" --quiet >"$scratch/anew"
  jq -s --arg n "$1" '(.[1] | map(select(.name == $n))) as $anew
    | (.[0] | map(select(.name != $n))) + $anew' "$scratch/rows" "$scratch/anew" >"$scratch/both"
  mv "$scratch/both" "$scratch/rows"
}
# limit NAME value|ratio at_most|at_least NUMBER: of three measurements one keeps to it.
limit() {
  local got seen=() times
  for times in 1 2 3; do
    ((times == 1)) || again "$1"
    got=$(of "$1" "$2")
    seen+=("${got:-missing}")
    if "$3" "$got" "$4"; then break; fi
  done
  expect "$1 $2 ${3//_/ } $4 (is ${seen[*]})" "$3" "$got" "$4"
}

if has_group executor; then
  for graph in 16x1024 32x8192 1024x16 8192x32 chain; do
    limit executor.noop.$graph value at_most 30
    limit executor.identity.$graph value at_most 50
  done
  limit executor.noop.1024x1024 value at_most 100
  limit executor.identity.1024x1024 value at_most 150
fi
if has_group step; then
  limit step.local.p50 value at_most 40
  limit step.two_process.p50 value at_most 120
  for family in step.local step.two_process; do
    for name in p99 cold_p50 messages; do
      figure "$family.$name" "$(of $family.$name value) $(of $family.$name unit)"
      expect "$family.$name is measured" test -n "$(of $family.$name value)"
    done
  done
fi
if has_group channel; then
  figure "channel.tcp.4KiB ratio" "$(of channel.tcp.4KiB ratio)"
  for size in 64KiB 1MiB 16MiB; do limit channel.tcp.$size ratio at_least 0.7; done
  limit channel.tcp.256MiB ratio at_least 0.8
  for size in 1MiB 16MiB 256MiB; do limit channel.tls.$size ratio at_least 0.35; done
  limit channel.control_p99_under_load value at_most 5
  limit channel.64_peers.fairness value at_least 0.8
fi
if has_group train; then
  for model in mlp lenet resnet20 char_lstm; do
    for threads in t1 t2; do
      figure "train.$model.$threads" "$(of train.$model.$threads value) ms, \
$(of train.$model.$threads peer) $(of train.$model.$threads peer_value) ms"
      most=1.0
      [[ $model == mlp || $model == lenet ]] || most=1.1
      limit train.$model.$threads ratio at_most $most
    done
    expect "train.$model: one params_sha256 on 1 and 2 threads" \
      same "$(of train.$model.t1 params_sha256)" "$(of train.$model.t2 params_sha256)"
  done
  peak=train.lenet.peak_bytes
  limit $peak ratio at_most 1.1
  # The value is the most that any later step took.
  expect "no step takes more than step 4 ($(of $peak value))" \
    at_most "$(of $peak value)" "$(of $peak step_4)"
  expect "no more is held before the last step than before step 4" \
    at_most "$(of $peak held_before_last_step)" "$(of $peak held_before_step_4)"
fi
conclude
