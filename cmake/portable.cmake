# SPDX-License-Identifier: Apache-2.0
# Programs that can be carried to another machine: the C++ runtime is linked statically, fmt is compiled in.
add_link_options(-static-libstdc++ -static-libgcc)

find_path(FMT_INCLUDE_DIR fmt/format.h REQUIRED)
add_library(fmt_compiled_in INTERFACE)
target_include_directories(fmt_compiled_in SYSTEM INTERFACE ${FMT_INCLUDE_DIR})
target_compile_definitions(fmt_compiled_in INTERFACE FMT_HEADER_ONLY=1)
add_library(fmt::fmt ALIAS fmt_compiled_in)

# Highway comes as a shared library only: it travels in build/<preset>/lib, and programs look for it from where they are.
find_library(IKAT_HWY_INSTALLED hwy REQUIRED)
file(REAL_PATH ${IKAT_HWY_INSTALLED} hwy_file)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
file(COPY_FILE ${hwy_file} ${PROJECT_BINARY_DIR}/lib/libhwy.so.1 ONLY_IF_DIFFERENT)
set(IKAT_HWY ${PROJECT_BINARY_DIR}/lib/libhwy.so.1 CACHE FILEPATH "Highway's library")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
