#!/usr/bin/env bash
# what was promised before loops is so still: every item of spine and house, some two hours
# For a machine that does nothing else. ITEMS: only those, as "spine.1 house.5".
source tests/accept/lib.sh
if [[ -z ${ITEMS:-} ]]; then
  for group in spine house; do
    for number in $(ls tests/accept | sed -n "s/^${group}_\([0-9]*\)\.sh$/\1/p" | sort -n); do
      ITEMS+=" $group.$number"
    done
  done
fi
run_items $ITEMS
conclude
