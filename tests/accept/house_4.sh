#!/usr/bin/env bash
# 200,000 steps: the last cost what the first did, memory stays, timers and tables are bounded
source tests/accept/lib.sh
of() { jq -r --arg n "$1" --arg f "$2" 'map(select(.name == $n)) | .[0][$f] // empty' "$scratch/$family"; }
# The last steps beside the first ones of another job, measured at the same time, in turns: a shared
# machine is a third slower for a minute at times. And what the process has in common may not grow
# either.
like_another() { at_most "$(of $family.cpu_per_step ratio)" 1.05; }
like_its_first() {
  at_most "$(of $family.cpu_per_step value)" "$(awk -v f="$(of $family.cpu_per_step first_tenth)" 'BEGIN { print 1.5 * f }')"
}
for family in soak.local soak.two_process; do
  # A step of 100 us takes a quarter more or less in a whole job, by how its threads meet: what looks
  # dear is measured up to twice again. What grows with the steps does so each time.
  for pass in 1 2 3; do
    "$TROUPE" bench soak --only $family --output json >"$scratch/$family"
    figure "$family.cpu_per_step, us, beside it and at first" \
      "$(of $family.cpu_per_step value), $(of $family.cpu_per_step peer_value), $(of $family.cpu_per_step first_tenth)"
    if like_another && like_its_first; then break; fi
  done
  expect "$family: CPU time at most 1.05 of a job's that begins ($(of $family.cpu_per_step ratio))" like_another
  expect "$family: CPU time at most 1.5 of the first tenth" like_its_first
  figure "$family.resident, bytes" "$(of $family.resident peer_value) -> $(of $family.resident value)"
  expect "$family: memory at most 1.02 of the first tenth ($(of $family.resident ratio))" \
    at_most "$(of $family.resident ratio)" 1.02
done
expect "pending timers are bounded" cases actors "timers do not multiply with the steps"
expect "tables are empty at rest" cases protocol "*leave* nothing*"
conclude
