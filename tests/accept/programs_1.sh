#!/usr/bin/env bash
# The ops of the first day: nothing lacks in the table of ops, every name is there, the paper's lines run
source tests/accept/lib.sh
bin=$(cd "$(dirname "$TROUPE")" && pwd)
export PATH=$bin:$PATH

echo "== the table of ops =="
nothing_missing() {
  "$TROUPE" ops --check >"$scratch/missing" || { sed 's/^/  | /' "$scratch/missing"; return 1; }
  [[ ! -s $scratch/missing ]]
}
expect "troupe ops --check: 0 missing" nothing_missing
expect "no public op lacks rows of tests" cases ops "no public op lacks*"

echo "== Table 1 of the paper and the ops of the first day =="
expect "each name of op_names.tsv is here" bash tests/op_names_test.sh

echo "== what docs/paper.md names =="
# run_line KIND WHAT [TITLE]: a line of `tests/paper_test.sh --list`. Training takes 20 steps here.
run_line() {
  local words suite
  case $1 in
    test)
      suite=${2#tests/}
      cases "${suite%%/*}" "*${3//,/?}*"  # a title may go on with [slow]
      ;;
    command)
      words=${2//DIR/$scratch/dir}
      words=${words//FILE/$scratch/file}
      [[ $words != *train\ * ]] || words+=" --steps 20"
      [[ $words != bench\ * ]] || words+=" --rounds 1"
      (cd "$scratch" && read -ra all <<<"$words" && "$TROUPE" "${all[@]}")
      ;;
    script) bash "$2" "${BUILD:-build}" ;;
    program) "$bin/examples/$(basename "$2" .cpp)" ;;
  esac
}
lines=0
while IFS=$'\t' read -r kind what title; do
  lines=$((lines + 1))
  if run_line "$kind" "$what" "${title:-}" >"$scratch/log" 2>&1 </dev/null; then continue; fi
  tail -n 10 "$scratch/log" | sed 's/^/  | /'
  expect "$kind: $what ${title:-}" false
done < <(bash tests/paper_test.sh --list)
figure "tests, commands, scripts and programs that ran" "$lines"
expect "docs/paper.md names some" at_least "$lines" 50
conclude
