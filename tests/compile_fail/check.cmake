# SPDX-License-Identifier: Apache-2.0
# Compiles one file; its comments give the expected result:
# // expect: TEXT compiling fails and the output contains TEXT literally (any number of such lines)
#     // errors: N          with N errors in total (optional): each mistake is one error, not a page of them
#     // compiles           compiling succeeds: a control, without which a broken include path would pass every test
#
# cmake -DFILE=x.cpp "-DCOMMAND=g++;-std=c++23;..." -P check.cmake
# message(FATAL_ERROR) would wrap the text; a notice leaves it as it is.
function(fail text)
  message(NOTICE "${FILE}: ${text}")
  message(FATAL_ERROR "failed")
endfunction()

file(STRINGS ${FILE} expected REGEX "^// expect: ")
file(STRINGS ${FILE} control REGEX "^// compiles")
if(expected AND control OR NOT expected AND NOT control)
  fail("needs either lines \"// expect: TEXT\" or a line \"// compiles\"")
endif()

set(ENV{LC_ALL} C)
execute_process(COMMAND ${COMMAND} -fsyntax-only ${FILE} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(control)
  if(NOT status EQUAL 0)
    fail("has to compile, but:\n${output}")
  endif()
  return()
endif()

if(status EQUAL 0)
  fail("compiles, but must not")
endif()
foreach(line IN LISTS expected)
  string(REPLACE "// expect: " "" text "${line}")
  string(FIND "${output}" "${text}" position)
  if(position EQUAL -1)
    fail("the compiler does not say: ${text}\nIt says:\n${output}")
  endif()
endforeach()

file(STRINGS ${FILE} count REGEX "^// errors: ")
if(count)
  string(REPLACE "// errors: " "" count "${count}")
  string(REGEX MATCHALL ": error: " errors "${output}")
  list(LENGTH errors found)
  if(NOT found EQUAL count)
    fail("gives ${found} errors, not ${count}:\n${output}")
  endif()
endif()
