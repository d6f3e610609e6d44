#!/usr/bin/env bash
# without a toolkit and a GPU: a clone builds and tests, links no library of CUDA, and says what is missing
source tests/accept/lib.sh
clone=$scratch/clone
git clone --quiet --no-hardlinks . "$clone"
export TROUPE_CUDA_PATH=-  # nothing is looked for anywhere
code=0
(cd "$clone" && ./dev test >"$scratch/test.log" 2>&1) || code=$?
((code == 0)) || tail -n 40 "$scratch/test.log"
expect "./dev test with any toolkit hidden" same "$code" 0
expect "no header of CUDA was found" grep -q 'TROUPE_CUDA_HEADERS.*NOTFOUND' "$clone/build/CMakeCache.txt"
"$clone/build/bin/troupe_test_devices" --test-case='CUDA*' >"$scratch/cuda.log" 2>&1 || true
for wheel in nvidia-cuda-runtime nvidia-cuda-nvrtc nvidia-cublas nvidia-cudnn-cu13; do
  expect "a skipped test names the wheel $wheel" grep -q "skipped: .*wheel $wheel" "$scratch/cuda.log"
done

TROUPE=$clone/build/bin/troupe
links_none() { ! ldd "$TROUPE" | grep -iE 'cuda|nvrtc|cublas|cudnn|nccl'; }
expect "ldd names no library of CUDA" links_none
fake=$clone/build/fake-cuda
# says PATH FAKE PART TEXT: the line of doctor, and of training without a GPU where it is the driver's
says() {
  local line code=0
  line=$(TROUPE_CUDA_PATH=$1 TROUPE_FAKE_CUDA=$2 "$TROUPE" doctor | grep "^$3 ")
  figure "" "$line"
  [[ $line == *"$4"* ]] || return 1
  [[ $3 == driver && $4 != 'the fake driver of CUDA 13.0' ]] || return 0
  TROUPE_CUDA_PATH=$1 TROUPE_FAKE_CUDA=$2 "$TROUPE" train mnist-mlp --device cuda \
    >"$scratch/train.log" 2>&1 || code=$?
  ((code == 1)) && grep -qF "${line#driver    }" "$scratch/train.log"
}
expect "no driver" says /nowhere:- '' driver 'no driver: '
expect "a stub library" says "$fake:-" stub=1 driver 'is a stub'
expect "an old driver" says "$fake:-" version=11040 driver 'too old: '
expect "a fake driver without a device" says "$fake:-" devices=0 driver 'no device: the fake driver'
expect "a fake driver" says "$fake:-" '' driver 'the fake driver of CUDA 13.0'
expect "its device" says "$fake:-" '' gpu:0 'Fake GPU'
expect "a missing compiler of kernels" says "$fake:-" '' nvrtc 'the wheel nvidia-cuda-nvrtc has it'
expect "a missing cuBLAS" says "$fake:-" '' cublasLt 'the wheel nvidia-cublas has it'
expect "a missing cuDNN" says "$fake:-" '' cudnn 'the wheel nvidia-cudnn-cu13 has it'
conclude
