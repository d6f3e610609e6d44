#!/usr/bin/env bash
# the same bits for one process, two processes, 1, 2 and 3 threads, and over two devices
source tests/accept/lib.sh
runs=${RUNS:-20}
"$TROUPE" --version | sed 's/^/  /'  # one build for all that follows, the benchmarks' rows too

# What the rows train.* of the benchmarks compute, and how.
bench_hashes() { "$TROUPE" bench train --only .t --rounds 1 --output json --quiet "$@"; }
bench_hashes --threads 1 2 3 >"$scratch/here"
bench_hashes --threads 1 2 --cluster local:2 >"$scratch/cluster"
for model in mlp lenet resnet20 char_lstm; do
  jq -r --arg m "train.$model." '.[] | select(.name | startswith($m)) | .params_sha256' \
    "$scratch/here" "$scratch/cluster" >"$scratch/hashes"
  figure "bench rows of $model: threads 1 2 3, local:2" "$(sort -u "$scratch/hashes")"
  expect "5 rows of $model, one params_sha256" \
    same "$(wc -l <"$scratch/hashes") $(sort -u "$scratch/hashes" | wc -l)" "5 1"
done

# The same networks and batches on data of their own for each replica.
hash_of() {
  "$TROUPE" train "$@" --replicas 2 --steps 20 --seed 7 --output json --quiet | field params_sha256
}
layouts=("--threads 1" "--threads 2" "--threads 3" "--cluster local:2")
for model in "mnist-mlp --batch 100" "mnist-conv --batch 64"; do
  # shellcheck disable=SC2086
  want=$(hash_of $model --threads 1)
  figure "$model: params_sha256" "$want"
  different=0
  for ((run = 0; run < runs; ++run)); do
    for options in "${layouts[@]}"; do
      # shellcheck disable=SC2086
      same "$(hash_of $model $options)" "$want" ||
        { different=$((different + 1)); echo "differs: $model $options"; }
    done
  done
  figure "$model: runs, of them different" "$((${#layouts[@]} * runs)), $different"
  expect "no run of $model differs" same "$different" 0
done

TROUPE_SEEDS=${SEEDS:-1000} expect "mnist-conv over CPU:0 and FAKE:0 has the bits of the CPU" \
  cases apps "mnist-conv over CPU:0 and FAKE:0*long*"
conclude
