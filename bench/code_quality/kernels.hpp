// SPDX-License-Identifier: Apache-2.0
// The measured kernels: ours, how it and its CUDA version are launched, and what to count in the machine code.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "codegen/nvdisasm.hpp"
#include "dsl/record/capture.hpp"

namespace ikat::bench {

using Bytes = std::vector<std::uint8_t>;

struct Row {
    const char* name;  // of the entry in both versions
    const char* title;
    const trace::KernelHandle& ours;
    std::uint32_t grid[2], block[2];
    std::vector<std::variant<Bytes, std::uint32_t, float>> arguments;
    /// The loops of which the instructions per element are added; none to count the whole kernel.
    std::vector<nvdisasm::Loop> loops{};
    double tolerance = 0;  // relative, for f32 results; 0: bit-equal
};

std::vector<Row> rows();

}  // namespace ikat::bench
