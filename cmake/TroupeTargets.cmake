# One function per kind of target. They keep a folder's CMakeLists.txt to what is particular to it.

# In the tree a header is included by its path: "core/status.hpp". Programs include
# <troupe/core/status.hpp>, which exists once installed (cmake/install_headers.cmake), so that folders
# of theirs with the same names are never in the way.
set(TROUPE_INCLUDE ${PROJECT_SOURCE_DIR})

# troupe_unity(TARGET): several of its files at once. What their headers and templates cost is then
# paid once for all of a group. Files of one folder use the same of them and are of one group, or of
# two or more where there are many, which follows from a file's name: one more file in a folder is one
# more in its group. Small folders in a row share one.
#
# What is in an unnamed namespace has names of its own within a folder.
#
# -DTROUPE_UNITY=OFF, as in the preset "clang", compiles each by itself: faster where one file is
# edited again and again, and it says where one leans on what its neighbour includes.
function(troupe_unity target)
  if(NOT TROUPE_UNITY)
    return()
  endif()
  set(most 20)    # files of one folder in a group, about
  set(shared 10)  # of several folders, whose names may meet
  get_target_property(files ${target} SOURCES)
  set(folders)
  foreach(file IN LISTS files)
    get_filename_component(path ${file} ABSOLUTE)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    get_filename_component(folder ${path} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" key)
    list(APPEND folders ${key})
    list(APPEND in_${key} ${file})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  list(SORT folders)
  set(number 0)
  set(room 0)  # in the group that small folders share
  foreach(key IN LISTS folders)
    list(LENGTH in_${key} count)
    if(count GREATER shared)
      set(groups 1)
      while(count GREATER most)
        math(EXPR groups "${groups} * 2")
        math(EXPR count "(${count} + 1) / 2")
      endwhile()
      foreach(file IN LISTS in_${key})
        get_filename_component(name ${file} NAME)
        string(MD5 hash ${name})
        string(SUBSTRING ${hash} 0 2 hash)
        math(EXPR group "0x${hash} % ${groups}")
        set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${key}_${group})
      endforeach()
      continue()
    endif()
    if(count GREATER room)
      math(EXPR number "${number} + 1")
      set(room ${shared})
    endif()
    math(EXPR room "${room} - ${count}")
    set_source_files_properties(${in_${key}} PROPERTIES UNITY_GROUP ${target}_${number})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A nested class of one file, of members that only that file knows, is then told of as a header's.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# troupe_cold(TARGET): what runs a few times a step, or beside steps: at -O1 it compiles in two thirds
# to four fifths of the time.
set(TROUPE_COLD_OPTIONS $<$<CONFIG:Release>:-O1>)
function(troupe_cold target)
  target_compile_options(${target} PRIVATE ${TROUPE_COLD_OPTIONS})
endfunction()

# troupe_library(NAME SOURCES files... [PUBLIC targets...] [PRIVATE targets...])
# A shared library.
# Without sources (a folder that holds only headers so far) it is an interface library with the
# same dependencies.
function(troupe_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  if(arg_SOURCES)
    add_library(${name} SHARED ${arg_SOURCES})
    troupe_unity(${name})
    set(scope PUBLIC)
    target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} fmt::fmt)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
    target_link_libraries(${name} INTERFACE ${arg_PUBLIC})
  endif()
  target_include_directories(${name} ${scope} $<BUILD_INTERFACE:${TROUPE_INCLUDE}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${name} ${scope} cxx_std_20)
  install(TARGETS ${name} EXPORT troupe LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# troupe_program(NAME SOURCES files... LINK targets...)
# An executable that may use kernels: the ISA objects are built before it is.
function(troupe_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${TROUPE_INCLUDE})
  target_link_libraries(${name} PRIVATE ${arg_LINK} fmt::fmt)
endfunction()

# Tests are compiled more often than they run, and most of a file is checks: each is one call without
# a try block of its own. At -Og they compile in two thirds to three quarters of the time of -O1.
# They compare graph values for what that throws, and write lists of one in braces.
set(TROUPE_TEST_OPTIONS $<$<CONFIG:Release>:-Og> -DDOCTEST_CONFIG_SUPER_FAST_ASSERTS
  $<$<CXX_COMPILER_ID:Clang>:-Wno-unused-comparison> $<$<CXX_COMPILER_ID:Clang>:-Wno-braced-scalar-init>)

# troupe_test(NAME FOLDER folder [WITHOUT pattern] [PRECOMPILED set] [COST seconds] [SPLIT case...]
#             LINK targets...)
# All .cpp in tests/FOLDER, but for those whose path matches, as one executable, registered as a fast
# test and a slow one. A test case is slow when its name contains "[slow]". COST: about what the fast
# ones take; those that take long begin first. SPLIT: the numbers of cases after which another test
# begins, which runs beside it.
function(troupe_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;WITHOUT;PRECOMPILED;COST" "LINK;SPLIT")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    ${CMAKE_CURRENT_SOURCE_DIR}/${arg_FOLDER}/*.cpp)
  if(arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${arg_WITHOUT}")
  endif()
  if(TROUPE_TESTS)
    set(left_out ${sources})
    list(FILTER left_out INCLUDE REGEX "_test\\.cpp$")
    list(FILTER left_out EXCLUDE REGEX "${TROUPE_TESTS}")
    list(REMOVE_ITEM sources ${left_out})
  endif()
  if(NOT sources)
    return()
  endif()
  set(target troupe_test_${name})
  troupe_program(${target} SOURCES ${sources} LINK troupe_doctest_main ${arg_LINK})
  target_compile_options(${target} PRIVATE ${TROUPE_TEST_OPTIONS})
  if(NOT TROUPE_TESTS)  # with a few of them, others would meet in a group
    troupe_unity(${target})
  endif()
  if(arg_PRECOMPILED)
    troupe_precompile(${target} ${arg_PRECOMPILED})
  endif()
  set(fast ${name})
  if(arg_SPLIT AND NOT TROUPE_TESTS)
    set(fast)
    set(first 1)
    set(part ${name})
    foreach(last ${arg_SPLIT} 1000000)
      add_test(NAME ${part} COMMAND ${target} "--test-case-exclude=*[slow]*" --first=${first}
        --last=${last})
      list(APPEND fast ${part})
      list(LENGTH fast number)
      math(EXPR number "${number} + 1")
      set(part ${name}_${number})
      math(EXPR first "${last} + 1")
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${target} "--test-case-exclude=*[slow]*")
  endif()
  add_test(NAME ${name}_slow COMMAND ${target} "--test-case=*[slow]*")
  # Under a sanitizer they take some ten times as long.
  set(timeout 300)
  if(TROUPE_SANITIZE)
    set(timeout 1500)
  endif()
  # They start hundreds of processes of a dozen threads each, which live too short for memory that
  # each thread asks of the kernel by itself (mallopt(3), M_ARENA_MAX): it takes an eighth of the time.
  set(environment MALLOC_ARENA_MAX=2)
  # g++ before 14 looks for a header of old glibcs before thread-local memory of loaded libraries,
  # takes some other bytes for it, and its leak checker crashes at the end of the program.
  if(TROUPE_SANITIZE MATCHES "address")
    list(APPEND environment ASAN_OPTIONS=intercept_tls_get_addr=0)
  endif()
  set_tests_properties(${fast} PROPERTIES LABELS fast TIMEOUT ${timeout}
    ENVIRONMENT "${environment}")
  if(arg_COST)
    set_tests_properties(${fast} PROPERTIES COST ${arg_COST})
  endif()
  set_tests_properties(${name}_slow PROPERTIES LABELS slow TIMEOUT 3600)
endfunction()

# troupe_built_targets(VAR FOLDER): the libraries and programs of a folder and those below it.
function(troupe_built_targets var folder)
  set(all)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(EXECUTABLE|(SHARED|STATIC|MODULE|OBJECT)_LIBRARY)$")
      list(APPEND all ${target})
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    troupe_built_targets(more ${below})
    list(APPEND all ${more})
  endforeach()
  set(${var} ${all} PARENT_SCOPE)
endfunction()
