# `./dev install P`: the command, the libraries with the modules of kernels of every level beside
# them, the headers under P/include/troupe, and a package for find_package(troupe). Its target
# troupe::troupe is everything a client program links.

add_library(troupe_client INTERFACE)
target_link_libraries(troupe_client INTERFACE troupe_actors fmt::fmt)
set_target_properties(troupe_client PROPERTIES EXPORT_NAME troupe)
install(TARGETS troupe_client EXPORT troupe)

set(headers ${PROJECT_BINARY_DIR}/generated/headers)
install(CODE "execute_process(COMMAND ${CMAKE_COMMAND} -DFROM=${PROJECT_SOURCE_DIR} -DTO=${headers}
  -P ${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake COMMAND_ERROR_IS_FATAL ANY)")
install(DIRECTORY ${headers}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
install(EXPORT troupe NAMESPACE troupe:: FILE troupeTargets.cmake DESTINATION ${package})
include(CMakePackageConfigHelpers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/troupeConfig.cmake.in
  ${PROJECT_BINARY_DIR}/generated/troupeConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/troupeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/troupeConfig.cmake
  ${PROJECT_BINARY_DIR}/generated/troupeConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake ${PROJECT_SOURCE_DIR}/cmake/FindISAL.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindDNNL.cmake DESTINATION ${package})
