// SPDX-License-Identifier: Apache-2.0
// A kernel on one block, for tests: its buffers up and down again.
#pragma once
#include <vector>

#include "tests/catch.hpp"
#include "tests/device.hpp"

#include <ikat/ikat.hpp>

namespace ikat::test {

inline runtime::Device& simt_device() {
    static runtime::Device opened = open_device();
    return opened;
}

/// Launches blocks of `threads` threads on a buffer that begins as `initial`; what it holds afterwards.
template <class T, class... P, class... A>
std::vector<T> run(const Kernel<InOut<T>, P...>& kernel, std::uint32_t blocks, std::uint32_t threads,
                   const std::vector<T>& initial, A&&... arguments) {
    auto buffer = simt_device().upload(initial, "x");
    simt_device().launch(kernel, runtime::Grid{{blocks}, {threads}}, buffer, arguments...);
    return buffer.download();
}

}  // namespace ikat::test
