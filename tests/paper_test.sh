#!/usr/bin/env bash
# paper_test.sh [ROOT]: all that docs/paper.md names exists: files, the title of a test in the file
# before it, `troupe` commands, and ops in docs/ops.md. With --self-test, on pages that are wrong.
# With --list [ROOT], prints what can be run, each once, as fields between tabs: "test", its file and
# title; "command" and its words; "script" and its file; "program" and its source.
set -euo pipefail

listing=0
# check ROOT: prints what is missing.
check() {
  cd "$1"
  local line token word file missing=0
  can_run() { ((!listing)) || (IFS=$'\t'; echo "$*"); }
  lacks() { echo "docs/paper.md names $1"; missing=1; }
  while IFS= read -r line; do
    file=""
    while read -r token; do
      case $token in
        \"*)
          token=${token//\"/}
          [[ -n $file ]] || continue
          grep -qF -- "$token" "$file" || lacks "\"$token\", which $file does not have"
          can_run test "$file" "$token"
          ;;
        '`troupe '*)
          word=${token//\`/} word=${word#troupe }
          can_run command "$word"
          word=${word%% *}
          [[ $word != ckpt ]] || word=checkpoint
          [[ -f apps/commands/${word}_command.cpp ]] || lacks "troupe $word, which is no command"
          ;;
        *.cpp\` | *.hpp\` | *.sh\` | *.md*)
          file=${token//[\`()]/} file=${file%%#*}
          [[ $token != "("* ]] || file=docs/$file
          [[ -f $file ]] || { lacks "$file, which does not exist"; file=""; }
          [[ $file != *.sh ]] || can_run script "$file"
          [[ $file != apps/examples/*.cpp ]] || can_run program "$file"
          ;;
        *)
          word=${token//\`/}
          [[ ! $word =~ ^[A-Z][A-Za-z0-9]+$ ]] || grep -qF "| \`$word\` |" docs/ops.md ||
            lacks "$word, which is no op"
          ;;
      esac
    done < <(grep -oE '`[^`]+`|\([a-z0-9_/-]+\.md[^)]*\)|"[^"]+"' <<<"$line")
  done < <(grep '^|' docs/paper.md)
  return $missing
}

if [[ ${1:-} == --self-test ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir -p "$scratch"/{docs,tests,apps/commands}
  echo 'TEST_CASE("a thing is so") {' >"$scratch/tests/a_test.cpp"
  touch "$scratch/apps/commands/run_command.cpp" "$scratch/docs/other.md"
  echo '| `MatMul` | `a, b` |' >"$scratch/docs/ops.md"
  page() { printf '| what | %s |\n' "$1" >"$scratch/docs/paper.md"; }
  page '`tests/a_test.cpp`: "a thing is so"; `troupe run -- x`, `MatMul`, [that](other.md#part)'
  (check "$scratch")
  list=$(listing=1; check "$scratch")
  [[ $list == $'test\ttests/a_test.cpp\ta thing is so\ncommand\trun -- x' ]] || { echo "lists $list"; exit 1; }
  for wrong in '`tests/b_test.cpp`' '`tests/a_test.cpp`: "it is not"' '`troupe walk`' '`Matmul`' \
    '[that](none.md)'; do
    page "$wrong"
    if (check "$scratch" >/dev/null); then echo "found what is not there: $wrong"; exit 1; fi
  done
  exit 0
fi
if [[ ${1:-} == --list ]]; then
  listing=1
  check "${2:-$(dirname "$0")/..}" | awk '!seen[$0]++'
else
  check "${1:-$(dirname "$0")/..}"
fi
