# The C++ Actor Framework: CAF::core. Debian's libcaf-dev ships no CMake config, so the version is
# read from caf/config.hpp. Set CAF_ROOT to use another build of it (a -fsanitize=thread one, say).
find_path(CAF_INCLUDE_DIR caf/config.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
if(CAF_INCLUDE_DIR)
  # "#define CAF_VERSION 1706" is 0.17.6: major * 10000 + minor * 100 + patch.
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp caf_version_line REGEX "^#define CAF_VERSION ")
  string(REGEX MATCH "[0-9]+" caf_number "${caf_version_line}")
  math(EXPR caf_major "${caf_number} / 10000")
  math(EXPR caf_minor "${caf_number} / 100 % 100")
  math(EXPR caf_patch "${caf_number} % 100")
  set(CAF_VERSION ${caf_major}.${caf_minor}.${caf_patch})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF
  REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION)
if(CAF_FOUND AND NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION "${CAF_CORE_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
  if(TROUPE_SANITIZE MATCHES "undefined")
    # CAF's own headers form references through null pointers by design (its blocking behaviours).
    target_compile_options(CAF::core INTERFACE -fno-sanitize=null)
  endif()
endif()
