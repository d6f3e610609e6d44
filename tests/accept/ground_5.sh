#!/usr/bin/env bash
# what was promised before is so still: every item of control, whose last runs those of spine and house
# For a machine that does nothing else, and hours of it. ITEMS: only those, as "control.1 house.5".
# BASE: the commit with whose speed house.5 compares.
source tests/accept/lib.sh
export BASE=${BASE:-4d7ce11}
run_groups control
conclude
