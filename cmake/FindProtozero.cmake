# protozero (protocol buffers by field numbers; headers only): Protozero::protozero.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Protozero REQUIRED_VARS PROTOZERO_INCLUDE_DIR)
if(PROTOZERO_FOUND AND NOT TARGET Protozero::protozero)
  add_library(Protozero::protozero INTERFACE IMPORTED)
  set_target_properties(Protozero::protozero PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${PROTOZERO_INCLUDE_DIR}")
endif()
