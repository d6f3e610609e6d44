#!/usr/bin/env bash
# programs under `troupe run`, of which a random process is killed again and again, end with the bits of a whole run
# SEED: of the moments and processes, which is printed. STEPS, KILLS: of the first program, steps in all
# and kills at least.
source tests/accept/lib.sh
seed=${SEED:-$RANDOM} least=${KILLS:-8}
RANDOM=$seed
figure "seed" "$seed"

# below PID: the processes that it started, and those that they started.
below() {
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do echo "$child"; below "$child"; done
}
between() { awk -v r=$RANDOM -v a="$1" -v b="$2" 'BEGIN { print a + (b - a) * r / 32768 }'; }
size_of() { echo "$(awk '/VmRSS/ { print $2 }' /proc/"$1"/status) $(ls /proc/"$1"/fd | wc -l)"; }

# supervised NAME FROM TO MOST PROGRAM...: runs it while a random process of the job, the supervisor
# not, is killed every FROM to TO seconds, MOST times. Sets `code` and `kills`.
supervised() {
  local name=$1 from=$2 to=$3 most=$4 supervisor pids before after
  shift 4
  "$TROUPE" run --job "$scratch/$name" -- "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" &
  supervisor=$!
  kills=0 code=0
  sleep 0.5
  before=$(size_of $supervisor)
  while kill -0 $supervisor 2>/dev/null; do
    sleep "$(between "$from" "$to")"
    mapfile -t pids < <(below $supervisor)
    ((${#pids[@]} && kills < most)) || continue
    after=$(size_of $supervisor 2>/dev/null || true)
    kill -9 "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null && kills=$((kills + 1))
  done
  wait $supervisor || code=$?
  figure "$name: kills, lives" "$kills, $(grep -c started "$scratch/$name/lives.log")"
  figure "$name: supervisor's KiB and descriptors, first and last" "$before, ${after:-unknown}"
  expect "$name ends with 0 (was $code)" same "$code" 0
  ((code == 0)) || tail -n 5 "$scratch/$name.err"
  expect "$name: descriptors of the supervisor stay" same "${before#* }" "${after#* }"
  expect "$name: memory of the supervisor stays" at_most "${after% *}" $((${before% *} + 1024))
  expect "$name leaves no process" test -z "$(pgrep -f -- "$scratch/$name" || true)"
}
newest() { jq -r .tensors_sha256 "$1"/"$(ls "$1" | grep '^ckpt-' | sort -V | tail -n 1)"/manifest.json; }

train=(train mnist-conv --cluster local:3 --replicas 3 --threads 1 --steps "${STEPS:-900}" --output json)
"$TROUPE" "${train[@]}" >"$scratch/whole"
supervised conv 3 6 100000 "$TROUPE" "${train[@]}"
expect "conv: at least $least kills" at_least "$kills" "$least"
figure "params_sha256, whole and killed" \
  "$(field params_sha256 <"$scratch/whole"), $(field params_sha256 <"$scratch/conv.out")"
expect "conv: the same bits" \
  same "$(field params_sha256 <"$scratch/whole")" "$(field params_sha256 <"$scratch/conv.out")"

# The README's program: its own Job, on two workers. It is short, so it is killed often, but not as
# often as a supervisor gives up at.
mnist=$(dirname "$TROUPE")/examples/mnist
"$mnist" --threads 1 --job-dir "$scratch/mnist-whole" >"$scratch/mnist-whole.out"
supervised mnist 0.3 1 6 "$mnist" --threads 1 --cluster local:2
expect "mnist: at least once killed" at_least "$kills" 1
expect "mnist: the same bits" \
  same "$(newest "$scratch/mnist-whole")" "$(newest "$scratch/mnist/checkpoints")"
conclude
