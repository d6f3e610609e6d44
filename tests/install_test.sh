#!/usr/bin/env bash
# install_test.sh BUILD: installs it, builds the examples against the installed package, runs them
# and the installed command.
. "$(dirname "$0")/installed.sh"
build_program apps/examples
# No library may come from the build tree either.
if ldd program/build/mnist prefix/bin/troupe | grep -E "$build/|not found"; then exit 1; fi
program/build/mnist --threads 2 | tee run.log
grep -q '^step 500/500  loss' run.log
program/build/mnist --replicas 2 --cluster local:1 --threads 1 | grep '^step 500/500  loss'
prefix/bin/troupe --version
prefix/bin/troupe train mnist-softmax --steps 5 --replicas 2 --cluster local:2 --quiet
