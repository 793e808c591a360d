# SPDX-License-Identifier: Apache-2.0
# Headers that nearly every file includes are precompiled once per library: those of the standard library, fmt and
# Catch2, but none of ikat's own, so that no file relies on another's includes. A build with -DIKAT_PRECOMPILE=OFF, as
# in the preset clang, shows that each file includes what it needs.
option(IKAT_PRECOMPILE "Compile the headers of the standard library, of fmt and of Catch2 once" ON)
set(IKAT_STANDARD_HEADERS <algorithm> <array> <bit> <charconv> <cmath> <cstdint> <cstdio> <cstring> <functional> <map>
  <memory> <mutex> <optional> <ranges> <span> <string> <string_view> <utility> <vector>)

# ikat_precompile(TARGET HEADER...): precompiles the standard headers and these.
function(ikat_precompile target)
  if(IKAT_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${IKAT_STANDARD_HEADERS} ${ARGN})
  endif()
endfunction()

# ikat_precompiled_as(TARGET OTHER): uses the precompiled headers of OTHER, which must have the same flags.
function(ikat_precompiled_as target other)
  if(IKAT_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()
