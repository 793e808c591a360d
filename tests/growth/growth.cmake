# SPDX-License-Identifier: Apache-2.0
# Whether compiling ten times as many operations of a KIND takes at most twice the instructions for each of them. They
# are counted by valgrind and do not depend on other load of the machine.
#
#     cmake -D VALGRIND=valgrind -D PROGRAM=build/dev/tests/growth/test_compile_growth -D KIND=loops -P growth.cmake
function(count_instructions count result)
  execute_process(COMMAND "${VALGRIND}" --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null
      "${PROGRAM}" "${KIND}" ${count}
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE counted)
  string(REGEX MATCH "I *refs: *([0-9,]+)" found "${counted}")
  if(failed OR NOT found)
    message(FATAL_ERROR "${KIND} ${count}: ${failed}\n${said}${counted}")
  endif()
  string(REPLACE "," "" number "${CMAKE_MATCH_1}")
  math(EXPR each "${number} / ${count}")
  message(STATUS "${KIND}: ${count} operations, ${each} instructions for each")
  set(${result} ${each} PARENT_SCOPE)
endfunction()

count_instructions(3000 few)
count_instructions(30000 many)
math(EXPR bound "2 * ${few}")
if(many GREATER bound)
  message(FATAL_ERROR "${KIND}: the time to compile grows faster than the number of operations")
endif()
