#!/usr/bin/env bash
# simulated clusters of production's shells, 300 x 3,000 events under faults; 15 mistakes are found
# PLANTED: only those mistakes, by name. QUICK=1: without the 300 clusters.
source tests/accept/lib.sh
planted=${PLANTED:-$(basename -as .patch tests/planted/shells/*.patch)}
test='a job under faults goes on or ends as said? and never hangs'

# figures LOG: what the test printed.
figures() { sed -n 's/^.*MESSAGE: *//p' "$1" | sed 's/^/  | /'; }
clusters() {
  local code=0
  "${BUILD:-build}/bin/troupe_test_actors" --test-case="$test? long*" >"$scratch/clusters" 2>&1 || code=$?
  figures "$scratch/clusters"
  ((code == 0)) || tail -n 20 "$scratch/clusters"
  return $code
}

if [[ -z ${QUICK:-} ]]; then
  expect "the test is there" cases actors "$test"
  expect "300 clusters" clusters
fi
expect "a copy of the tree is configured" or_show make_copy '/(faults|task_hosts)_test[.]cpp' -DTROUPE_UNITY=OFF
# shellcheck disable=SC2086
each_found tests/planted/shells $planted
figure "mistakes" "$(wc -w <<<"$planted")"
expect "15 at least" test -n "${PLANTED:-}" -o "$(wc -w <<<"$planted")" -ge 15
conclude
