#!/usr/bin/env bash
# the faults of the first release: each has a test, listed in faults.tsv, and all of them pass
source tests/accept/lib.sh
listed tests/accept/faults.tsv
figure "faults with a test" "$rows"
conclude
