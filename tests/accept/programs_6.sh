#!/usr/bin/env bash
# TensorBoard reads curves, distributions, pictures, text, the graph and run metadata of a real run
source tests/accept/lib.sh

# skip WHY: nothing could be checked.
skip() { figure "TensorBoard" "skipped: $1"; conclude; exit 0; }

python=${TENSORBOARD:-}
if [[ -z $python ]]; then
  command -v python3 >/dev/null || skip "there is no python3 (TENSORBOARD names one with tensorboard)"
  python3 -m venv "$scratch/venv" >"$scratch/pip.log" 2>&1 || skip "python3 has no venv: install python3-venv"
  "$scratch/venv/bin/pip" install --quiet tensorboard >>"$scratch/pip.log" 2>&1 ||
    skip "pip cannot install tensorboard: $(tail -n 1 "$scratch/pip.log")"
  python=$scratch/venv/bin/python
fi
"$python" -c 'import tensorboard' || { expect "$python has tensorboard" false; conclude; }
figure "TensorBoard" "$("$python" -c 'import tensorboard; print(tensorboard.__version__)')"

# A run that is killed in its midst, and goes on.
train=("$TROUPE" train mnist-conv --examples 6400 --steps 60 --seed 5 --replicas 2 --cluster local:2
       --quiet --output json)
shown=(--logdir "$scratch/logs/conv" --summary-every 5 --checkpoint-dir "$scratch/ckpt"
       --checkpoint-every 10)
"${train[@]}" "${shown[@]}" >/dev/null 2>"$scratch/first.err" &
first=$!
until [[ -e $scratch/ckpt/ckpt-20 ]] || ! kill -0 "$first" 2>/dev/null; do sleep 0.05; done
kill -9 "$first" 2>/dev/null || true
wait "$first" 2>/dev/null || true
"${train[@]}" "${shown[@]}" --resume >"$scratch/result" 2>"$scratch/second.err" ||
  { cat "$scratch/second.err"; expect "the run goes on" false; conclude; }
"${train[@]}" >"$scratch/plain" 2>/dev/null
expect "the bits of a run without a logdir" same \
  "$(field params_sha256 <"$scratch/result")" "$(field params_sha256 <"$scratch/plain")"
expect "no summary is lost" same 0 "$(field lost_summaries <"$scratch/result")"

# The README's program, through Job::report alone.
"${BUILD:-build}/bin/examples/mnist" --logdir "$scratch/logs/example" >"$scratch/example" ||
  expect "the README's program ends well" false

# A program that writes all there is, with values that are known.
expect "a program with known values ends well" "${BUILD:-build}/bin/shown" "$scratch/logs/shown"

expect "TensorBoard reads it all" "$python" tests/accept/check_events.py \
  "$scratch/logs" "$scratch/result" "$scratch/ckpt" "$scratch/example"
conclude
