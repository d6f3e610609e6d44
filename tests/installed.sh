# Sourced by the tests of the installed package, with BUILD in $1: installs it to prefix/ in a
# scratch folder, which becomes the current one.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cmake --install "$build" --prefix "$scratch/first" >install.log
mv first prefix  # an installed tree can be moved

# build_program FOLDER: builds a copy of the source tree's FOLDER against the package, in program/build.
build_program() {
  cp -r "$source/$1" program
  cmake -S program -B program/build -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" >configure.log
  cmake --build program/build
  if grep -q "$source" program/build/build.ninja; then
    echo "the program was built with files of the source tree" >&2
    exit 1
  fi
}
