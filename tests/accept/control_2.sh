#!/usr/bin/env bash
# random programs, dozens and 10,000, and mistakes in the runtime: each is found (tests/planted/)
# PLANTED: only those mistakes, by name. QUICK=1: without the 10,000 programs.
source tests/accept/lib.sh
planted=${PLANTED:-$(basename -as .patch tests/planted/*.patch)}
random='random programs do what an obvious interpreter does'

expect "dozens of random programs" cases actors "$random"
[[ -n ${QUICK:-} ]] || expect "10,000 random programs" cases actors "10?000 $random*"
expect "a copy of the tree is configured" or_show make_copy \
  '/(protocol/.*|random_control_test)[.]cpp' -DTROUPE_UNITY=OFF
# shellcheck disable=SC2086
each_found tests/planted $planted
conclude
