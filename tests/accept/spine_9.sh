#!/usr/bin/env bash
# asan, tsan, clang and builds without oneDNN pass the tests; ISA objects share no kernel symbol
# PRESETS="tsan clang" runs only those. On two cores, most of it from a compiler cache, 18 minutes.
source tests/accept/lib.sh
build=$(dirname "$(dirname "$TROUPE")")

# The preset's build and fast tests: seconds, tests that passed, and the build's own time.
preset() {
  local name=$1 log=$scratch/$1.log start=$SECONDS code=0
  ./dev "$name" >"$log" 2>&1 || code=$?
  figure "$name: seconds, build and tests" $((SECONDS - start))
  figure "$name" "$(grep -E 'tests passed' "$log" || echo 'no tests ran')"
  expect "$name passes the tests" same "$code" 0
  ((code == 0)) || tail -n 40 "$log"
}

# A planted race ends in a report, else the sanitizer is not at work.
planted() {
  local program=build/tsan/bin/planted_$1 report
  [[ -x $program ]] || { figure "$program" missing; return 1; }
  report=$("$program" 2>&1 || true)
  [[ $report == *"WARNING: ThreadSanitizer: data race"* ]]
}

# Symbols that two objects both export, but for the two entry points.
shared_symbols() {
  local object
  for object in "$@"; do nm -D --defined-only "$object" | awk '{ print $NF }' | sort -u; done |
    sort | uniq -d | grep -vxE 'troupe_(register_ops|set_cache_sizes)' | wc -l
}

for name in ${PRESETS:-clang no-onednn tsan asan}; do
  echo "== $name"
  preset "$name"
  [[ $name == tsan ]] || continue
  expect "tsan: a race between threads is reported" planted thread_race
  if [[ -f build/caf-tsan/lib/libcaf_core.so ]]; then
    expect "tsan: a race between actors is reported" planted handler_race
  else
    figure "tsan" "CAF could not be built: the CAF-free targets only"
  fi
done

echo "== kernels of each ISA level"
objects=("$build"/lib/libtroupe_ops_v?.so)
expect "ISA objects export two functions only" bash tests/isa_exports_test.sh "${objects[@]}"
figure "other symbols that two ISA objects share" "$(shared_symbols "${objects[@]}" || true)"
levels=()
for object in "${objects[@]}"; do
  level=${object##*_}
  levels+=("${level%.so}")
done
[[ " ${levels[*]} " != *" v4 "* ]] || levels+=(v4-amx)  # the same object
for level in "${levels[@]}"; do
  code=0
  TROUPE_ISA=$level "$TROUPE" --version >"$scratch/version" 2>&1 || code=$?
  if ((code)); then
    figure "$level" "not run: $(tail -n 1 "$scratch/version")"
    continue
  fi
  TROUPE_ISA=$level "$build/bin/troupe_test_ops" --minimal --test-case-exclude='*[slow]*' \
    >"$scratch/$level.log" 2>&1 || code=$?
  expect "$level passes the tests of ops/" same "$code" 0
  ((code == 0)) || tail -n 40 "$scratch/$level.log"
done
conclude
