#!/usr/bin/env bash
# ops with CUDA kernels on the emulated GPU, against the CPU, and planted mistakes under sanitizers
# Not hardware.
source tests/accept/lib.sh
expect "the device on the fake driver" cases devices 'CUDA:*'
expect "kernels on the emulated GPU have the CPU's results" cases ops 'CUDA:*'
expect "programs with a GPU beside the CPU" cases apps '*GPU*'
expect "integers of the host stay in its memory" cases ops '*host memory*'
expect "mistakes of host code are reported" cases devices \
  'CUDA: a missing wait*,CUDA: memory that another stream*,CUDA: a kernel that does not*,CUDA: *of another GPU*'
expect "1,000 seeds of faults: the right result, or the node" cases apps 'the same with a thousand seeds*'

kernels=$("$TROUPE" ops --device cuda --all --output json |
  jq '[.[] | select(.devices | index("CUDA"))] | length')
figure "ops with a CUDA kernel" "$kernels"
expect "at least 160 ops have one" at_least "$kernels" 160

# Device code under the sanitizers.
compile=("${CXX:-g++}" -std=c++20 -O1 -g1 -ffp-contract=off -I.)
"${compile[@]}" -fsanitize=address,undefined tests/fake_cuda/planted.cpp tests/fake_cuda/simt.cpp \
  -o "$scratch/asan"
"${compile[@]}" -fPIC -shared -fvisibility=hidden -fvisibility-inlines-hidden -DTROUPE_SIMT_TSAN \
  tests/fake_cuda/simt.cpp -o "$scratch/libsimt.so"
"${compile[@]}" -fsanitize=thread tests/fake_cuda/planted.cpp -o "$scratch/tsan" \
  -L"$scratch" -lsimt -Wl,-rpath,"$scratch"
reported() {  # reported PROGRAM BUG TEXT
  ! "$scratch/$1" "$2" >"$scratch/report" 2>&1 && grep -q -- "$3" "$scratch/report"
}
for program in asan tsan; do
  expect "$program: sound kernels are clean" "$scratch/$program" sound
done
expect "a write out of bounds is reported" reported asan bounds heap-buffer-overflow
expect "one in block memory is reported" reported asan block_bounds 'out of bounds'
expect "a barrier that some threads miss is reported" reported asan divergent \
  'threads wait for others that never come'
expect "a race is reported" reported tsan race 'data race'
expect "a missing barrier is reported" reported tsan missing_barrier 'data race'
conclude
