# oneDNN: DNNL::dnnl. Debian's own config file asks for OpenCL, which nothing here uses. libgomp
# comes with it because every call of a primitive is made with omp_set_num_threads(1).
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DNNL REQUIRED_VARS DNNL_LIBRARY DNNL_INCLUDE_DIR)
if(DNNL_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION "${DNNL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${DNNL_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES gomp)
endif()
