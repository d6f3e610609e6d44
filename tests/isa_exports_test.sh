#!/usr/bin/env bash
# isa_exports_test.sh FILES...: an ISA object exports its two entry points and nothing else, so
# that no kernel of one level can be bound to a caller of another.
set -euo pipefail
[[ $# -gt 0 ]] || { echo "no ISA object given"; exit 1; }
for object in "$@"; do
  exported=$(nm -D --defined-only "$object" | awk '{print $NF}' | sort | tr '\n' ' ')
  if [[ $exported != "troupe_register_ops troupe_set_cache_sizes " ]]; then
    echo "$object exports: $exported"
    exit 1
  fi
done
