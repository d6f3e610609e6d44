#!/usr/bin/env bash
# ./dev gpu on the emulated GPU: every row, labelled; a failure of correctness stops it before it measures
# Not hardware: its times are no measure of anything. On hardware the same is `./dev gpu`.
source tests/accept/lib.sh
label="emulated, not a GPU"
code=0
./dev gpu --fake >"$scratch/log" 2>&1 || code=$?
((code == 0)) || tail -n 20 "$scratch/log"
expect "./dev gpu --fake runs to its end" same "$code" 0
sed 's/^/  | /' "$scratch/log" | tail -n 24
unlabelled() { grep -cvF "[$label] " "$1" || true; }
expect "each line of it is labelled" same "$(unlabelled "$scratch/log")" 0
result=build/gpu/result.json
expect "the result is labelled" same "$(field label <$result)" "$label"
expect "each row is labelled" same "$(jq --arg l "$label" '[.rows[] | select(.label != $l)] | length' $result)" 0
rows="gpu.copy gpu.add gpu.chain gpu.matmul.bf16 gpu.matmul.f32 gpu.upload gpu.download gpu.launch
  gpu.launch_and_wait gpu.step gpu.train.mlp gpu.train.lenet gpu.train.resnet20 gpu.train.char_lstm"
expect "all rows are there" same "$(jq -r '[.rows[] | select(.value > 0) | .name] | join(" ")' $result)" \
  "$(xargs <<<"$rows")"
expect "four networks are within their bounds, twice with the same bits" same 4 \
  "$(jq '[.networks[] | select(.apart <= .bound and .same_bits)] | length' $result)"
for file in build/gpu/*.json; do
  expect "$file is labelled" same 0 \
    "$(jq --arg l "$label" '[if type == "array" then .[] else . end | select(.label != $l)] | length' "$file")"
done

# stops NAME PHASE FAKE: that phase fails, and nothing is measured.
stops() {
  code=0
  TROUPE_FAKE_CUDA=$3 ./dev gpu --fake >"$scratch/$1" 2>&1 || code=$?
  figure "$1: exit code" "$code"
  expect "$1: it fails" at_least "$code" 1
  expect "$1: in $2" grep -q "$2 *FAILED" "$scratch/$1"
  expect "$1: the error is shown" grep -q CUDA_ERROR_ILLEGAL_ADDRESS "$scratch/$1"
  expect "$1: nothing is measured" test ! -e build/gpu/bench.json -a ! -e $result
}
stops "a GPU whose kernels fail" 'gpu ops' launch_error_at=40
# too_far: losses of mnist-mlp, whose last bits differ, are compared to be the same.
too_far() (
  say() { printf '%s\n' "$*"; }
  source tests/gpu.sh
  export TROUPE_CUDA_PATH=$PWD/build/fake-cuda:$PWD/build/fake-nvrtc:- TROUPE_CUDA_CACHE=-
  ! gpu_network mnist-mlp 0 --examples 500 --batch 32 --steps 10 >"$scratch/far" &&
    grep -q 'error: the losses are too far apart' "$scratch/far"
)
expect "losses further apart than their bound are a failure" too_far
out_of_time() (
  say() { printf '%s\n' "$*"; }
  source tests/gpu.sh
  gpu_end=$SECONDS
  ! gpu_limited tail -f /dev/null 2>"$scratch/late" && grep -q 'the 8 minutes were over' "$scratch/late"
)
expect "so is a phase that does not end within the 8 minutes" out_of_time
says() {  # says FAKE TEXT: and nothing is built or run after it
  code=0
  TROUPE_FAKE_CUDA=$1 ./dev gpu --fake >"$scratch/says" 2>&1 || code=$?
  tail -n 1 "$scratch/says" | cut -c -150 | sed 's/^/  | /'
  ((code == 1)) && grep -qF "$2" "$scratch/says" && ! grep -q 'gpu kernels' "$scratch/says"
}
expect "without a GPU it says what doctor does" says devices=0 'no device: the fake driver'
expect "with an old driver, too" says version=11040 'too old: '
code=0
TROUPE_CUDA_PATH=/nowhere:- ./dev gpu >"$scratch/none" 2>&1 || code=$?
tail -n 1 "$scratch/none" | sed 's/^/  | /'
expect "without a driver, and without --fake" grep -q '^dev: gpu: driver no driver: ' "$scratch/none"
expect "before it builds: exit code" same "$code $(grep -c '^build' "$scratch/none")" "1 0"
code=0
TROUPE_CUDA_PATH=$PWD/build/fake-cuda:$PWD/build/fake-nvrtc:- ./dev gpu >"$scratch/fake" 2>&1 || code=$?
expect "the tests' driver is taken for no GPU" grep -q './dev gpu --fake runs on it' "$scratch/fake"
figure "seconds" "$SECONDS"
conclude
