# SPDX-License-Identifier: Apache-2.0
# Programs that can be copied to another machine: the C++ runtime is linked statically, fmt is compiled in.
# Unused functions are dropped: some in libstdc++ need a newer C library than the rest (arc4random).
add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections)

find_path(FMT_INCLUDE_DIR fmt/format.h REQUIRED)
add_library(fmt_compiled_in INTERFACE)
target_include_directories(fmt_compiled_in SYSTEM INTERFACE ${FMT_INCLUDE_DIR})
add_library(fmt::fmt ALIAS fmt_compiled_in)
# For all: tests use fmt without asking for it, since the library links it.
add_compile_definitions(FMT_HEADER_ONLY=1)
