#!/usr/bin/env bash
# what was promised before GPUs is so still: every item of programs, whose last runs those of jobs and all before
# For a machine that does nothing else, and hours of it. ITEMS: only those, as "programs.1 house.5".
source tests/accept/lib.sh
run_groups programs
conclude
