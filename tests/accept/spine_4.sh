#!/usr/bin/env bash
# kill -9 of a worker, without recovery: a clear error within a second, exit code 75, resume gives the same bits
source tests/accept/lib.sh
common=(train mnist-mlp --cluster local:2 --replicas 2 --steps 600 --seed 5 --output json --no-recovery)
"$TROUPE" "${common[@]}" >"$scratch/undisturbed"
want=$(field params_sha256 <"$scratch/undisturbed")

"$TROUPE" "${common[@]}" --checkpoint-dir "$scratch/ckpt" --checkpoint-every 20 \
  >"$scratch/killed" 2>"$scratch/errors" &
master=$!
until compgen -G "$scratch/ckpt/*" >/dev/null; do
  kill -0 $master 2>/dev/null || { cat "$scratch/errors"; echo "ended before a checkpoint"; exit 1; }
  sleep 0.02
done
mapfile -t workers < <(ps -o pid= --ppid $master | tr -d ' ')
expect "there are worker processes" test "${#workers[@]}" -ge 1
kill -9 "${workers[0]}"
start=$(now_ms)
code=0
wait $master || code=$?
figure "milliseconds to the end" "$(($(now_ms) - start))"
expect "within 1 s" at_most $(($(now_ms) - start)) 1000
expect "exit code 75 (was $code)" same "$code" 75
sed 's/^/  | /' "$scratch/errors" | tail -n 5
expect "the error names a worker" grep -qi "worker" "$scratch/errors"
expect "the error names a device" grep -qiE "(cpu|fake):[0-9]" "$scratch/errors"
expect "the error names the step" grep -qi "step" "$scratch/errors"
left=0
for pid in "${workers[@]}"; do kill -0 "$pid" 2>/dev/null && left=$((left + 1)); done
expect "no process is left behind" same "$left" 0

"$TROUPE" "${common[@]}" --checkpoint-dir "$scratch/ckpt" --resume >"$scratch/resumed"
figure "params_sha256, undisturbed" "$want"
figure "params_sha256, resumed" "$(field params_sha256 <"$scratch/resumed")"
expect "the same bits" same "$(field params_sha256 <"$scratch/resumed")" "$want"
conclude
