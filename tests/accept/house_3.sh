#!/usr/bin/env bash
# a project outside of the tree: own headers of the same names, an op, a pass, a device, a kind of queue
source tests/accept/lib.sh
code=0
bash tests/outside_test.sh build >"$scratch/outside" 2>&1 || code=$?
sed 's/^/  | /' "$scratch/outside" | tail -n 25
expect "it builds, trains and runs what it added" same "$code" 0
seconds=$(sed -n 's/^umbrella header: \([0-9.]*\) s$/\1/p' "$scratch/outside")
expect "the umbrella header takes at most 2 s (is ${seconds:-missing})" at_most "$seconds" 2
expect "a kind of queue of its own" grep -q '^stack 3 2 then 1$' "$scratch/outside"
conclude
