#!/usr/bin/env bash
# the same bits for one process, two processes and 1, 2 and 3 threads, over 20 runs
source tests/accept/lib.sh
runs=${RUNS:-20}
hash_of() {
  "$TROUPE" train mnist-conv --replicas 2 --steps 20 --seed 7 --output json --quiet "$@" |
    field params_sha256
}
want=$(hash_of --threads 1)
figure "params_sha256" "$want"
different=0
for ((run = 0; run < runs; ++run)); do
  for options in "--threads 1" "--threads 2" "--threads 3" "--cluster local:2"; do
    # shellcheck disable=SC2086
    same "$(hash_of $options)" "$want" || { different=$((different + 1)); echo "differs: $options"; }
  done
done
figure "runs" "$((4 * runs))"
figure "runs that differ" "$different"
expect "no run differs" same "$different" 0
conclude
