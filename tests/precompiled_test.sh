#!/usr/bin/env bash
# precompiled_test.sh CCACHE CXX: headers that are precompiled through the cache are those that lie
# there, whoever had the same ones before and changed them otherwise.
set -euo pipefail
launcher=$(cd "$(dirname "$0")/.." && pwd)/cmake/cached.sh
ccache=$1 cxx=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CCACHE_DIR=$scratch/cache CCACHE_BASEDIR=$scratch CCACHE_NOHASHDIR=1
unset CCACHE_DISABLE

# precompile FOLDER TEXT: what FOLDER/all.hpp says is TEXT, precompiled over what was there.
precompile() {
  mkdir -p "$scratch/$1"
  cd "$scratch/$1"
  echo "$2" >part.hpp
  printf '#include "part.hpp"\n' >all.hpp
  : >empty.cxx
  "$launcher" "$ccache" "$cxx" -fpch-preprocess -x c++-header -include all.hpp -o all.hpp.gch \
    -c empty.cxx
}
for folder in one other; do precompile $folder 'const char* before();'; done
precompile one 'const char* changed();'
precompile other 'const char* changed_otherwise();'
echo 'const char* use() { return changed_otherwise(); }' >use.cpp
"$cxx" -include all.hpp -Winvalid-pch -Werror -fsyntax-only use.cpp

# Nor are headers the same that differ by a comment: who includes one of them once more has it twice.
precompile one $'#pragma once\n// before\nstruct Once {};'
precompile one $'#pragma once\n// after it\nstruct Once {};'
printf '#include "part.hpp"\nOnce once;\n' >use.cpp
"$cxx" -include all.hpp -Winvalid-pch -Werror -fsyntax-only use.cpp
