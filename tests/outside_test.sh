#!/usr/bin/env bash
# outside_test.sh BUILD: installs it and builds tests/outside/ against the installed package: headers
# of the same names in front of the include path, and an op, a pass, a device and a kind of queue of
# its own.
. "$(dirname "$0")/installed.sh"
build_program tests/outside
outside=program/build/outside
"$outside" --threads 2 | tee alone
grep -q '^core/status of the program; graph/graph of the program; ops/op of the program$' alone
grep -q '^passes ran$' alone
grep -q '^saved stack 3$' alone
grep -q '^stack 3 2 then 1$' alone
grep -q '^stack: .*the stack is empty' alone
"$outside" --threads 2 --npu | tee npu
grep -q 'device:NPU:0' npu
"$outside" --threads 1 --replicas 2 | grep '^loss' >one
"$outside" --threads 1 --replicas 2 --cluster local:2 | tee two
cmp one <(grep '^loss' two)  # the same bits on two processes
grep -q '^passes ran$' two    # in the master, too
grep -q '^stack 3 2 then 1$' two
# What every program pays for the umbrella header, in seconds of the compiler.
echo '#include <troupe/troupe.hpp>' >umbrella.cpp
TIMEFORMAT=%U
seconds=$( { time "${CXX:-g++}" -std=c++20 -I"$scratch/prefix/include" -fsyntax-only umbrella.cpp; } 2>&1 )
echo "umbrella header: $seconds s"
