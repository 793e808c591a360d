// SPDX-License-Identifier: Apache-2.0
// The same as ptx_run under libFuzzer, guided by coverage. Preset fuzz:
//
//     cmake --preset fuzz && cmake --build --preset fuzz -t fuzz_ptx
//     build/fuzz/tests/fuzz/fuzz_ptx FOLDER tests/fuzz/corpus         # new inputs go to FOLDER
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/ptx_run.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ikat::tests::run_anything({reinterpret_cast<const char*>(data), size});
    return 0;
}
