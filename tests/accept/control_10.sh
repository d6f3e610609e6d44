#!/usr/bin/env bash
# what was promised before loops is so still: every item of spine and house, some two hours
# For a machine that does nothing else. ITEMS: only those, as "spine.1 house.5".
source tests/accept/lib.sh
run_groups spine house
conclude
