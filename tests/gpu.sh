# What `./dev gpu` does, which sources this: it checks a GPU against the CPU, then measures it.
# Everything that it finds is in build/gpu/*.json; result.json has all of it.

# The label of what the emulated GPU gives; empty on hardware.
gpu_label=
gpu_folder=build/gpu
gpu_end=$((SECONDS + 480))  # of the checks and measurements

# Runs the command within the time that is left.
gpu_limited() {
  local code=0
  timeout "$((gpu_end > SECONDS ? gpu_end - SECONDS : 1))" "$@" || code=$?
  ((code != 124)) || say "error: the 8 minutes were over" >&2
  return "$code"
}

# gpu_apart A B: |A - B| / max(1, |B|); fails where one is missing
gpu_apart() {
  awk -v a="$1" -v b="$2" 'BEGIN { if (a == "" || b == "") exit 1
    d = a - b; if (d < 0) d = -d; m = b < 0 ? -b : b; printf "%.2g\n", d / (m > 1 ? m : 1) }'
}

# A text whose last tenth has a window of char-lstm.
gpu_text() {
  awk 'BEGIN { split("the wolf and a bear went to their house in these woods where little pigs said hello", w, " ")
    srand(1); for (i = 0; i < 1500; ++i) printf "%s%s", w[int(rand() * 17) + 1], i % 9 ? " " : ".\n" }'
}

# gpu_write FILE < object: into build/gpu, with the label.
gpu_write() {
  jq --arg text "$gpu_label" '. + (if $text == "" then {} else {"label": $text} end)' \
    >"$gpu_folder/$1"
}

# gpu_part PART KEY: of what doctor found.
gpu_part() {
  jq -r --arg part "$1" --arg key "$2" '.cuda.parts[] | select(.part == $part) | .[$key]' \
    "$gpu_folder/doctor.json"
}

# Prints what `troupe doctor` does; ends here unless there is a GPU that can be used.
gpu_doctor() {
  local part
  build/bin/troupe doctor
  build/bin/troupe doctor --output json | gpu_write doctor.json
  for part in driver gpu:0 nvrtc; do
    [[ $(gpu_part "$part" state) != ready ]] || continue
    [[ $part != nvrtc ]] || say "./dev cuda installs the compiler of kernels"
    die "gpu: $part $(gpu_part "$part" text)"
  done
  [[ -n $gpu_label || $(jq .cuda.fake "$gpu_folder/doctor.json") == false ]] ||
    die "gpu: this is the driver of the tests; ./dev gpu --fake runs on it"
}

# `phase` calls the next ones where a command that fails does not end the script.

# Every function for this GPU, where tests and networks find them. One that spills, or takes more
# registers than it should, is slow rather than wrong: it is told in the end.
gpu_kernels() {
  local told=$gpu_folder/runs/kernels.json
  gpu_limited build/bin/troupe kernels --arch "$(gpu_part gpu:0 text | grep -o 'sm_[0-9a-z]*$')" \
    --cache "$TROUPE_CUDA_CACHE" --output json >"$told" || true
  jq -e '.functions | length > 0' "$told" >/dev/null || { cat "$told"; return 1; }
  jq -r '.functions[] | select(.fault) | "\(.function): \(.fault)"' "$told"
  gpu_write kernels.json <"$told"
  jq -e 'all(.functions[]; .bytes > 0)' "$told" >/dev/null || { say "error: not all compile"; return 1; }
}

# gpu_cases ARGUMENT...: test cases of ops on this GPU; none may be skipped.
gpu_cases() {
  local log=$gpu_folder/runs/ops.log code=0
  TROUPE_TEST_GPU=1 gpu_limited build/bin/troupe_test_ops --test-suite=gpu "$@" >"$log" 2>&1 || code=$?
  cat "$log"
  ((code == 0)) && grep -qE 'test cases: *[1-9]' "$log" && ! grep -q 'skipped: ' "$log"
}
# Ops against the CPU; products of matrices, convolutions and attention by cuBLASLt and cuDNN, where
# they are, and by Troupe's kernels.
gpu_ops() {
  gpu_cases || return
  [[ $(gpu_part cublasLt state) == ready || $(gpu_part cudnn state) == ready ]] || return 0
  TROUPE_CUDA_MATMUL=kernels TROUPE_CUDA_CONV=kernels TROUPE_CUDA_ATTENTION=kernels \
    gpu_cases --test-case='CUDA: products*,CUDA: convolutions*,CUDA: attention*,CUDA: rows of ops*'
}

# gpu_network NAME BOUND ARGUMENT...: trains it on the CPU and twice on the GPU.
gpu_network() {
  local name=$1 bound=$2 run difference same=false code=0
  local runs=$gpu_folder/runs/$name
  shift 2
  for run in cpu gpu again; do
    local on=(--device cuda)
    [[ $run != cpu ]] || on=()
    gpu_limited build/bin/troupe train "$name" "$@" "${on[@]}" --threads 1 --no-recovery \
      --output json --quiet >"$runs.$run" || { cat "$runs.$run"; return 1; }
  done
  of() { jq -r ".$1" "$runs.$2"; }
  difference=$(gpu_apart "$(of loss gpu)" "$(of loss cpu)") || return
  [[ $(of params_sha256 gpu) != "$(of params_sha256 again)" ]] || same=true
  say "$name: loss $(of loss cpu) on the CPU, $(of loss gpu) on the GPU, apart $difference of $bound"
  awk -v a="$difference" -v b="$bound" 'BEGIN { exit !(a + 0 <= b + 0) }' ||
    { say "$name: error: the losses are too far apart"; code=1; }
  [[ $same == true ]] || { say "$name: error: two runs have different bits"; code=1; }
  jq -n --arg name "$name" --argjson cpu "$(of loss cpu)" --argjson gpu "$(of loss gpu)" \
    --argjson apart "$difference" --argjson bound "$bound" --argjson same "$same" \
    '{name: $name, loss_cpu: $cpu, loss_gpu: $gpu, apart: $apart, bound: $bound, same_bits: $same}' |
    gpu_write "$name.json"
  return "$code"
}
gpu_networks() {
  local text=$gpu_folder/text
  gpu_text >"$text"
  gpu_network mnist-mlp 1e-5 --examples 500 --batch 32 --steps 10 &&
    gpu_network mnist-conv 1e-5 --examples 100 --batch 16 --steps 5 &&
    gpu_network cifar-resnet20 1e-3 --examples 40 --batch 8 --steps 3 &&
    gpu_network char-lstm 1e-5 --data "$text" --batch 4 --steps 3
}

gpu_measure() {
  local with=()
  if [[ -n $gpu_label ]]; then
    with=(--rounds 1)
  elif python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    with=(--peer torch)
  fi
  gpu_limited build/bin/troupe bench gpu "${with[@]}" --output json >"$gpu_folder/bench.json"
}

gpu_result() {
  jq -n --arg version "$(build/bin/troupe --version)" --arg date "$(date -u +%FT%TZ)" \
    --arg processor "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" \
    --arg system "$(uname -sr)" --argjson seconds "$1" \
    --slurpfile doctor "$gpu_folder/doctor.json" --slurpfile rows "$gpu_folder/bench.json" \
    --slurpfile kernels "$gpu_folder/kernels.json" \
    --slurpfile networks <(cat "$gpu_folder"/{mnist-mlp,mnist-conv,cifar-resnet20,char-lstm}.json) '
    {date: $date, troupe: $version, seconds: $seconds,
     machine: {processor: $processor, processors: $doctor[0].cpu.processors, system: $system},
     cuda: $doctor[0].cuda, networks: $networks,
     kernels: {functions: ($kernels[0].functions | length), faults: $kernels[0].faults},
     rows: $rows[0]}' | gpu_write result.json
}

gpu_table() {
  jq -r '"\(.machine.processor), \(.machine.processors) processors, \(.machine.system)",
    "\(.troupe)", (.cuda.parts[] | "\(.part): \(.text)"),
    "\(.kernels.functions) functions compiled, \(.kernels.faults) spill or take too many registers",
    (.networks[] | "\(.name): losses \(.apart) apart, of at most \(.bound); twice the same bits")' \
    "$gpu_folder/result.json"
  printf '%-20s %12s %-8s %12s %7s  %s\n' name value unit beside ratio "what is beside it"
  jq -r '.rows[] | [.name, .value, .unit, .peer_value // "-", .ratio // "-", .peer] | @tsv' \
    "$gpu_folder/result.json" | awk -F '\t' '
    function number(x) { return x == "-" ? x : sprintf("%.4g", x) }
    { printf "%-20s %12s %-8s %12s %7s  %s\n", $1, number($2), $3, number($4), number($5), $6 }'
  say "all of it: $gpu_folder/result.json"
}

gpu_run() {  # gpu_run TARGETS...: what else is needed of the build
  local began=$SECONDS ready
  rm -rf "$gpu_folder"
  mkdir -p "$gpu_folder/runs"
  # Whoever has built it before is told at once what is missing.
  [[ -x build/bin/troupe && -z ${1:-} ]] || build troupe "$@"
  gpu_doctor
  build troupe troupe-bench troupe_test_ops
  export TROUPE_CUDA_CACHE=$PWD/$gpu_folder/kernels
  ready=$SECONDS gpu_end=$((SECONDS + 480))
  phase "gpu kernels" gpu_kernels
  phase "gpu ops" gpu_ops
  phase "gpu networks" gpu_networks
  phase "gpu measure" gpu_measure
  gpu_result $((SECONDS - ready))
  gpu_table
  [[ -z $gpu_label ]] || say "these times are those of an emulation, and no measure of anything"
  say "$((ready - began)) s to build, $((SECONDS - ready)) s of checks and measurements"
}

gpu() {
  need jq
  case ${1:-} in
    '') gpu_run ;;
    --fake)
      gpu_label="emulated, not a GPU"
      export TROUPE_CUDA_PATH=$PWD/build/fake-cuda:$PWD/build/fake-nvrtc
      TROUPE_CUDA_PATH+=:$PWD/build/fake-cublaslt:$PWD/build/fake-cudnn:-
      gpu_run troupe_fake_cuda troupe_fake_nvrtc troupe_fake_cublaslt troupe_fake_cudnn 2>&1 | sed -u "s/^/[$gpu_label] /"
      ;;
    *) die "gpu takes --fake or nothing, not '$1'" ;;
  esac
}
