#!/usr/bin/env bash
# benchmarks against their limits
source tests/accept/lib.sh
"$TROUPE" bench --peer torch --output json >"$scratch/rows"
# Rows as an array or one object per line.
jq -s 'flatten' "$scratch/rows" >"$scratch/all"
# limit NAME value|ratio at_most|at_least NUMBER
limit() {
  local got
  got=$(jq -r --arg n "$1" --arg f "$2" 'map(select(.name == $n)) | .[0][$f] // empty' "$scratch/all")
  expect "$1 $2 ${3//_/ } $4 (is ${got:-missing})" "$3" "$got" "$4"
}
for graph in 16x1024 32x8192 1024x16 8192x32; do
  limit executor.noop.$graph value at_most 30
  limit executor.identity.$graph value at_most 50
done
limit executor.noop.1024x1024 value at_most 100
limit executor.identity.1024x1024 value at_most 150
limit executor.identity.chain value at_most 50
limit step.local.p50 value at_most 40
limit step.two_process.p50 value at_most 120
for size in 64KiB 1MiB 16MiB; do limit channel.tcp.$size ratio at_least 0.7; done
limit channel.tcp.256MiB ratio at_least 0.8
limit channel.tls.1MiB ratio at_least 0.35
limit channel.control_p99_under_load value at_most 5
limit channel.64_peers.fairness value at_least 0.8
for model in mlp lenet; do
  for threads in t1 t2; do limit train.$model.$threads ratio at_most 1.0; done
done
limit train.lenet.peak_bytes ratio at_most 1.1
conclude
