#!/usr/bin/env bash
# Programs that people bring: the loss and gradients of their first step are PyTorch's, and each learns
source tests/accept/lib.sh
bin=${BUILD:-build}/bin/examples

expect "first steps are those of the table" bash tests/examples_test.sh "$bin"
for program in $(cut -f 1 tests/golden/programs.tsv | uniq); do
  began=$(now_ms)
  if "$bin/$program" >"$scratch/$program" 2>&1; then
    figure "$program" "learned in $(($(now_ms) - began)) ms, $(sed -n 's/ per step$/ a step/p' "$scratch/$program")"
  else
    tail -n 5 "$scratch/$program" | sed 's/^/  | /'
    expect "$program learns" false
  fi
done
conclude
