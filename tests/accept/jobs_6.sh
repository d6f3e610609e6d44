#!/usr/bin/env bash
# The service example: each request is answered or refused, and none is counted twice or forgotten, while its parts are killed
# REQUESTS, CLIENTS: of all clients together. EVERY: seconds between kills.
source tests/accept/lib.sh
service=$(dirname "$TROUPE")/examples/service
requests=${REQUESTS:-10000} clients=${CLIENTS:-8} every=${EVERY:-1}
RANDOM=${SEED:=$RANDOM}
figure "seed" "$SEED"

"$TROUPE" run --job "$scratch/job" -- "$service" --socket "$scratch/socket" 2>"$scratch/said" &
supervisor=$!
python3 tests/accept/service_clients.py "$scratch/socket" "$requests" "$clients" "${PAUSE_MS:-20}" \
  >"$scratch/result" 2>"$scratch/errors" &
asking=$!

# Of the job: the service is the supervisor's child, the process that learns is the service's.
child_of() { pgrep -P "${1:-0}" | head -n 1 || true; }
until learner=$(child_of "$(child_of "$supervisor")") && [[ -n $learner ]]; do sleep 0.02; done
kill -9 "$learner"  # before it has learned
declare -A killed=([service]=0 [learner]=1 [actor]=0)
while sleep "$every" && kill -0 "$asking" 2>/dev/null; do
  program=$(child_of "$supervisor")
  learner=$(child_of "$program")
  case $((RANDOM % 3)) in
    0) part=service ;;
    1) part=actor ;;
    2) part=learner ;;
  esac
  [[ $part != learner || -n $learner ]] || part=service
  case $part in
    service) kill -9 "${program:-0}" 2>/dev/null || continue ;;
    learner) kill -9 "$learner" 2>/dev/null || continue ;;
    actor) python3 -c "
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b'crash 63 1\n')
s.recv(1)" "$scratch/socket" 2>/dev/null || continue ;;
  esac
  killed[$part]=$((killed[$part] + 1))
done
wait "$asking" || { cat "$scratch/errors"; expect "the clients end" false; }
figure "killed" "service ${killed[service]}, its child ${killed[learner]}, an actor of it ${killed[actor]}"
result() { field "$1" <"$scratch/result"; }
figure "requests, tries, refusals" "$(result requests), $(result tries), $(result refusals)"
figure "slowest answer (s)" "$(result slowest_s)"
expect "every request was answered" same "$(result answered)" "$(result requests)"
expect "within 3 s: $(result within_3s), at least 95 %" \
  at_least "$(result within_3s)" "$(($(result requests) * 95 / 100))"
expect "the count is that of the answered requests" same "$(result count)" "$(result requests)"
kill -TERM "$supervisor"
code=0
wait "$supervisor" || code=$?
expect "SIGTERM ends it in order" same "$code" 143
none_left() { ! pgrep -f "service --socket $scratch/socket"; }
expect "none of its processes is left" none_left
conclude
