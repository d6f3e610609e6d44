#!/usr/bin/env bash
# op_names_test.sh [ROOT]: each name of tests/accept/op_names.tsv is an op of docs/ops.md, or is in
# the header that the table names and in a test. Prints what is "not yet" there, and how many are
# there. With --self-test, on tables that are wrong.
set -euo pipefail

# check ROOT: prints what is missing.
check() {
  cd "$1"
  local group name ours header missing=0 here=0 not_yet=0
  lacks() { echo "op_names.tsv: $group: $name: $1"; missing=1; }
  while IFS=$'\t' read -r group name ours; do
    [[ -z $group || $group == \#* ]] && continue
    case $ours in
      "not yet")
        echo "not yet: $group: $name"
        not_yet=$((not_yet + 1))
        continue
        ;;
      *:*)
        header=${ours%%:*} ours=${ours#*:}
        if [[ ! -f $header ]] || ! grep -qE "(struct|class) $ours\b|\b$ours(\(| =|;|,)" "$header"; then
          lacks "$header has no $ours"
        elif ! grep -rqwF --include='*.cpp' --include='*.hpp' -- "$ours" tests; then
          lacks "no test has $ours"
        fi
        ;;
      *) grep -qF "| \`$ours\` |" docs/ops.md || lacks "there is no op '$ours'" ;;
    esac
    here=$((here + 1))
  done <tests/accept/op_names.tsv
  echo "$here names are here, $not_yet not yet"
  ((here > 0 && !missing))
}

if [[ ${1:-} == --self-test ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir -p "$scratch"/{docs,tests/accept,ops}
  echo '| `MatMul` | `a, b` |' >"$scratch/docs/ops.md"
  echo 'Output roll(Output x); Output unused(Output x);' >"$scratch/ops/a.hpp"
  echo 'roll(x);' >"$scratch/tests/a_test.cpp"
  table() { printf 'group\tname\t%s\n' "$@" >"$scratch/tests/accept/op_names.tsv"; }
  table MatMul ops/a.hpp:roll "not yet"
  (check "$scratch") | grep -q '^2 names are here, 1 not yet$'
  for wrong in Matmul ops/b.hpp:roll ops/a.hpp:rol ops/a.hpp:unused ""; do
    table "$wrong"
    if (check "$scratch" >/dev/null); then echo "found what is not there: $wrong"; exit 1; fi
  done
  exit 0
fi
check "${1:-$(dirname "$0")/..}"
