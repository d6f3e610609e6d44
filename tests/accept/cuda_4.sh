#!/usr/bin/env bash
# networks train on the emulated GPU as on the CPU, twice with the same bits
# Not hardware. Each is trained for a few steps: by the CPU; by the GPU; by it again, whose work then
# begins late and whose threads run in another order.
source tests/accept/lib.sh
source tests/gpu.sh  # gpu_apart, gpu_text
build=$(cd "${BUILD:-build}" && pwd)
export TROUPE_CUDA_PATH=$build/fake-cuda:$build/fake-nvrtc:- TROUPE_CUDA_CACHE=-
plain=check=1 disturbed=delay_us=50,seed=3,order=5
expect "the driver is the fake one" grep -q 'the fake driver' <("$TROUPE" doctor)

# ended LOG COMMAND...: true if it ends well; else its log is shown.
ended() {
  local log=$1
  shift
  timeout 600 "$@" >"$log" 2>"$log.err" && return
  tail -n 5 "$log.err" "$log" | cut -c -300 | sed 's/^/  | /'
  return 1
}
# refused COMMAND...: it ends with the error of a kernel, so that the GPU computes something of it
refused() { ! TROUPE_FAKE_CUDA=launch_error_at=40 timeout 600 "$@" >"$scratch/refused" 2>&1; }

# trains NAME BOUND ARGUMENT...: of troupe train
trains() {
  local name=$1 bound=$2 began=$SECONDS
  shift 2
  local command=("$TROUPE" train "$@" --threads 1 --output json --quiet)
  if ended "$scratch/cpu" "${command[@]}" &&
    TROUPE_FAKE_CUDA=$plain ended "$scratch/gpu" "${command[@]}" --device CUDA &&
    TROUPE_FAKE_CUDA=$disturbed ended "$scratch/again" "${command[@]}" --device CUDA; then
    local difference
    difference=$(gpu_apart "$(field loss <"$scratch/gpu")" "$(field loss <"$scratch/cpu")") || true
    figure "$name: loss of CPU, GPU" \
      "$(field loss <"$scratch/cpu"), $(field loss <"$scratch/gpu") ($((SECONDS - began)) s)"
    expect "$name: the losses are within $bound ($difference)" at_most "$difference" "$bound"
    expect "$name: twice the same bits" same "$(field params_sha256 <"$scratch/gpu")" \
      "$(field params_sha256 <"$scratch/again")"
    expect "$name: a GPU that fails is noticed" refused "${command[@]}" --device CUDA --no-recovery
  else
    expect "$name" false
  fi
}
# program NAME BOUND COMMAND...: of apps/examples, which prints losses and distances. Its exit code
# tells whether it has learned, which it has no time for.
program() {
  local name=$1 bound=$2 began=$SECONDS run
  shift 2
  for run in cpu gpu again; do
    local fake=$plain device=(--device CUDA)
    [[ $run != again ]] || fake=$disturbed
    [[ $run != cpu ]] || device=()
    TROUPE_FAKE_CUDA=$fake timeout 600 "$@" "${device[@]}" --threads 1 >"$scratch/log" 2>&1 || true
    grep -v ' per step$' "$scratch/log" >"$scratch/$run" || true
  done
  numbers() { grep -oE '(loss|discriminator|generator|moments) [0-9.]+' "$1" | cut -d ' ' -f 2; }
  local cpu gpu i most=0
  readarray -t cpu < <(numbers "$scratch/cpu")
  readarray -t gpu < <(numbers "$scratch/gpu")
  figure "$name: losses of CPU, GPU" "${cpu[*]}, ${gpu[*]} ($((SECONDS - began)) s)"
  for ((i = 0; i < ${#cpu[@]}; i++)); do
    most=$(awk -v a="$most" -v b="$(gpu_apart "${gpu[i]:-}" "${cpu[i]}")" \
      'BEGIN { print (b == "" ? 1e9 : b > a ? b : a) }')
  done
  expect "$name: all losses are there" at_least "${#cpu[@]}" 2
  expect "$name: the losses are within $bound ($most)" at_most "$most" "$bound"
  expect "$name: twice the same" cmp -s "$scratch/gpu" "$scratch/again"
}

text=$scratch/text
gpu_text >"$text"

trains mnist-mlp 1e-5 mnist-mlp --examples 500 --batch 32 --steps 10
trains mnist-conv 1e-5 mnist-conv --examples 100 --batch 16 --steps 5
# A step of this size overshoots, and rounding grows with it.
trains cifar-resnet20 1e-3 cifar-resnet20 --examples 40 --batch 8 --steps 3
trains char-lstm 1e-5 char-lstm --data "$text" --batch 4 --steps 3
trains "char-lstm as a loop" 1e-5 char-lstm --over-time loop --data "$text" --batch 4 --steps 2
trains "char-lstm unrolled" 1e-5 char-lstm --over-time unrolled --data "$text" --batch 4 --steps 1
trains "mnist-mlp in two processes" 1e-5 mnist-mlp --cluster local:2 --replicas 2 --examples 500 \
  --batch 16 --steps 5
trains "mnist-conv in two processes" 1e-5 mnist-conv --cluster local:2 --replicas 2 --examples 100 \
  --batch 8 --steps 3
expect "blocks of a GPT, loops, functions, replicas" cases apps \
  'blocks of a GPT train on a GPU*,loops and functions train on a GPU*,replicas train on a GPU*'
program "the GPT of apps/examples" 5e-3 "$build/bin/examples/gpt" \
  --data "$text" --steps 2
program "DCGAN" 5e-3 "$build/bin/examples/dcgan" \
  --steps 2
figure "seconds" "$SECONDS"
expect "at most 15 minutes" at_most "$SECONDS" 900
conclude
