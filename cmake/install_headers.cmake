# cmake -DFROM=source -DTO=folder -P install_headers.cmake
# Writes the headers that are installed as troupe/... into a folder: those that a program may include,
# and what these include. "core/status.hpp" of the tree is <troupe/core/status.hpp> there.
cmake_minimum_required(VERSION 3.25)
set(open
  apps/troupe.hpp                        # write a program
  ops/op.hpp ops/api/node.hpp            # add an op
  graph/passes/pass.hpp                  # a pass
  devices/types.hpp devices/device.hpp devices/cpu/cpu_device.hpp  # a device
  actors/resources/resource.hpp actors/resources/prompt_resource.hpp  # a kind of queue
  actors/supervision/supervisor_actor.hpp  # supervise actors and processes
  actors/client/session_actor.hpp        # ask actors for runs
  ops/data/source.hpp                    # a source of data
  ops/optim/optimizer.hpp)               # an optimizer
set(done "")

file(REMOVE_RECURSE ${TO})
while(open)
  list(POP_FRONT open header)
  if(header IN_LIST done)
    continue()
  endif()
  list(APPEND done ${header})
  if(header MATCHES "/detail/")
    message(FATAL_ERROR "${header} is private, but a header that is installed includes it")
  endif()
  file(READ ${FROM}/${header} text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.+)\"" "\\1" path "${include}")
    list(APPEND open ${path})
  endforeach()
  string(REGEX REPLACE "#include \"([^\"]+)\"" "#include <troupe/\\1>" text "${text}")
  string(REGEX REPLACE "^apps/" "" installed ${header})
  file(WRITE ${TO}/${installed} "${text}")
endwhile()
