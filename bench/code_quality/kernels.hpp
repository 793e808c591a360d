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

// Of the files *_kernels.cpp, which have the kernels of kernels.cu in ikat.
std::vector<Row> elements();
std::vector<Row> rows_of_matrices();
std::vector<Row> products();
std::vector<Row> blocks();

/// All of them.
inline std::vector<Row> rows() {
    std::vector<Row> out;
    for (const auto& of_file : {elements(), rows_of_matrices(), products(), blocks()})
        for (const Row& row : of_file) out.push_back(row);
    return out;
}

}  // namespace ikat::bench
