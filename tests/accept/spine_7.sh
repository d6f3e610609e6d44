#!/usr/bin/env bash
# a 5 GB tensor between processes; Extend, deadlines and Close
source tests/accept/lib.sh
expect "5 GB within its credits" cases net "*5 GB*"
for word in Extend deadline Close; do expect "$word" cases actors "*$word*"; done
conclude
