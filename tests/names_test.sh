#!/usr/bin/env bash
# names_test.sh [ROOT]: no two headers define a class of the same name. All are in one namespace and
# most in one process, where the linker keeps one of two inline functions of the same name, and not
# always the right one.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
find core graph devices ops serialization actors apps -name '*.hpp' -print0 |
  xargs -0 awk '
    function defines(name) {
      if (name in seen && seen[name] != FILENAME) {
        print FILENAME ":" FNR ": " name " is also defined in " seen[name]
        bad = 1
      }
      seen[name] = FILENAME
    }
    /^template/ { next }
    /^(class|struct|union) [A-Za-z_0-9]+( final)?( :[^:].*)?( \{.*)?$/ { defines($2) }
    /^enum class [A-Za-z_0-9]+/ { defines($3) }
    END { exit bad }'
