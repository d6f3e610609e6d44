# Half of what a file costs is reading headers, the same ones as its neighbours. These are read once
# for each set of flags: the standard library and fmt, what every floor uses, what CAF takes.
#
# A file still includes what it uses. -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON, as in the preset
# "clang", builds without them, and says where one does not.

set(troupe_headers_std <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <deque>
    <functional> <limits> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view>
    <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
set(troupe_headers_core ${troupe_headers_std} <core/status.hpp> <core/tensor.hpp>)
set(troupe_headers_graph ${troupe_headers_core} <graph/builder.hpp>)
set(troupe_headers_ops ${troupe_headers_graph} <ops/op.hpp>)
set(troupe_headers_actors ${troupe_headers_graph} <caf/actor_system.hpp>
    <caf/typed_event_based_actor.hpp> <actors/interfaces.hpp>)
set(troupe_headers_commands ${troupe_headers_graph} <nlohmann/json.hpp>
    <actors/client/session.hpp>)
set(troupe_headers_programs ${troupe_headers_core} <apps/troupe.hpp>)
set(troupe_headers_test ${troupe_headers_graph} <doctest/doctest.h>)
set(troupe_headers_actors_test ${troupe_headers_actors} <actors/client/session.hpp>
    <doctest/doctest.h>)

# troupe_precompiled_set(SET [LINK targets...] [OPTIONS flags...]): makes the headers of that set
# ready for targets that link at least those and are compiled with the same flags.
function(troupe_precompiled_set set)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;OPTIONS")
  set(empty ${PROJECT_BINARY_DIR}/generated/precompiled_${set}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "// Of no content: its headers matter.\n")
  add_library(troupe_precompiled_${set} OBJECT ${empty})
  target_include_directories(troupe_precompiled_${set} PRIVATE ${TROUPE_INCLUDE})
  target_link_libraries(troupe_precompiled_${set} PRIVATE fmt::fmt ${arg_LINK})
  target_compile_options(troupe_precompiled_${set} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(troupe_precompiled_${set} PRIVATE ${troupe_headers_${set}})
endfunction()

# troupe_precompile(TARGET SET)
function(troupe_precompile target set)
  target_precompile_headers(${target} REUSE_FROM troupe_precompiled_${set})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")  # libraries could share the headers
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
