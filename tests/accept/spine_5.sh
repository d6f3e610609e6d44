#!/usr/bin/env bash
# seeded schedules of a training cluster in one process and virtual time
source tests/accept/lib.sh
expect "protocols under schedules" cases protocol "*schedule*"
expect "the network in memory replays a seed" cases net "*same seed*"
expect "a training cluster under schedules" cases actors "*schedule*"
conclude
