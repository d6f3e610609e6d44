#!/usr/bin/env bash
# locale_test.sh [--self-test] [LIBRARY...]: nothing of ours reads or writes numbers, or sorts letters, by the
# locale of the program that it is in. Sources use std::from_chars (core/number.hpp) and fmt.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"

# Calls that look at the locale, and streams, which have one each. Streams that only copy bytes
# (std::ifstream, std::ofstream, rdbuf) are fine.
words='\b(strto(d|f|ld|l|ul|ll|ull|imax|umax)|sto(d|f|ld|i|l|ul|ll|ull)|ato(f|i|l|ll)|v?[fs]?scanf'
words+='|v?sn?printf|i?o?stringstream|(is(space|digit|alpha|alnum|upper|lower|xdigit|print|punct|cntrl|graph|blank)'
words+='|to(upper|lower)) *\(|setlocale|imbue|strftime|put_time|get_time|strcoll|localeconv)\b'
formats='%[-+ #0-9.*]*[efgaEFGA]'  # of a float

check() {  # FOLDER: complains of lines in it
  local found
  found=$(cd "$1" && grep -rnE --include='*.cpp' --include='*.hpp' \
    "$words|printf *\(.*\"[^\"]*$formats|\{:[^{}\"]*L\}" \
    core graph devices ops serialization actors apps || true)
  [ -z "$found" ] && return 0
  echo "by the locale (use core/number.hpp or fmt):"
  echo "$found"
  return 1
}

if [ "${1:-}" = --self-test ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder"/{core,graph,devices,ops,serialization,actors,apps}
  check "$folder" >/dev/null
  while IFS= read -r line; do
    echo "$line" >"$folder/ops/planted.cpp"
    if check "$folder" >/dev/null; then
      echo "not found: $line"
      exit 1
    fi
  done <<'END'
double x = std::strtod(text, nullptr);
int n = std::stoi(text);
std::istringstream in(text);
if (std::isspace(c)) return;
c = tolower(c);
std::sscanf(text, "%lu", &n);
std::printf("%.3f", x);
auto s = fmt::format("{:L}", x);
END
  echo 'const auto history(print("{:.3f}", x)); std::fprintf(stderr, "%s:%d", file, line);' \
    >"$folder/ops/planted.cpp"
  check "$folder"
  exit 0
fi

check "$root"
# std::to_string of a float is snprintf; in an object it shows as this.
for library in "$@"; do
  if nm --defined-only "$library" | grep -q __to_xstring; then
    echo "$library: std::to_string of a float writes by the locale"
    exit 1
  fi
done
