# SPDX-License-Identifier: Apache-2.0
# Targets that check the source without changing it, format-check and tidy, and that make its documentation, api and site. `format` fixes what format-check finds.
find_program(IKAT_CLANG_FORMAT NAMES clang-format-14 clang-format)
find_program(IKAT_CLANG_TIDY NAMES clang-tidy-19 clang-tidy)

set(folders include dsl codegen regalloc runtime stdlib tools bench tests examples)
list(TRANSFORM folders APPEND "/*.[ch]pp" OUTPUT_VARIABLE all_files)

set(run_on_sources ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/run_on_sources.cmake --)
if(IKAT_CLANG_FORMAT)
  add_custom_target(format-check COMMAND ${run_on_sources} ${all_files} -- ${IKAT_CLANG_FORMAT} --dry-run --Werror VERBATIM)
  # Not -i, which cmake takes for its own, wherever it is.
  add_custom_target(format COMMAND ${run_on_sources} ${all_files} -- ${IKAT_CLANG_FORMAT} --i VERBATIM)
endif()

# clang-tidy takes seconds per file, so each file has its own rule: they run in parallel, and again only after a change
# of the file or of any header. Tests are left out, because clang-tidy does not understand their macros.
if(IKAT_CLANG_TIDY)
  list(REMOVE_ITEM folders bench tests examples)
  list(TRANSFORM folders PREPEND ${PROJECT_SOURCE_DIR}/)
  list(TRANSFORM folders APPEND /*.hpp OUTPUT_VARIABLE header_patterns)
  list(TRANSFORM folders APPEND /*.cpp OUTPUT_VARIABLE source_patterns)
  file(GLOB_RECURSE headers ${header_patterns})
  file(GLOB_RECURSE sources RELATIVE ${PROJECT_SOURCE_DIR} ${source_patterns})
  set(stamps)
  foreach(source IN LISTS sources)
    set(stamp ${PROJECT_BINARY_DIR}/tidy/${source}.stamp)
    cmake_path(GET stamp PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${stamp} DEPENDS ${PROJECT_SOURCE_DIR}/${source} ${headers} ${PROJECT_SOURCE_DIR}/.clang-tidy
      COMMAND ${IKAT_CLANG_TIDY} --quiet -p ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/${source}
      COMMAND ${CMAKE_COMMAND} -E touch ${stamp} COMMENT "tidy ${source}" VERBATIM)
    list(APPEND stamps ${stamp})
  endforeach()
  add_custom_target(tidy DEPENDS ${stamps})
endif()

# The documentation: api writes the reference of the public headers as Markdown, site all pages as a site.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  add_custom_target(api COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/api ${PROJECT_BINARY_DIR}/api VERBATIM)
  add_custom_target(site COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/site VERBATIM USES_TERMINAL)
endif()
