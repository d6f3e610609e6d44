#!/usr/bin/env bash
# one_step_test.sh [ROOT]: every file and function that docs/one_step.md names exists. A function is
# looked for in the file named last before it: a name behind a type, in front of a bracket. With
# --self-test, on pages that are wrong.
set -euo pipefail

# check ROOT: prints what is missing.
check() {
  cd "$1"
  local token file="" missing=0
  while read -r token; do
    token=${token//\`/}
    case $token in
      */*.cpp | */*.hpp | */*.sh | */*.md)
        file=$token
        [[ -f $file ]] || { echo "docs/one_step.md names $file, which does not exist"; missing=1; }
        ;;
      *)
        [[ $token =~ ^[a-z][a-z_0-9]*$ && -f $file ]] || continue
        grep -E "^ {0,2}[A-Za-z_][A-Za-z_:<>,&* ]*[ :*&]$token\(" "$file" |
          grep -vE "^ *(return|else|throw) " >/dev/null ||
          { echo "docs/one_step.md names $token, which $file does not have"; missing=1; }
        ;;
    esac
  done < <(grep -oE '`[^`]+`|[a-z_0-9/]+\.(cpp|hpp|sh)' docs/one_step.md)
  return $missing
}

if [[ ${1:-} == --self-test ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir -p "$scratch/docs" "$scratch/actors"
  echo 'void Machine::begin(int n) {' >"$scratch/actors/a.cpp"
  page() { printf '%s\n' "$1" >"$scratch/docs/one_step.md"; }
  page '**actors/a.cpp.** `begin` begins.'
  (check "$scratch")
  page '**actors/b.cpp.** `begin` begins.'
  if (check "$scratch" >/dev/null); then echo "found what is not there"; exit 1; fi
  page '**actors/a.cpp.** `end` ends.'
  if (check "$scratch" >/dev/null); then echo "found what is not there"; exit 1; fi
  exit 0
fi
check "${1:-$(dirname "$0")/..}"
