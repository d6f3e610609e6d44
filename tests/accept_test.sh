#!/usr/bin/env bash
# accept_test.sh [ROOT]: the tables and scripts of tests/accept/ name test cases that exist, by patterns
# as doctest reads them. With --self-test, on tables that are wrong.
set -euo pipefail

# titles FOLDER: those of its test cases, one a line.
titles() {
  find "tests/$1" -name '*.cpp' -print0 | xargs -0 cat |
    { grep -Pzo 'TEST_CASE(_FIXTURE\(\s*\w+,|\()\s*("(\\.|[^"\\])*"\s*)+' || true; } | tr '\0\n' '\n ' |
    sed -E 's/^TEST_CASE[^"]*"//; s/" *$//; s/" *"//g; s/\\"/"/g'
}

# check ROOT: prints what names no test case.
check() {
  cd "$1"
  shopt -s nocasematch nullglob
  local where suite pattern title found of="" missing=0 count=0
  local -a known
  while IFS=$'\t' read -r where suite pattern; do
    count=$((count + 1)) found=0
    if [[ ! -d tests/$suite ]]; then
      echo "$where: there is no tests/$suite"
      missing=1
      continue
    fi
    [[ $suite == "$of" ]] || mapfile -t known < <(titles "$suite")
    of=$suite
    pattern=${pattern//\[/\\[}
    for title in "${known[@]}"; do
      # shellcheck disable=SC2053  # a pattern it is
      [[ $title != $pattern ]] || { found=1; break; }
    done
    ((found)) || { echo "$where: no test case of tests/$suite is called '$pattern'"; missing=1; }
  done < <({
    awk -F'\t' -v OFS='\t' 'NF == 3 && $1 !~ /^#/ && $2 != "-" { print FILENAME, $2, $3 }' tests/accept/{*_cases,*faults}.tsv
    sed -nE 's/.* cases ([a-z]+) "([^"$]+)"$/\1\t\2/p; s/.* cases ([a-z]+) '"'([^']+)'"'$/\1\t\2/p' \
      tests/accept/*.sh | awk -F'\t' -v OFS='\t' '{
        count = split($2, patterns, ",")
        for (i = 1; i <= count; ++i) print "a script of tests/accept", $1, patterns[i] }'
  } | sort -s -t $'\t' -k 2,2)
  ((count > 0)) || { echo "nothing is listed"; missing=1; }
  return $missing
}

if [[ ${1:-} == --self-test ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir -p "$scratch"/tests/{a,accept}
  printf 'TEST_CASE("a thing, [slow] and \\"so\\"") {}\nTEST_CASE_FIXTURE(\n    F, "a longer "\n    "one") {}\n' \
    >"$scratch/tests/a/b_test.cpp"
  echo 'expect "so" cases a "A longer one"' >"$scratch/tests/accept/x_1.sh"
  table() { printf '# of what\n%s\n' "$1" >"$scratch/tests/accept/t_cases.tsv"; }
  for right in $'it is\ta\ta thing? [slow]*' $'never\t-\tno reason' $'it\ta\t*"so"'; do
    table "$right"
    (check "$scratch") || { echo "does not find: $right"; exit 1; }
  done
  for wrong in $'it\ta\ta thing' $'it\tb\ta longer one' $'it\ta\tlonger'; do
    table "$wrong"
    if (check "$scratch" >/dev/null); then echo "found what is not there: $wrong"; exit 1; fi
  done
  table $'never\t-\tno reason'
  echo 'expect "so" cases a "a thing"' >"$scratch/tests/accept/x_1.sh"
  if (check "$scratch" >/dev/null); then echo "found what a script misnames"; exit 1; fi
  exit 0
fi
check "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"
