#!/usr/bin/env bash
# a 5 GB tensor between processes; Extend, deadlines and Close
source tests/accept/lib.sh
# What a case of tests/FOLDER says of itself when it passes: cases_say FOLDER PATTERN
cases_say() {
  local program=${BUILD:-build}/bin/troupe_test_$1 output
  [[ -x $program ]] || { figure "$program" missing; return 1; }
  output=$("$program" --test-case="$2") || { echo "$output"; return 1; }
  sed -n 's/.*MESSAGE: /  /p' <<< "$output"
  ! grep -q 'skipped: ' <<< "$output" && grep -q 'test cases: *[1-9]' <<< "$output"
}
expect "5 GB between two transports" cases_say net "*5 GB*"
expect "5 GB from worker to worker" cases_say actors "*5 GB*"
expect "values of any kind and size" cases actors \
  "strings cross*,a graph of *,a graph with *,feeds and fetches*,hostile strings*,hostile parts*"
for word in Extend deadline Close; do expect "$word" cases actors "*$word*"; done
conclude
