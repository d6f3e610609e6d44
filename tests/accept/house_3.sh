#!/usr/bin/env bash
# a project outside of the tree: own headers of the same names, an op, a pass, a device; headers <= 2 s
source tests/accept/lib.sh
code=0
bash tests/outside_test.sh build >"$scratch/outside" 2>&1 || code=$?
sed 's/^/  | /' "$scratch/outside" | tail -n 25
expect "it builds, trains and runs what it added" same "$code" 0
seconds=$(sed -n 's/^umbrella header: \([0-9.]*\) s$/\1/p' "$scratch/outside")
expect "the umbrella header takes at most 2 s (is ${seconds:-missing})" at_most "$seconds" 2
expect "a queue kind of its own" grep -q '^queue kind ran$' "$scratch/outside"
conclude
