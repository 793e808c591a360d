# SPDX-License-Identifier: Apache-2.0
# Most of a file's compile time goes into its headers. With IKAT_UNITY the files of a folder are compiled together, six
# at a time, in half the time; when one of them changes, its neighbours are recompiled, too. They share their unnamed
# namespaces, so different things need different names; a file where that is not possible sets
# SKIP_UNITY_BUILD_INCLUSION. The preset clang builds without it, which shows that each file also compiles alone.
option(IKAT_UNITY "Compile the files of a folder together" OFF)

# ikat_unity(TARGET [COUNT]): groups the sources that the target has so far; to be called last.
function(ikat_unity target)
  set(at_a_time 6)
  if(ARGC GREATER 1)
    set(at_a_time ${ARGV1})
  endif()
  if(NOT IKAT_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "in${folder}" folder)
    list(APPEND in_${folder} ${source})
    list(LENGTH in_${folder} count)
    math(EXPR group "(${count} - 1) / ${at_a_time}")
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
endfunction()
