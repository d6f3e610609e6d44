#!/usr/bin/env bash
# a residual network beats softmax regression on drawn images; one hash over threads and processes
source tests/accept/lib.sh
accuracy() { "$TROUPE" train "$1" --steps "$2" --threads 2 --output json | field test_accuracy; }
residual=$(accuracy cifar-resnet20 900)
softmax=$(accuracy cifar-softmax 900)
figure "cifar-resnet20, held out" "$residual"
figure "cifar-softmax, held out" "$softmax"
expect "resnet20 >= 0.85" at_least "$residual" 0.85
expect "softmax <= 0.45" at_most "$softmax" 0.45

hash_of() {
  "$TROUPE" train cifar-resnet20 --replicas 2 --steps "${STEPS:-10}" --seed 7 --output json --quiet \
    "$@" | field params_sha256
}
want=$(hash_of --threads 1)
figure "params_sha256" "$want"
for layout in "--threads 2" "--threads 3" "--cluster local:2"; do
  # shellcheck disable=SC2086
  expect "the same with $layout" same "$(hash_of $layout)" "$want"
done
conclude
