#!/usr/bin/env bash
# what was promised before programs of others is so still: every item of jobs, whose last runs those of ground and all before
# For a machine that does nothing else, and hours of it. ITEMS: only those, as "jobs.1 house.5".
source tests/accept/lib.sh
run_groups jobs
conclude
