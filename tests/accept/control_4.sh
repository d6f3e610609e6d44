#!/usr/bin/env bash
# loops: nanoseconds of an iteration and of a node; flat memory; an endless one gives way and ends
source tests/accept/lib.sh
"$TROUPE" --version | sed 's/^/  /'
# Medians, of which the least of three calls counts: what else a machine does only slows a row down.
for call in 1 2 3; do
  "$TROUPE" bench executor --rounds "${ROUNDS:-5}" --quiet --output json >"$scratch/rows.$call"
done
of() {
  jq -s -r --arg n "executor.$1" 'add | map(select(.name == $n) | .value) | min // empty' \
    "$scratch"/rows.*
}
# limit ROW NUMBER
limit() { expect "executor.$1 at most $2 (is $(of "$1" | cut -c1-6))" at_most "$(of "$1")" "$2"; }

limit loop.count 100
beyond=$(awk -v n="$(of loop.body64)" -v k="$(of identity.chain)" 'BEGIN { print n - k }')
expect "a node of loop.body64 at most 12 ns beyond its kernel (is $beyond)" at_most "$beyond" 12
for row in carry_1KiB carry_1MiB nested; do figure "executor.loop.$row" "$(of loop.$row)"; done
limit loop.two_partitions 5000
limit loop.two_processes 20000
limit loop.there_and_back 90000
expect "ten million iterations take no memory" cases actors "ten million iterations*"
expect "an endless loop ends, and other steps go on" cases actors "an endless loop*"
expect "it gives way to others" cases protocol "an endless loop*"
conclude
