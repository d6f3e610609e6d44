#!/usr/bin/env bash
# hostile inputs and mutated frames under the address and undefined-behaviour sanitizers
source tests/accept/lib.sh
BUILD=build/asan
: "${TROUPE_FRAMES:=1000000}"
export TROUPE_FRAMES
# Freed memory that the sanitizer keeps back is no growth of the program's.
export ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=8:intercept_tls_get_addr=0

# attack FOLDER PATTERN: runs these cases, of which there must be some; what they say of themselves
# is kept in $scratch/said.
attack() {
  local program=$BUILD/bin/troupe_test_$1 out=$scratch/out code=0
  "$program" --test-case="$2" >"$out" 2>&1 || code=$?
  cat "$out" >>"$scratch/said"
  ((code == 0)) || tail -n 40 "$out"
  grep -qE 'test cases: +[1-9]' "$out" || code=1
  grep -E 'runtime error:|ERROR: (Address|Leak)Sanitizer' "$out" && code=1
  return "$code"
}
# total WORDS: the sum of the numbers beside these words.
total() { grep -oE "$1" "$scratch/said" | grep -oE '[0-9]+' | awk '{ n += $1 } END { print n + 0 }'; }

if [[ ${BUILT:-} != 1 ]]; then
  ./dev asan >"$scratch/log" 2>&1 || { tail -n 40 "$scratch/log"; expect "asan: fast tests" false; }
fi
expect "messages, graphs and tensors by hand" attack actors "*by hand*"
expect "data files by hand" attack ops "*by hand*"
expect "arguments, addresses and secrets by hand" attack apps "*by hand*"
expect "strangers and peers by hand" attack net "*who say something wrong*"
expect "messages by the million, decoder" attack serialization "*hostile*"
expect "frames against a listening worker" attack actors "*a million hostile frames*"
expect "frames against a worker process" attack apps "*a hundred thousand hostile frames*"
by_hand=$(total 'by hand: [0-9]+|MESSAGE: [0-9]+ inputs')
frames=$(total 'hostile frames: [0-9]+')
growth=$(total 'growth MiB: [0-9]+')
figure "hostile inputs by hand" "$by_hand"
figure "mutated frames" "$frames"
figure "growth, MiB" "$growth"
expect "at least 200 inputs by hand" at_least "$by_hand" 200
expect "at least $TROUPE_FRAMES frames" at_least "$frames" "$TROUPE_FRAMES"
expect "growth of at most 64 MiB" at_most "$growth" 64
conclude
