#!/usr/bin/env bash
# asan, tsan, clang and builds without oneDNN pass the tests; ISA objects share no kernel symbol
source tests/accept/lib.sh
for preset in asan tsan clang no-onednn; do
  echo "== $preset"
  code=0
  ./dev $preset || code=$?
  expect "$preset passes" same "$code" 0
done
expect "ISA objects export two functions only" \
  bash tests/isa_exports_test.sh build/lib/libtroupe_ops_v*.so
conclude
