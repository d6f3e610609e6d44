#!/usr/bin/env bash
# install_test.sh BUILD: installs it, builds the examples against the installed package, runs them
# and the installed command.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

cmake --install "$build" --prefix "$scratch/first" >install.log
mv first prefix  # an installed tree can be moved
cp -r "$source/apps/examples" program
cmake -S program -B program/build -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" >configure.log
cmake --build program/build
if grep -q "$source" program/build/build.ninja; then
  echo "the program was built with files of the source tree" >&2
  exit 1
fi
# No library may come from the build tree either.
if ldd program/build/mnist prefix/bin/troupe | grep -E "$build/|not found"; then exit 1; fi
program/build/mnist --threads 2 | tee run.log
grep -q '^500 loss' run.log
program/build/mnist --replicas 2 --cluster local:1 --threads 1 | grep '^500 loss'
prefix/bin/troupe --version
prefix/bin/troupe train mnist-softmax --steps 5 --replicas 2 --cluster local:2 --quiet
