#!/usr/bin/env bash
# paper_test.sh [ROOT]: all that docs/paper.md names exists: files, the title of a test in the file
# before it, `troupe` commands, and ops in docs/ops.md. With --self-test, on pages that are wrong.
set -euo pipefail

# check ROOT: prints what is missing.
check() {
  cd "$1"
  local line token word file missing=0
  lacks() { echo "docs/paper.md names $1"; missing=1; }
  while IFS= read -r line; do
    file=""
    while read -r token; do
      case $token in
        \"*)
          token=${token//\"/}
          [[ -z $file ]] || grep -qF -- "$token" "$file" || lacks "\"$token\", which $file does not have"
          ;;
        '`troupe '*)
          word=${token//\`/} word=${word#troupe } word=${word%% *}
          [[ $word != ckpt ]] || word=checkpoint
          [[ -f apps/commands/${word}_command.cpp ]] || lacks "troupe $word, which is no command"
          ;;
        *.cpp\` | *.hpp\` | *.sh\` | *.md*)
          file=${token//[\`()]/} file=${file%%#*}
          [[ $token != "("* ]] || file=docs/$file
          [[ -f $file ]] || { lacks "$file, which does not exist"; file=""; }
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
  for wrong in '`tests/b_test.cpp`' '`tests/a_test.cpp`: "it is not"' '`troupe walk`' '`Matmul`' \
    '[that](none.md)'; do
    page "$wrong"
    if (check "$scratch" >/dev/null); then echo "found what is not there: $wrong"; exit 1; fi
  done
  exit 0
fi
check "${1:-$(dirname "$0")/..}"
