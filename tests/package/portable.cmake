# SPDX-License-Identifier: Apache-2.0
# A program of the portable build needs only the C library: not fmt, Highway, libstdc++ or libgcc.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${OBJDUMP} -p ${PROGRAM} OUTPUT_VARIABLE head COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "NEEDED +[^\n]+" needed "${head}")
if(NOT needed)
  message(FATAL_ERROR "objdump names no libraries of ${PROGRAM}:\n${head}")
endif()
foreach(library IN LISTS needed)
  string(REGEX REPLACE "NEEDED +" "" library "${library}")
  if(NOT library MATCHES "^(libc|libm|libdl|libpthread|ld-linux[-a-z0-9_]*)\\.so")
    message(FATAL_ERROR "${PROGRAM} needs ${library}")
  endif()
endforeach()
