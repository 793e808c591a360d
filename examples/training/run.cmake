# SPDX-License-Identifier: Apache-2.0
# For tests of programs: an empty FOLDER, run() and expect().
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})

# run(<status> <argument>...): its output is `output`.
function(run expected)
  execute_process(COMMAND ${PROGRAM} ${ARGN} WORKING_DIRECTORY ${FOLDER}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL expected)
    message(FATAL_ERROR "${PROGRAM} ${ARGN}\nends with ${status}:\n${output}${errors}")
  endif()
  set(output "${output}${errors}" PARENT_SCOPE)
endfunction()

function(expect pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "'${pattern}' is missing in:\n${output}")
  endif()
endfunction()
