#!/usr/bin/env bash
# what was promised before jobs is so still: every item of ground, whose last runs those of control, house and spine
# For a machine that does nothing else, and hours of it. ITEMS: only those, as "ground.1 house.5".
source tests/accept/lib.sh
run_groups ground
conclude
