#!/usr/bin/env bash
# demo: mnist-conv on drawn digits, 2 replicas on 2 processes, within 90 s of the build
source tests/accept/lib.sh
start=$(now_ms)
code=0
"$TROUPE" demo | tee "$scratch/demo" || code=$?
seconds=$((($(now_ms) - start) / 1000))
figure "demo, seconds" "$seconds"
expect "the demo succeeds" same "$code" 0
expect "within 90 s" at_most "$seconds" 90
code=0
./dev test >"$scratch/test" || code=$?
tail -n 5 "$scratch/test"
seconds=$(test_seconds "$scratch/test")
figure "fast tests, seconds" "$seconds"
expect "fast tests within 60 s" at_most "$seconds" 60
expect "fast tests pass" same "$code" 0
conclude
