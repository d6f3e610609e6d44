#!/usr/bin/env bash
# Every op x 10,000 hostile cases (inputs, attributes, values, feeds) under asan and ubsan: a Status with node and line, or values
# CASES: of each op. OPS: only these, as Pad,Conv2D. SEED: the first of the seeds. RELEASE=1: the release build alone.
source tests/accept/lib.sh
: "${CASES:=10000}" "${SEED:=1}" "${OPS:=}"
build=build/asan preset=asan
[[ -z ${RELEASE:-} ]] || build=build preset=release
BUILD=${BUILD:-$build}
# A size that cannot be is answered as in a run without the sanitizer, and freed memory that it keeps back is no growth.
export ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=8:intercept_tls_get_addr=0
program=$BUILD/bin/troupe_test_hostile

if [[ ${BUILT:-} != 1 ]]; then
  { cmake --preset "$preset" && cmake --build "$BUILD" --target troupe_test_hostile; } \
    >"$scratch/log" 2>&1 || { tail -n 40 "$scratch/log"; expect "the build" false; conclude; }
fi
expect "planted faults of ops are found" cases hostile "hostile cases find ops*"
# bombard PART CASES FROM: so many cases of each op.
bombard() {
  local out=$scratch/said.$1 code=0
  TROUPE_OPS=$OPS TROUPE_CASES=$2 TROUPE_SEED=$3 timeout "${LONGEST:-40000}" \
    "$program" --test-case="ops refuse hostile inputs*" >"$out" 2>&1 || code=$?
  grep -aE 'ERROR:|again:' "$out" | cut -c -600 || true
  grep -qaE 'test cases: +[1-9]' "$out" || code=1
  return "$code"
}
half=$((CASES / 2))
bombard 1 "$half" "$SEED" & first=$!
bombard 2 $((CASES - half)) $((SEED + half)) & second=$!
expect "one half" wait "$first"
expect "the other half" wait "$second"
# total WORDS: the sum of the numbers before or behind these words, of both halves.
total() { grep -ahoE "$1" "$scratch"/said.* | grep -oE '[0-9]+' | awk '{ n += $1 } END { print n + 0 }'; }
for what in refused "not fed" failed asked computed; do
  figure "$what" "$(total "[,:] $what [0-9]+")"
done
ops=$(grep -ahoE 'of [0-9]+ ops' "$scratch/said.1" | grep -oE '[0-9]+' || echo 0)
count=$(total 'hostile cases: [0-9]+')
figure "ops" "$ops"
expect "$CASES cases of each op (are $count)" at_least "$count" $((CASES * ops))
expect "some ops were tried" at_least "$ops" 1
expect "and a fifth of the cases computed something" at_least "$(total '[,:] computed [0-9]+')" $((count / 5))
conclude
