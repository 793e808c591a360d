# SPDX-License-Identifier: Apache-2.0
# The libraries ikat consists of, with what all of them need.
include(cmake/shared.cmake)

# ikat_library(NAME [LOWER]): the library ikat_NAME, for others ikat::NAME, which may use LOWER and what that uses.
function(ikat_library name)
  set(target ikat_${name})
  add_library(${target})
  add_library(ikat::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR};${PROJECT_SOURCE_DIR}/include>"
                                              $<INSTALL_INTERFACE:include>)
  target_compile_features(${target} PUBLIC cxx_std_23)
  # They also go into the stand-in for the CUDA driver, a shared library that replaces none of their functions.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
  # a*b+c stays two roundings unless a kernel uses fma: host references and the constant folder must agree with the
  # device.
  target_compile_options(${target} PUBLIC -ffp-contract=off PRIVATE ${IKAT_WARNINGS})
  target_link_libraries(${target} PUBLIC ${ARGN} Boost::headers Threads::Threads ${CMAKE_DL_LIBS}
                                  PRIVATE $<BUILD_INTERFACE:fmt::fmt>)
  if(NOT IKAT_PORTABLE)
    target_link_libraries(${target} PRIVATE $<INSTALL_INTERFACE:fmt::fmt>)
  endif()
  ikat_shared_library(${target})
  if(name STREQUAL core)
    ikat_precompile(${target} <fmt/format.h>)
  else()
    ikat_precompiled_as(${target} ikat_core)
  endif()
endfunction()
