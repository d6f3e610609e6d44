#!/usr/bin/env bash
# hostile inputs and mutated frames under the address and undefined-behaviour sanitizers
source tests/accept/lib.sh
BUILD=build/asan
./dev asan >"$scratch/log" 2>&1 || { tail -n 40 "$scratch/log"; expect "asan build and tests" false; }
expect "mutated streams" cases net "*mutated*"
expect "hostile inputs, serialization" cases serialization "*hostile*"
expect "hostile frames against a listening worker" cases actors "*hostile*"
conclude
