#!/usr/bin/env bash
# the faults of the first release: each has a test, listed in faults.tsv, and all of them pass
# Columns: what was wrong, the folder of tests, the pattern of the test's name.
source tests/accept/lib.sh
total=0
while IFS=$'\t' read -r what suite pattern; do
  [[ -z $what || $what == \#* ]] && continue
  total=$((total + 1))
  log=$scratch/$total.log
  ok=0
  cases "$suite" "$pattern" >"$log" 2>&1 || ok=$?
  if ((ok)); then
    figure "$what" FAILED
    sed 's/^/  | /' "$log" | tail -n 20
    failures=$((failures + 1))
  else
    figure "$what" "ok: tests/$suite '$pattern'"
  fi
done <tests/accept/faults.tsv
figure "faults with a test" "$total"
conclude
