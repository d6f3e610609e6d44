#!/usr/bin/env bash
# planted_test.sh: every mistake of tests/planted/ and every addition of tests/rooms/ still fits the
# code that it changes, and names the test program that is to find it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Of this tree, whatever repository it may stand in.
export GIT_CEILING_DIRECTORIES=$PWD
failed=0 count=0
while IFS= read -r patch; do
  count=$((count + 1))
  if ! git apply --check "$patch"; then
    echo "$patch does not fit the code any more"
    failed=1
  fi
  if [[ $patch == tests/planted/* ]] && ! grep -q '^Program: troupe_test_' "$patch"; then
    echo "$patch names no test program"
    failed=1
  fi
done < <(find tests/planted tests/rooms -name '*.patch' | sort)
((count > 20)) || { echo "only $count patches were found"; failed=1; }
exit $failed
