#!/usr/bin/env bash
# 100,000 hostile programs with functions and cycles through import and compile, under asan and ubsan
source tests/accept/lib.sh
BUILD=${BUILD:-build/asan}
: "${PROGRAMS:=100000}"
# Freed memory that the sanitizer keeps back is no growth of the program's.
export ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=8:intercept_tls_get_addr=0

if [[ ${BUILT:-} != 1 ]]; then
  { cmake --preset asan && cmake --build "$BUILD" --target troupe_test_protocol; } \
    >"$scratch/log" 2>&1 || { tail -n 40 "$scratch/log"; expect "the build" false; }
fi
# bombard FROM: half of the programs.
bombard() {
  local out=$scratch/said.$1 code=0
  TROUPE_SEED=$1 TROUPE_PROGRAMS=$((PROGRAMS / 2)) timeout "${LONGEST:-5400}" \
    "$BUILD/bin/troupe_test_protocol" --test-case="hostile programs are refused*" >"$out" 2>&1 ||
    code=$?
  ((code == 0)) || tail -n 40 "$out"
  grep -qE 'test cases: +[1-9]' "$out" || code=1
  grep -E 'runtime error:|ERROR: (Address|Leak)Sanitizer' "$out" && code=1
  return "$code"
}
bombard 1000000 & first=$!
bombard 2000000 & second=$!
expect "one half" wait "$first"
expect "the other half" wait "$second"
total() { grep -hoE "$1" "$scratch"/said.* | grep -oE '[0-9]+' | awk '{ n += $1 } END { print n + 0 }'; }
for what in unreadable refused "not compiled" compiled; do
  figure "$what" "$(total "[,:] $what [0-9]+")"
done
# most PATTERN: the largest of the numbers that end it, of both halves.
most() { grep -hoE "$1" "$scratch"/said.* | grep -oE '[0-9.e+-]+$' | sort -g | tail -1; }
growth=$(most 'growth MiB: [0-9]+')
longest=$(most '; longest [0-9.e+-]+')
within=$(most 'most within one MiB: [0-9]+')
figure "growth, MiB" "$growth"
figure "the longest program, s" "$longest"
figure "most memory within a program, MiB" "$within"
expect "a program takes at most 10 s" at_most "$longest" 10
expect "and at most 64 MiB, with what the sanitizer adds" at_most "$within" 64
expect "at least $PROGRAMS programs" at_least "$(total 'hostile programs: [0-9]+')" "$PROGRAMS"
expect "growth of at most 64 MiB" at_most "$growth" 64
conclude
