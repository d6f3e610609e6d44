#!/usr/bin/env bash
# what was found from outside: each fault has a test, listed in ground_faults.tsv, and all of them pass
source tests/accept/lib.sh
listed tests/accept/ground_faults.tsv
figure "faults with a test" "$rows"
conclude
