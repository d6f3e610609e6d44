#!/usr/bin/env bash
# mnist-conv on MNIST, 3 epochs: test accuracy at least 0.985
source tests/accept/lib.sh
data=$(mnist)
"$TROUPE" train mnist-conv --data "$data" --epochs 3 --output json >"$scratch/out"
for name in steps steps_per_second loss test_accuracy params_sha256; do
  value=$(field $name <"$scratch/out")
  figure $name "$value"
  expect "the result has $name" test -n "$value"
done
expect "test_accuracy >= 0.985" at_least "$(field test_accuracy <"$scratch/out")" 0.985
conclude
