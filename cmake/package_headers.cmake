# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=DIR -DTO=DIR -P package_headers.cmake: copies the headers that users include, and all headers that those
# include, into one folder TO/ikat, so that an installed ikat takes up one name in the global include path.
#
#     include/ikat/dsl.hpp    #include "dsl/kernel/kernel.hpp"    ->  TO/ikat/dsl.hpp          #include <ikat/detail/dsl/kernel/kernel.hpp>
#     dsl/kernel/kernel.hpp                                       ->  TO/ikat/detail/dsl/kernel/kernel.hpp
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${TO})
file(GLOB open RELATIVE ${ROOT} ${ROOT}/include/ikat/*.hpp)
set(done)
while(open)
  list(POP_FRONT open file)
  if(file IN_LIST done)
    continue()
  endif()
  list(APPEND done ${file})
  file(STRINGS ${ROOT}/${file} includes REGEX "^#include \"[^\"]+\"")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" path "${include}")
    string(REGEX REPLACE "^ikat/" "include/ikat/" path "${path}")
    list(APPEND open ${path})
  endforeach()

  file(READ ${ROOT}/${file} text)
  string(REGEX REPLACE "(\n#include )\"ikat/([^\"]+)\"" "\\1<ikat/\\2>" text "${text}")
  string(REGEX REPLACE "(\n#include )\"([^\"]+)\"" "\\1<ikat/detail/\\2>" text "${text}")
  string(REGEX REPLACE "^include/ikat/" "" target "${file}")
  if(target STREQUAL file)
    set(target detail/${file})
  endif()
  file(WRITE ${TO}/ikat/${target} "${text}")
endwhile()
