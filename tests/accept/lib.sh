# Shared by the acceptance scripts, which run from the repository root with TROUPE set to the
# command under test. Each prints its figures and ends with PASS or FAIL.
set -euo pipefail
: "${TROUPE:=$PWD/build/bin/troupe}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

figure() { printf '  %-44s %s\n' "$1" "$2"; }
expect() {  # expect DESCRIPTION CONDITION-COMMAND...
  local what=$1
  shift
  if "$@"; then figure "$what" ok; else figure "$what" FAILED; failures=$((failures + 1)); fi
}
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 >= b + 0) }'; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 <= b + 0) }'; }
same() { [[ -n $1 && $1 == "$2" ]]; }
conclude() {
  if ((failures)); then echo "FAIL: $failures of the conditions above"; exit 1; fi
  echo PASS
}
now_ms() { date +%s%3N; }
# test_seconds LOG: what the tests took, of what `./dev test` printed.
test_seconds() { sed -n 's/^Total Test time (real) = *\([0-9.]*\) sec/\1/p' "$1"; }
# run_items ITEM...: other scripts, as "spine.1 house.5", each of which is a condition of this one.
run_items() {
  local item began
  for item in "$@"; do
    began=$SECONDS
    if bash "tests/accept/${item/./_}.sh" >"$scratch/$item.log" 2>&1; then
      figure "$item" "ok ($((SECONDS - began)) s)"
    else
      sed 's/^/  | /' "$scratch/$item.log" | tail -n 40
      expect "$item ($((SECONDS - began)) s)" false
    fi
  done
}
# run_groups GROUP...: all items of the groups; with ITEMS, only those.
run_groups() {
  local group items=${ITEMS:-}
  unset ITEMS  # an item that this runs may have some of its own
  if [[ -z $items ]]; then
    for group in "$@"; do
      items+=" $(ls tests/accept | sed -n "s/^\(${group}\)_\([0-9]*\)\.sh$/\1.\2/p" | sort -V | xargs)"
    done
  fi
  # shellcheck disable=SC2086
  run_items $items
}
# field NAME < json: one value of a result document.
field() { jq -r --arg name "$1" '.[$name] // empty'; }
# cases FOLDER PATTERN: runs the test cases of tests/FOLDER whose names match, slow ones too, from
# the build tree BUILD. No match is a failure: a promise without its test is not kept.
cases() {
  local program=${BUILD:-build}/bin/troupe_test_$1 count
  [[ -x $program ]] || { figure "$program" missing; return 1; }
  count=$("$program" --count --test-case="$2" | sed -n 's/.*current filters: *//p')
  figure "tests/$1 '$2': test cases" "${count:-0}"
  [[ ${count:-0} -gt 0 ]] && "$program" --minimal --test-case="$2"
}
# listed TABLE: runs and prints the rows of a table; sets `rows` and `excluded` to their numbers.
# Columns are what the row is about, the folder of tests and the pattern of the test's name; or a
# dash and why it cannot arise. A test that several rows name runs once.
listed() {
  local what suite pattern key log
  local -A ended
  rows=0 excluded=0
  while IFS=$'\t' read -r what suite pattern; do
    [[ -z $what || $what == \#* ]] && continue
    rows=$((rows + 1))
    if [[ $suite == - ]]; then
      excluded=$((excluded + 1))
      figure "$what" "cannot arise: $pattern"
      continue
    fi
    key="$suite $pattern" log=$scratch/$rows.log
    if [[ -z ${ended[$key]:-} ]]; then
      ended[$key]=ok
      cases "$suite" "$pattern" >"$log" 2>&1 || ended[$key]=FAILED
    fi
    if [[ ${ended[$key]} == ok ]]; then
      figure "$what" "ok: tests/$suite '$pattern'"
    else
      figure "$what" FAILED
      [[ ! -f $log ]] || sed 's/^/  | /' "$log" | tail -n 20
      failures=$((failures + 1))
    fi
  done <"$1"
}
# The digits of MNIST as IDX files: $MNIST, or one of the usual places.
mnist() {
  local d
  for d in "${MNIST:-}" data/mnist ../shared/data/mnist; do
    if [[ -n $d && -e $(echo "$d"/train-images*) ]]; then echo "$d"; return; fi
  done
  echo "set MNIST to the directory of the four IDX files" >&2
  return 1
}

# --- a copy of the tree, which patches change ---
# A patch begins with a line of what it does and with lines of its own:
#   Program: troupe_test_FOLDER     that has the tests it is about
#   Cases: PATTERN                  of its test cases
# COPY: such a tree that is built already; the patches are taken back.
copy=${COPY:-$scratch/copy}
# Each of these writes to $scratch/log. or_show COMMAND...: and fails loudly.
or_show() { "$@" || { tail -n 30 "$scratch/log"; return 1; }; }
told() { sed -n "s/^$2: //p;/^diff/q" "$1"; }
# The tracked files, configured for this machine's kernels and the test files that match $1.
make_copy() {
  local level
  [[ -z ${COPY:-} ]] || return 0
  level=$("$TROUPE" --version | sed -n 's/.*x86-64-\(v[234]\).*/\1/p')
  mkdir "$copy"
  git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$copy"
  (cd "$copy" && cmake --preset release "-DTROUPE_TESTS=$1" "-DTROUPE_ISA_LEVELS=$level" "${@:2}") \
    >"$scratch/log" 2>&1
}
# change_copy OPTION... < patch
change_copy() { patch -d "$copy" -p1 --no-backup-if-mismatch "$@" >"$scratch/log" 2>&1; }
build_copy() { cmake --build "$copy/build" --target "$1" >"$scratch/log" 2>&1; }

# found PROGRAM PATTERN: a test case of the copy that matches fails, and says so; nothing is said of
# a program that was not run to its end.
found() {
  local program=$copy/build/bin/$1 count code=0
  count=$("$program" --count --test-case="$2" | sed -n 's/.*current filters: *//p')
  ((count > 0)) || { figure "no test case of $1" "'$2'"; return 1; }
  timeout 1200 "$program" --minimal --abort-after=1 --test-case="$2" >"$scratch/log" 2>&1 || code=$?
  grep -m 1 -E 'ERROR:|at its smallest|terminate|FATAL|fault of the runtime' "$scratch/log" |
    cut -c -150 | sed 's/^/  | /' || true
  ((code != 0 && code != 124))
}
# each_found FOLDER NAME...: applies those patches to the copy, one at a time, and expects their
# tests to fail.
each_found() {
  local folder=$1 name patch program
  for name in "${@:2}"; do
    patch=$folder/$name.patch
    echo "== $name: $(head -n 1 "$patch")"
    if or_show change_copy <"$patch"; then
      program=$(told "$patch" Program)
      if or_show build_copy "$program"; then
        expect "found" found "$program" "$(told "$patch" Cases)"
      else
        expect "it builds" false
      fi
      expect "it can be taken back" or_show change_copy -R <"$patch"
    else
      expect "it applies" false
    fi
  done
}
