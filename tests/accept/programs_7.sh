#!/usr/bin/env bash
# mutexes, and queues of every kind: a million operations with cancels and closes lose nothing
# OPERATIONS: how many of these
source tests/accept/lib.sh

# said SUITE PATTERN: runs those cases, and prints what they say of themselves.
said() {
  local code=0
  TROUPE_OPERATIONS=${OPERATIONS:-1000000} cases "$1" "$2" >"$scratch/log" 2>&1 || code=$?
  ((code == 0)) || tail -n 20 "$scratch/log" | sed 's/^/  | /'
  sed -n 's/^.*MESSAGE: /  | /p; /test cases  *[0-9]*$/p' "$scratch/log"
  return "$code"
}

echo "== one queue, and who holds which mutexes, under seeded schedules =="
expect "each run gets what an obvious account says" said protocol "queues of every kind give runs*"
expect "queues go on elsewhere, whatever is staged" said protocol "a queue that goes on elsewhere*"
expect "hostile states are refused" said protocol "hostile bytes of a queue*"
expect "holders in turn, without deadlock or redo" said protocol "who holds mutexes in any order*"
echo "== sessions, in one process and on two workers =="
expect "16 clients lock, read, add and assign" said actors "16 clients that lock*"
expect "waits, ends and misuse of mutexes" said actors \
  "a run waits for a mutex*,a mutex is free again*,a run that acquires twice*,mutexes stand in*"
expect "batches, padding, loops, saved and restored" said actors \
  "batches enter and leave*,a queue that pads*,loops and functions put*,queues of every kind are saved*"
echo "== ${OPERATIONS:-1000000} operations by 16 clients =="
expect "nothing lost, nothing twice, in order" said actors "a million operations*"
conclude
