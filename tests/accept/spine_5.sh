#!/usr/bin/env bash
# seeded schedules of a training cluster in one process and virtual time
source tests/accept/lib.sh
export TROUPE_SCHEDULES=${SEEDS:-1000}
figure "seeds of each cluster" "$TROUPE_SCHEDULES"
expect "protocols under schedules" cases protocol "*schedule*"
expect "the network in memory replays a seed" cases net "*same seed*"
expect "one result under every schedule of a cluster" \
  cases actors "every schedule of a training cluster*long*"
expect "two sessions make progress under every schedule" \
  cases actors "two sessions*blocked in Dequeue*long*"
expect "concurrent writers are transactions under every schedule" \
  cases actors "concurrent writers on two workers*long*"
expect "a lost worker is told under every schedule" cases actors "the loss of a worker*long*"
expect "a seed that fails is found and replays exactly" cases actors "*failing seed*"
conclude
