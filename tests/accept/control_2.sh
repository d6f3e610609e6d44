#!/usr/bin/env bash
# random programs, 300 and 10,000, and mistakes in the runtime: each is found (tests/planted/)
# PLANTED: only those mistakes, by name. QUICK=1: without the 10,000 programs.
source tests/accept/lib.sh
planted=${PLANTED:-$(basename -as .patch tests/planted/*.patch)}
random='random programs do what an obvious interpreter does'

expect "300 random programs" cases actors "$random"
[[ -n ${QUICK:-} ]] || expect "10,000 random programs" cases actors "10?000 $random*"

# found PROGRAM PATTERN: a test case that matches fails, and says so; nothing is said of a program
# that was not run to its end.
found() {
  local program=$copy/build/bin/$1 count code=0
  count=$("$program" --count --test-case="$2" | sed -n 's/.*current filters: *//p')
  ((count > 0)) || { figure "no test case of $1" "'$2'"; return 1; }
  timeout 1200 "$program" --minimal --abort-after=1 --test-case="$2" >"$scratch/log" 2>&1 || code=$?
  grep -m 1 -E 'ERROR:|at its smallest|terminate|FATAL' "$scratch/log" | cut -c -150 | sed 's/^/  | /' || true
  ((code != 0 && code != 124))
}

expect "a copy of the tree is configured" or_show make_copy \
  '/(protocol/.*|random_control_test)[.]cpp' -DTROUPE_UNITY=OFF
for name in $planted; do
  patch=tests/planted/$name.patch
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
conclude
