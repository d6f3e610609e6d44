#!/usr/bin/env bash
# what was fast stays fast: interleaved runs of this build and of the one before the rooms were built
# For a machine that does nothing else. BASE: the commit to compare with. BASE_TROUPE: its command,
# when it is built already. ROUNDS: of each build. The spine items run by themselves.
source tests/accept/lib.sh
base=${BASE:-b5cadad}
groups=${ONLY:-executor step kernels train}
if [[ -z ${BASE_TROUPE:-} ]]; then
  git clone --quiet --no-hardlinks . "$scratch/base"
  git -C "$scratch/base" checkout --quiet "$base"
  (cd "$scratch/base" && ./dev build >"$scratch/base.log" 2>&1) || { tail "$scratch/base.log"; exit 1; }
  BASE_TROUPE=$scratch/base/build/bin/troupe
fi
# measure ROUND BENCH-ARGUMENT...: the old build, the new one, and the old one again.
measure() {
  local side program
  for side in old new again; do
    program=$BASE_TROUPE
    [[ $side == new ]] && program=$TROUPE
    "$program" bench "${@:2}" --rounds 1 --quiet --output json >"$scratch/$side.$1"
  done
}
# For each row: how much slower the new build is than the old one, and one build than itself. What
# is slower is so in its fastest round and in its middle one: what else a machine does slows rounds
# down, and where threads wait to be woken a single round is fast by luck. Rates (units like GFLOP/s)
# are the better the larger they are.
compare() {
  jq -n -r --slurpfile old <(cat "$scratch"/old.*) --slurpfile new <(cat "$scratch"/new.*) \
    --slurpfile again <(cat "$scratch"/again.*) '
    def rate: .unit | test("/s");
    def rows: add | group_by(.name) | map((map(.value) | sort) as $values |
      {key: .[0].name, value: {unit: .[0].unit, middle: $values[length / 2 | floor],
        v: (if .[0] | rate then $values[-1] else $values[0] end)}}) | from_entries;
    def slower($a; $b): if $a | rate then [$a.v / $b.v, $a.middle / $b.middle]
      else [$b.v / $a.v, $b.middle / $a.middle] end | min;
    ($old | rows) as $o | ($new | rows) as $n | ($again | rows) as $a |
    $o | keys[] | select($n[.] and $a[.] and $o[.].v > 0 and $n[.].v > 0 and $a[.].v > 0) |
    [., $o[.].v, $n[.].v, slower($o[.]; $n[.]), slower($o[.]; $a[.])] | @tsv' >"$scratch/table"
}
rounds=${ROUNDS:-5}
for ((round = 1; round <= rounds; ++round)); do
  # shellcheck disable=SC2086
  measure "$round" $groups
done
compare
# What looks slower is measured twice as often again by itself, both builds alike, up to six times:
# a row that waits for threads to wake up differs by more than a half from round to round.
for pass in {1..6}; do
  for name in $(awk -F'\t' '$4 > 1.05 { print $1 }' "$scratch/table"); do
    figure "once more" "$name"
    for ((round = 1; round <= 2 * rounds; ++round)); do
      measure "$name.$pass.$round" "${name%%.*}" --only "$name"
    done
  done
  compare
done
# The spread of an A/A run: nine tenths of the rows lie closer together than this; 5 % at least.
spread=$(awk -F'\t' '{ d = $5 - 1; print (d < 0 ? -d : d) }' "$scratch/table" | sort -g |
  awk '{ r[NR] = $1 } END { s = r[int(NR * 0.9) + 1]; print (s > 0.05 ? s : 0.05) }')
figure "rows in both builds" "$(wc -l <"$scratch/table")"
figure "spread of one build and itself" "$spread"
limit=$(awk -v s="$spread" 'BEGIN { print 1 + s }')
while IFS=$'\t' read -r name old new ratio _; do
  expect "$name $old -> $new (${ratio:0:5} of the time)" at_most "$ratio" "$limit"
done <"$scratch/table"
conclude
