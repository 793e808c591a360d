# SPDX-License-Identifier: Apache-2.0
# Headers that nearly every file reads are compiled once for each library: the standard library's, fmt's and Catch2's,
# none of ikat's own, so that no file comes to rely on another's includes of those. A build without (-DIKAT_PRECOMPILE=OFF,
# as the preset clang has it) shows that each file includes what it needs.
option(IKAT_PRECOMPILE "Compile the headers of the standard library, of fmt and of Catch2 once" ON)
set(IKAT_STANDARD_HEADERS <algorithm> <array> <bit> <charconv> <cmath> <cstdint> <cstdio> <cstring> <functional> <map>
  <memory> <mutex> <optional> <ranges> <span> <string> <string_view> <utility> <vector>)

# ikat_precompile(TARGET HEADER...): of the standard headers and these.
function(ikat_precompile target)
  if(IKAT_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${IKAT_STANDARD_HEADERS} ${ARGN})
  endif()
endfunction()

# ikat_precompiled_as(TARGET OTHER): with what OTHER precompiles, which has the same flags.
function(ikat_precompiled_as target other)
  if(IKAT_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()
