#!/usr/bin/env bash
# loops: time of an iteration and of a node; flat memory; an endless one gives way, and ends in time
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

# The longest of all ends of one row.
worst() {
  jq -s -r --arg n "executor.$1" \
    'add | map(select(.name == $n) | .worst_ms | tonumber) | max // empty' "$scratch"/rows.*
}

limit loop.count 100
# Nodes of body64 hand a tensor on, as those of identity.chain do. What that kernel takes is told by
# two graphs without a loop: the chain of them less a chain of nodes whose kernels do nothing. What
# is left of body64 is dispatch in a loop, with a share of each iteration's count.
kernel=$(awk -v d="$(of identity.chain)" -v e="$(of noop.chain)" 'BEGIN { print d - e }')
beyond=$(awk -v n="$(of loop.body64)" -v k="$kernel" 'BEGIN { print n - k }')
for row in loop.body64 identity.chain noop.chain; do figure "executor.$row" "$(of "$row")"; done
expect "a node of loop.body64 at most 12 ns beyond its kernel of $kernel (is $beyond)" \
  at_most "$beyond" 12
for row in carry_1KiB carry_1MiB nested; do figure "executor.loop.$row" "$(of loop.$row)"; done
limit loop.two_partitions 5000
limit loop.two_processes 20000
limit loop.there_and_back 90000
for end in deadline close deadline_two_processes close_two_processes; do
  limit loop.end_by_$end 100
  expect "the longest of them at most 100 ms (is $(worst loop.end_by_$end | cut -c1-6))" \
    at_most "$(worst loop.end_by_$end)" 100
done
expect "ten million iterations take no memory" cases actors "ten million iterations*"
expect "an endless loop ends, and other steps go on" cases actors "an endless loop ends with*"
expect "it gives way to others" cases protocol "an endless loop*"
conclude
