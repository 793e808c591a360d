# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs, by components (components.cmake), the files with which CMake and pkg-config find it, and the Debian package that
# `cpack` makes.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/ikat)
set(package ${PROJECT_BINARY_DIR}/package)

ikat_component(core ikat_core ikat_runtime ikat_stdlib ikat_embed ikat_safetensors)
install(TARGETS ikat ikat_core ikat_runtime ikat_stdlib ikat_embed ikat_safetensors EXPORT ikat-targets COMPONENT core)
set_target_properties(ikat_embed PROPERTIES EXPORT_NAME embed)
set_target_properties(ikat_safetensors PROPERTIES EXPORT_NAME safetensors)
install(EXPORT ikat-targets NAMESPACE ikat:: DESTINATION ${folder} COMPONENT core)
ikat_component(testing ikat_testing)
install(TARGETS ikat_testing EXPORT ikat-testing COMPONENT testing)
set_target_properties(ikat_testing PROPERTIES EXPORT_NAME testing)
install(EXPORT ikat-testing NAMESPACE ikat:: DESTINATION ${folder} COMPONENT testing)
ikat_component(cli ikat_cli)
install(TARGETS ikat_cli COMPONENT cli)

install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" \"-DROOT=${PROJECT_SOURCE_DIR}\" \"-DTO=${package}/include\"
  -P \"${PROJECT_SOURCE_DIR}/cmake/package_headers.cmake\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT core)
install(DIRECTORY ${package}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT core)

# While the version is 0.x, each x may break compatibility.
configure_package_config_file(cmake/ikat-config.cmake.in ${package}/ikat-config.cmake INSTALL_DESTINATION ${folder})
write_basic_package_version_file(${package}/ikat-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${package}/ikat-config.cmake ${package}/ikat-config-version.cmake cmake/ikat-kernels.cmake
  DESTINATION ${folder} COMPONENT core)

# Static libraries must list their dependencies; a shared library need not.
set(pc_libs "-likat_safetensors -likat_stdlib -likat_runtime -likat_core")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND pc_libs " -pthread -ldl")
  if(NOT IKAT_PORTABLE)
    set(pc_requires fmt)
  endif()
endif()
file(RELATIVE_PATH pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/ikat.pc.in ${package}/ikat.pc @ONLY)
install(FILES ${package}/ikat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT core)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core FILES_MATCHING PATTERN *.md)

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the authors of ikat")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libboost1.81-dev | libboost-dev (>= 1.81), libfmt-dev")
find_program(IKAT_SHLIBDEPS dpkg-shlibdeps)
if(IKAT_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
