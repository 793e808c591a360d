# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs comes in components: core, cli, testing, driver.
#
# ikat_component(<component> <target>...): before these targets are installed, that they have been built; if one has
# not, the error names it.
function(ikat_component component)
  foreach(target IN LISTS ARGN)
    install(CODE "if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
  message(FATAL_ERROR \"${target} has not been built: cmake --build ${PROJECT_BINARY_DIR} --target ${target}\\n\"
    \"or install some of the components core, cli, testing and driver: cmake --install ${PROJECT_BINARY_DIR} --component core\")
endif()" COMPONENT ${component})
  endforeach()
endfunction()
