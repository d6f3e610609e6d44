#!/usr/bin/env bash
# Input from files: each replica reads its own, as fast as the machine and as others; for a machine that does nothing else
# ROUNDS: medians of so many. PYTHON: one with torch and PIL, or tensorflow; what it lacks is skipped by name.
# KILLS: how often each of the two runs is killed. SEED: of the moments, which are printed.
source tests/accept/lib.sh
python=${PYTHON:-python3} kills=${KILLS:-5} seed=${SEED:-$RANDOM}
RANDOM=$seed

echo "== each replica reads its own examples =="
expect "replicas send no examples, and read the same on any number of processes" cases actors "replicas *"
expect "none are sent from where they are read" cases graph "each replica reads its elements*"
expect "of what others take little is read, and nothing computed" cases ops \
  "of large records*,of elements on the way*"
# Of 4 replicas on 4 workers: bytes of tensors that 4 steps send between processes.
sent() {
  "$TROUPE" train mnist-conv --quiet --output json --examples 2560 --steps 8 --batch "$1" --replicas 4 --threads 1 \
    --cluster local:4 --trace "$scratch/trace" --trace-steps 4 >"$scratch/four.$1" || return 1
  jq '[.traceEvents[] | select(.ph == "X" and .cat == "send" and .name == "tensor") | .args.bytes] | add' \
    "$scratch/trace"
}
small=$(sent 16) large=$(sent 64)
figure "bytes of tensors sent, batches of 16 and 64" "$small $large"
expect "0 of them are of examples: four times the examples change nothing" same "$small" "$large"
one=$("$TROUPE" train mnist-conv --quiet --output json --examples 2560 --steps 8 --batch 64 --replicas 4 --threads 1 |
  field params_sha256)
expect "the hash of one process" same "$one" "$(field params_sha256 <"$scratch/four.64")"

echo "== killed in the middle of a pass, and resumed =="
figure "seed of the moments" "$seed"
reader=${BUILD:-build}/bin/reader
mkdir "$scratch/images" "$scratch/records"
"$reader" write "$scratch/records"
# 1,200 pictures in 4 folders, as PNG files.
python3 - "$scratch/images" <<'PYTHON'
import os, struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for i in range(1200):
    rows = b"".join(b"\0" + bytes((x * y * (i % 4 + 1) + i) % 256 for x in range(16)) for y in range(16))
    os.makedirs(f"{sys.argv[1]}/class_{i % 4}", exist_ok=True)
    with open(f"{sys.argv[1]}/class_{i % 4}/{i:04}.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PYTHON
steps=3000  # of two replicas, 16 examples: 40 passes
for kind in images records; do
  run=("$reader" "$kind" "$scratch/$kind" $steps)
  "${run[@]}" "$scratch/$kind.one" --replicas 2 --quiet
  hash=$(sha256sum <"$scratch/$kind.one")
  killed=0 code=137 lives=0
  # On one process and on two in turn.
  while ((code == 137 && lives < 100)); do
    lives=$((lives + 1)) clusters=(local local:2)
    "${run[@]}" "$scratch/$kind.more" --replicas 2 --cluster "${clusters[lives % 2]}" --quiet \
      --job-dir "$scratch/$kind.job" --checkpoint-every 7 2>"$scratch/errors" &
    pid=$!
    # After the next checkpoint, and a moment.
    if ((killed < kills)); then
      newest() { (ls "$scratch/$kind.job" 2>/dev/null || true) | sort -V | tail -n 1; }
      before=$(newest)
      while [[ $(newest) == "$before" ]] && kill -0 $pid 2>/dev/null; do :; done
      for ((spin = RANDOM; spin > 0; --spin)); do :; done
      kill -9 $pid 2>/dev/null || true
    fi
    code=0
    wait $pid 2>/dev/null || code=$?
    ((code != 137)) || killed=$((killed + 1))
  done
  ((code == 0)) || cat "$scratch/errors"
  expect "$kind: killed $kills times (was $killed)" same "$killed" "$kills"
  expect "$kind: the hash of a run that nobody disturbed" same "$hash" "$(sha256sum <"$scratch/$kind.more")"
done

echo "== rates =="
peers=()
if "$python" -c 'import torch.nn' 2>/dev/null; then
  peers+=(--peer torch)
  "$python" -c 'import PIL.Image' 2>/dev/null || figure "pictures beside PyTorch" "skipped: $python cannot import PIL"
else
  figure "beside PyTorch's DataLoader" "skipped: $python cannot import torch"
fi
if "$python" -c 'import tensorflow' 2>/dev/null; then peers+=(--peer tensorflow)
else figure "beside tf.data" "skipped: $python cannot import tensorflow"; fi
PATH=$(dirname "$(command -v "$python")"):$PATH
measure() {
  "$TROUPE" bench input --rounds "${ROUNDS:-5}" "${peers[@]}" --quiet --output json >"$scratch/rows"
}
of() { jq -r --arg n "$1" --arg f "$2" 'map(select(.name == $n)) | .[0][$f] // empty' "$scratch/rows"; }
# kept: whether all limits hold in this measurement. A machine has slow minutes: of three one has to.
kept() {
  local kind threads code=0
  figure "MB/s of large records, of read(2)" \
    "$(of input.tfrecord.large value) $(of input.tfrecord.large peer_value), $(of input.tfrecord.large ratio)"
  figure "MB/s of records of 1,000 bytes" "$(of input.tfrecord.small value)"
  at_least "$(of input.tfrecord.large ratio)" 0.8 || code=1
  figure "JPEG images/s, of libjpeg-turbo" \
    "$(of input.jpeg value) $(of input.jpeg peer_value), $(of input.jpeg ratio)"
  at_least "$(of input.jpeg ratio)" 0.95 || code=1
  for kind in images records; do
    for threads in 1 2; do
      figure "$kind/s, $threads threads" "$(awk -v us="$(of input.$kind.t$threads value)" 'BEGIN { print 1e6 / us }')"
      [[ -n $(of input.$kind.t$threads peer) ]] || continue
      figure "  of the time of $(of input.$kind.t$threads peer)" "$(of input.$kind.t$threads ratio)"
      at_most "$(of input.$kind.t$threads ratio)" 1.0 || code=1
    done
  done
  return $code
}
holds=1
for _ in 1 2 3; do
  measure
  if kept; then holds=0; break; fi
done
expect "records at 0.8 of read(2), JPEG at 0.95 of libjpeg-turbo, pipelines as fast as others'" test $holds = 0
conclude
