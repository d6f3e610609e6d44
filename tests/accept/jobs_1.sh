#!/usr/bin/env bash
# a training run that is killed at random and resumed ends after the steps, and with the bits, of a whole one
# KILLS: how often. SEED: of the moments, which are printed.
source tests/accept/lib.sh
kills=${KILLS:-20} seed=${SEED:-$RANDOM}
RANDOM=$seed
figure "seed of the moments" "$seed"
train=(train char-lstm --validate-every 20 --patience 3 --learning-rate 1e-30 --threads 1 --output json)
"$TROUPE" "${train[@]}" >"$scratch/whole"
job=("${train[@]}" --checkpoint-dir "$scratch/job" --checkpoint-every 3)

# One life, which is over by itself or killed.
life() {
  "$TROUPE" "$@" >"$scratch/ended" 2>"$scratch/errors" &
  local pid=$! code=0
  sleep "$(awk -v r=$RANDOM 'BEGIN { print 0.4 + 0.8 * r / 32768 }')"
  kill -9 $pid 2>/dev/null || true
  wait $pid 2>/dev/null || code=$?
  ended=$code
}
killed=0 ended=137
life "${job[@]}"
((ended != 137)) || killed=$((killed + 1))
for ((i = 0; i < 100 && killed < kills; ++i)); do
  # A run that is over begins anew, until it was killed often enough.
  if ((ended != 137)); then
    ((ended == 0)) || { cat "$scratch/errors"; break; }
    cp "$scratch/ended" "$scratch/resumed"
    rm -rf "$scratch/job"
  fi
  if compgen -G "$scratch/job/ckpt-*" >/dev/null; then life "${job[@]}" --resume
  else rm -rf "$scratch/job"; life "${job[@]}"; fi
  ((ended != 137)) || killed=$((killed + 1))
done
resume=()
! compgen -G "$scratch/job/ckpt-*" >/dev/null || resume=(--resume)
"$TROUPE" "${job[@]}" "${resume[@]}" >"$scratch/resumed" 2>"$scratch/errors" || cat "$scratch/errors"
expect "killed $kills times (was $killed)" same "$killed" "$kills"
for what in steps params_sha256 best_step validation_loss; do
  figure "$what, whole and resumed" "$(field $what <"$scratch/whole"), $(field $what <"$scratch/resumed")"
  expect "the same $what" same "$(field $what <"$scratch/whole")" "$(field $what <"$scratch/resumed")"
done
conclude
