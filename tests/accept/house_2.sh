#!/usr/bin/env bash
# from nothing, no compiler cache: demo within 300 s, test within 450 s more, fast tests within 60 s
# For a machine of two cores that does nothing else. Builds a clone of the last commit in $DIR, by
# default a temporary folder.
source tests/accept/lib.sh
export CCACHE_DISABLE=1
clone=${DIR:-$scratch}/clone
git clone --quiet --no-hardlinks . "$clone"
figure "commit" "$(git -C "$clone" log -1 --format='%h %s')"
figure "cores, load before" "$(nproc), $(cut -d' ' -f1 /proc/loadavg)"
./dev setup

# timed NAME LIMIT: ./dev NAME in the clone, within LIMIT seconds, and the CPU seconds of both.
timed() {
  local name=$1 limit=$2 log=$scratch/$1.log code=0 real user system
  local TIMEFORMAT='%R %U %S'
  { time (cd "$clone" && ./dev "$name" >"$log" 2>&1); } 2>"$scratch/time" || code=$?
  read -r real user system <"$scratch/time"
  grep -E '^(configure|build) ' "$log" || true
  figure "./dev $name, seconds" "$real"
  figure "./dev $name, CPU seconds (user, system)" "$user, $system"
  expect "./dev $name succeeds" same "$code" 0
  ((code == 0)) || tail -n 40 "$log"
  expect "./dev $name within $limit s" at_most "$real" "$limit"
}

timed demo 300
grep -E 'accuracy' "$scratch/demo.log" | tail -n 1 || true
timed test 450
seconds=$(test_seconds "$scratch/test.log")
figure "fast tests, seconds" "$seconds"
expect "fast tests within 60 s" at_most "$seconds" 60
conclude
