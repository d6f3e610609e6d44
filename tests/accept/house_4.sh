#!/usr/bin/env bash
# 200,000 steps: the last cost what the first did, memory stays, timers and tables are bounded
source tests/accept/lib.sh
"$TROUPE" bench soak --output json >"$scratch/rows"
of() { jq -r --arg n "$1" --arg f "$2" 'map(select(.name == $n)) | .[0][$f] // empty' "$scratch/rows"; }
for family in soak.local soak.two_process; do
  figure "$family.cpu_per_step, us" "$(of $family.cpu_per_step peer_value) -> $(of $family.cpu_per_step value)"
  figure "$family.cpu_per_step of its own first tenth, us" "$(of $family.cpu_per_step first_tenth)"
  # Measured at the same time, in turns: a shared machine is a third slower for a minute at times.
  expect "$family: CPU time at most 1.05 of a job's that begins ($(of $family.cpu_per_step ratio))" \
    at_most "$(of $family.cpu_per_step ratio)" 1.05
  # What the process has in common may not grow either.
  expect "$family: CPU time at most 1.5 of the first tenth" \
    at_most "$(of $family.cpu_per_step value)" "$(awk -v f="$(of $family.cpu_per_step first_tenth)" 'BEGIN { print 1.5 * f }')"
  figure "$family.resident, bytes" "$(of $family.resident peer_value) -> $(of $family.resident value)"
  expect "$family: memory at most 1.02 of the first tenth ($(of $family.resident ratio))" \
    at_most "$(of $family.resident ratio)" 1.02
done
expect "pending timers are bounded" cases actors "timers do not multiply with the steps"
expect "tables are empty at rest" cases protocol "*leaves nothing behind*,*tables are empty*"
conclude
