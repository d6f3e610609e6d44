#!/bin/sh
# cached.sh CCACHE COMPILER ARGUMENTS...: compiles with a cache.
#
# Headers that are precompiled anew are told by their text, not by what lies there from before: the
# preprocessor reads that in their place, and the cache would answer with the headers of whoever
# changed the same ones last. Nor are they the same where comments differ: the compiler knows a
# header that is included once by its whole text.
for argument; do
  case $argument in
    *.gch)
      rm -f "$argument"
      export CCACHE_COMMENTS=1
      ;;
  esac
done
export CCACHE_SLOPPINESS=pch_defines,time_macros  # what it asks for where headers are precompiled
exec "$@"
