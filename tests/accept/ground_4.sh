#!/usr/bin/env bash
# variables are spread over tasks, their memory stays flat, a step of GPT-2's size peaks below 1.15 of PyTorch, fresh requests are fast
source tests/accept/lib.sh
programs=${BUILD:-build}/bin
state() { timeout 300 "$programs/state" "$@" 2>"$scratch/err" || { cat "$scratch/err" >&2; return 1; }; }
value() { sed -n "s/^$1 //p" "$scratch/$2"; }

# 8 variables of 1 MiB on 4 tasks, whoever compiles first.
four_times_2_mib() {
  [[ $(sed -n 's/^variables on [^:]*:[^:]*:[^:]*:[^:]*: //p' "$scratch/$1" | sort -u) == "2, 2097152 bytes" &&
     $(grep -c '^variables on /job:worker/task:[0-3]/' "$scratch/$1") == 4 ]]
}
for first in init step restore; do
  state spread "$first" --cluster local:4 --replicas 4 --threads 1 >"$scratch/$first" || true
  sed "s/^variables on/  bytes, $first first:/" "$scratch/$first"
  expect "2 variables of 1 MiB on each task, $first first" four_times_2_mib "$first"
done

# 200 commits of 8 MiB beside the first ten, which show what a run takes: a few values more, not 190.
# Of commits that nobody reads 64 MiB may wait until they are applied.
for row in "waiting 16" "blind 80"; do
  read -r case more <<<"$row"
  for cluster in "" "--cluster local:2"; do
    # shellcheck disable=SC2086  # none, or two words
    state "$case" $cluster >"$scratch/$case" || true
    name="$case${cluster:+, 2 workers}"
    figure "$name: peak after 10 and 200 commits, MiB" \
      "$(($(value first "$case") >> 20)), $(($(value all "$case") >> 20))"
    expect "$name: at most $more MiB more" \
      at_most "$(($(value all "$case") - $(value first "$case")))" $((more << 20))
  done
done

# Each request on nodes of its own.
state fresh >"$scratch/fresh" || true
expect "3,000 fresh requests within 3 s ($(value seconds fresh) s)" at_most "$(value seconds fresh)" 3

# 163 M parameters, Adam, batch 2 x 128: the most memory that a process held, the first step included.
timeout 900 "$programs/gpt" 3 12 --threads 2 >"$scratch/gpt" 2>"$scratch/err" || cat "$scratch/err"
figure "GPT-2's size: parameters, peak in MiB" "$(value parameters gpt), $(value peak gpt)"
python=${PYTHON:-python3}
if "$python" -c 'import torch' 2>/dev/null; then
  timeout 900 "$python" tests/accept/gpt_peer.py 3 12 2 >"$scratch/peer" 2>"$scratch/err" ||
    cat "$scratch/err"
  figure "PyTorch $("$python" -c 'import torch; print(torch.__version__)'): parameters, peak in MiB" \
    "$(value parameters peer), $(value peak peer)"
  expect "as many parameters" same "$(value parameters gpt)" "$(value parameters peer)"
  ratio=$(awk -v a="$(value peak gpt)" -v b="$(value peak peer)" 'BEGIN { if (a && b) printf "%.3f", a / b }')
  expect "peak at most 1.15 of PyTorch's (is ${ratio:-unknown})" at_most "$ratio" 1.15
else
  figure "PyTorch's peak" "skipped: $python has no torch (PYTHON names one that has)"
  expect "peak at most 3,750 MiB" at_most "$(value peak gpt)" 3750
fi

# Two workers that train on a batch each: the state is cut in halves.
timeout 900 "$programs/gpt" 3 12 --threads 1 --cluster local:2 --replicas 2 >"$scratch/gpt2" \
  2>"$scratch/err" || cat "$scratch/err"
figure "on 2 workers: peak of each, MiB" "$(value 'peak of a worker' gpt2 | paste -sd ' ')"
conclude
