# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=DIR -P run_on_sources.cmake -- FOLDER/*.ENDING... -- COMMAND...: runs the command on the files of ROOT
# that match a pattern, including subfolders.
set(parts 0)
foreach(i RANGE 1 ${CMAKE_ARGC})
  if(CMAKE_ARGV${i} STREQUAL "--")
    math(EXPR parts "${parts} + 1")
  elseif(parts EQUAL 1)
    list(APPEND patterns ${ROOT}/${CMAKE_ARGV${i}})
  elseif(parts EQUAL 2 AND DEFINED CMAKE_ARGV${i})
    list(APPEND command ${CMAKE_ARGV${i}})
  endif()
endforeach()

file(GLOB_RECURSE files ${patterns})
list(LENGTH files count)
execute_process(COMMAND ${command} ${files} WORKING_DIRECTORY ${ROOT} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "failed on some of ${count} files")
endif()
message(STATUS "${count} files looked at")
