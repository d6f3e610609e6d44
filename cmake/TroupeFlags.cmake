# Compiler and linker settings shared by every target.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# -O2 without debug information: half of a build's time is spent elsewhere, and the debug preset
# is one command away.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# The compiler collects its garbage from 128 MiB on, which headers alone come close to; later it
# costs a tenth less time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=400000>)
endif()
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
# The build tree can be moved, and an installed one needs no second link.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_BUILD_WITH_INSTALL_RPATH OFF)
include(GNUInstallDirs)
set(CMAKE_INSTALL_RPATH "$ORIGIN:$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# The numeric profile: one set of floating-point flags for everything that computes. No contraction
# (a fused multiply-add rounds once, so the bits would depend on the compiler's mood); the other
# two change no value, they only let loops over sqrt and comparisons vectorise.
add_compile_options(-ffp-contract=off -fno-math-errno -fno-trapping-math)
add_compile_options(-fno-semantic-interposition)
# Inline functions of a library are its own: thousands of them stand in the tables of virtual
# functions of messages, and each process would look them up by name as it starts.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Known false alarms of g++ 12: std::variant and std::optional (maybe-uninitialized), string
  # concatenation (restrict, PR 105651), and inlined container growth (the last two).
  add_compile_options(-Wno-maybe-uninitialized $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>
                      -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(TROUPE_WERROR)
  add_compile_options(-Werror)
endif()

if(TROUPE_SANITIZE)
  add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
  if(TROUPE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
else()
  # A library that forgets to link what it uses fails here, not in the program: floors again.
  add_link_options(LINKER:--no-undefined)
  # A library's own functions are called directly, not looked up by name in every process.
  add_link_options(LINKER:-Bsymbolic-functions)
  find_program(TROUPE_MOLD mold)
  if(TROUPE_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE)
  set(launcher ${PROJECT_SOURCE_DIR}/cmake/cached.sh ${TROUPE_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
