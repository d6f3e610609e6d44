#!/usr/bin/env bash
# the hard cases of control flow and its gradients: each has a test or says why it cannot arise
source tests/accept/lib.sh
listed tests/accept/control_cases.tsv
figure "cases" "$rows"
figure "of these cannot arise here" "$excluded"
conclude
