# SPDX-License-Identifier: Apache-2.0
# Targets that look at the source and change nothing: format-check and tidy. `format` rewrites what format-check finds.
find_program(IKAT_CLANG_FORMAT NAMES clang-format-14 clang-format)
find_program(IKAT_CLANG_TIDY NAMES clang-tidy-19 clang-tidy)

set(library_sources include dsl codegen regalloc runtime stdlib tools)
set(all_files ${library_sources} bench tests examples)
list(TRANSFORM all_files APPEND "/*.[ch]pp")
list(TRANSFORM library_sources APPEND "/*.cpp")

set(run_on_sources ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/run_on_sources.cmake --)
if(IKAT_CLANG_FORMAT)
  add_custom_target(format-check COMMAND ${run_on_sources} ${all_files} -- ${IKAT_CLANG_FORMAT} --dry-run --Werror VERBATIM)
  add_custom_target(format COMMAND ${run_on_sources} ${all_files} -- ${IKAT_CLANG_FORMAT} -i VERBATIM)
endif()
if(IKAT_CLANG_TIDY)
  add_custom_target(tidy COMMAND ${run_on_sources} ${library_sources} -- ${IKAT_CLANG_TIDY} --quiet -p ${CMAKE_BINARY_DIR} VERBATIM)
endif()
