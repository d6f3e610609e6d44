#!/usr/bin/env bash
# compile_time.sh LOG COMPILER ARGS...: a compiler launcher that appends "SECONDS OBJECT" to LOG,
# the seconds of CPU time that the compiler took. `./dev build-time` configures with it.
log=$1
shift
object=
for ((i = 1; i < $#; ++i)); do
  if [[ ${!i} == -o ]]; then
    next=$((i + 1))
    object=${!next}
  fi
done
TIMEFORMAT="%U $object"
{ time "$@" 2>&3; } 3>&2 2>>"$log"
