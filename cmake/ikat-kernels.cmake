# SPDX-License-Identifier: Apache-2.0
# ikat_add_kernels(TARGET FILE... [ARCHITECTURES sm_80...]): compiles the kernels that C++ files export with
# IKAT_EXPORT_KERNEL at build time, and embeds them into the target: PTX, and machine code if ptxas is found (IKAT_PTXAS
# selects it, or `none`). The target's files include <TARGET_kernels.hpp>, where they are ikat::EmbeddedKernel in the
# namespace TARGET_kernels.
function(ikat_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 kernels "" "" "ARCHITECTURES")
  if(NOT kernels_ARCHITECTURES)
    set(kernels_ARCHITECTURES sm_80)
  endif()
  if(NOT kernels_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ikat_add_kernels(${target}): no files with kernels given")
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

  # The compiler is a library: a program that links it with the kernel files compiles the kernels when run.
  add_executable(${name}_generator EXCLUDE_FROM_ALL ${kernels_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}_generator PRIVATE ikat::embed)
  add_custom_command(OUTPUT ${folder}/${name}.hpp ${folder}/${name}.cpp
    COMMAND ${name}_generator ${name} ${folder} ${ptxas} ${kernels_ARCHITECTURES}
    DEPENDS ${name}_generator COMMENT "Compiling the kernels of ${target}" VERBATIM)
  target_sources(${target} PRIVATE ${folder}/${name}.hpp ${folder}/${name}.cpp)
  target_include_directories(${target} PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE ikat::ikat)
endfunction()
