# cmake -DFROM=source -DTO=folder -P install_headers.cmake
# Writes the headers that are installed as troupe/... into a folder: what the tree includes as
# "core/status.hpp" is <troupe/core/status.hpp> there.
cmake_minimum_required(VERSION 3.25)
set(folders core graph devices ops serialization actors)
set(patterns ${folders})
list(TRANSFORM patterns APPEND "/*.hpp")
list(TRANSFORM patterns PREPEND "${FROM}/")
file(GLOB_RECURSE headers RELATIVE ${FROM} ${patterns})
list(FILTER headers EXCLUDE REGEX "/detail/")
list(APPEND headers apps/troupe.hpp)
list(JOIN folders "|" floors)

file(REMOVE_RECURSE ${TO})
foreach(header IN LISTS headers)
  file(READ ${FROM}/${header} text)
  string(REGEX REPLACE "#include \"((${floors})/[^\"]*)\"" "#include <troupe/\\1>" text "${text}")
  string(REGEX REPLACE "^apps/" "" installed ${header})
  file(WRITE ${TO}/${installed} "${text}")
endforeach()
