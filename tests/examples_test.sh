#!/usr/bin/env bash
# examples_test.sh FOLDER: the programs of docs/programs.md, built into FOLDER. The loss and the
# gradients of the first step of each are those of tests/golden/programs.tsv, which another
# framework computed; and those that take less than a second learn. With --self-test, on a program
# that is wrong.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# compare TABLE PROGRAM < what the program printed: each number to 1e-6 of itself. A sum of a
# gradient may be 0 but for rounding: it may be wrong by 1e-12 of the norm, too.
compare() {
  awk -F '\t' -v program="$2" '
    function near(is, want, slack) {
      d = is - want; if (d < 0) d = -d
      w = want < 0 ? -want : want
      return is ~ /^-?[0-9.]+(e[-+][0-9]+)?$/ && d <= 1e-6 * w + slack
    }
    NR == FNR { if ($1 == program) { n++; name[n] = $2; a[n] = $3; b[n] = $4; fields[n] = NF - 1 } next }
    {
      i++
      count = split($0, part, " ")
      if (i > n) { print program ": more than the table has: " $0; bad = 1 }
      else if (part[1] != name[i] || count != fields[i]) {
        print program ": not the line of " name[i] ": " $0; bad = 1
      } else if (!near(part[2], a[i], count == 3 ? 1e-12 * b[i] : 0) ||
                 (count == 3 && !near(part[3], b[i], 0))) {
        print program ": " $0 ", not " a[i] " " b[i]; bad = 1
      }
    }
    END {
      if (n == 0) { print program ": not in the table"; bad = 1 }
      if (i < n) { print program ": " i + 0 " lines, not " n; bad = 1 }
      exit bad
    }' "$1" -
}

if [[ ${1:-} == --self-test ]]; then
  table=$(mktemp)
  trap 'rm -f "$table"' EXIT
  printf 'a\tloss\t0.5\na\tw\t0\t2.5\nb\tloss\t1\n' >"$table"
  printf 'loss 0.50000001\nw 1e-16 2.5\n' | compare "$table" a
  for wrong in 'loss 0.51\nw 0 2.5' 'loss 0.5\nw 0 2.6' 'loss 0.5\nw 1e-9 2.5' 'loss 0.5\nv 0 2.5' \
    'loss 0.5' 'loss 0.5\nw 0 2.5\nx 1 1' 'loss nan\nw 0 2.5' 'loss 0.5\nw 0 nan' 'loss 0.5\nw 0'; do
    if printf "$wrong\n" | compare "$table" a >/dev/null; then
      echo "not found: $wrong"
      exit 1
    fi
  done
  exit 0
fi

failed=0
# learns PROGRAM ARGUMENT...: a run of less than a second.
learns() {
  local out
  out=$("$bin/$1" "${@:2}" 2>&1) || { printf '%s:\n%s\n' "$*" "$out"; failed=1; }
}

bin=$1
table=$here/golden/programs.tsv
for program in $(cut -f 1 "$table" | uniq); do
  "$bin/$program" --first-step | compare "$table" "$program" || failed=1
done
learns word2vec --steps 1000
learns wide_and_deep --steps 400 --rows 50000
exit $failed
