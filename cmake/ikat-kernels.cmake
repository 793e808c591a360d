# SPDX-License-Identifier: Apache-2.0
# ikat_add_kernels(TARGET FILE... [ARCHITECTURES sm_80...]): compiles the kernels that C++ files export with
# IKAT_EXPORT_KERNEL when the project is built, and embeds them into the target: PTX, and machine code where ptxas is
# found (IKAT_PTXAS names it; none leaves it out). The target's files find them in <TARGET_kernels.hpp>, in the
# namespace TARGET_kernels, as ikat::EmbeddedKernel.
function(ikat_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 kernels "" "" "ARCHITECTURES")
  if(NOT kernels_ARCHITECTURES)
    set(kernels_ARCHITECTURES sm_80)
  endif()
  if(NOT kernels_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ikat_add_kernels(${target}): no files with kernels are given")
  endif()
  string(MAKE_C_IDENTIFIER ${target}_kernels name)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(MAKE_DIRECTORY ${folder})

  set(ptxas $ENV{IKAT_PTXAS})
  if(NOT ptxas)
    find_program(IKAT_PTXAS ptxas HINTS /usr/local/cuda/bin)
    set(ptxas ${IKAT_PTXAS})
  endif()
  if(NOT EXISTS "${ptxas}")
    set(ptxas none)
  endif()

  # The compiler is a library: the files with the kernels, linked with it and run, are what compiles them.
  add_executable(${name}_generator EXCLUDE_FROM_ALL ${kernels_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}_generator PRIVATE ikat::embed)
  add_custom_command(OUTPUT ${folder}/${name}.hpp ${folder}/${name}.cpp
    COMMAND ${name}_generator ${name} ${folder} ${ptxas} ${kernels_ARCHITECTURES}
    DEPENDS ${name}_generator COMMENT "Compiling the kernels of ${target}" VERBATIM)
  target_sources(${target} PRIVATE ${folder}/${name}.hpp ${folder}/${name}.cpp)
  target_include_directories(${target} PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE ikat::ikat)
endfunction()
