// SPDX-License-Identifier: Apache-2.0
// The fragments of products on tensor cores as a table and as a picture: which thread holds which element of a matrix.
// The places are those of the types Mma and Wgmma themselves (dsl/threads/fragments.hpp), computed on the host.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ikat::cli {

class FragmentDrawing {
public:
    /// `product` is the type as it is written in a kernel, such as "Mma<16, 8, 16, bfloat16, float>" or "Wgmma<64, 128,
    /// 16, half, float>"; part is A, B or C, of Wgmma A or C. Throws Error if there is no such product or part.
    FragmentDrawing(const std::string& product, const std::string& part);

    /// A table of the threads, one of their elements, and how many of these a register holds.
    std::string table() const;
    /// A box for each register, with its thread and elements; threads of a warp have colours.
    std::string svg() const;

private:
    /// Which element of which thread.
    struct Holder {
        std::uint32_t thread = 0;
        int element = 0;
    };
    const Holder& holder(std::uint64_t row, std::uint64_t column) const { return holders_[row * columns_ + column]; }

    std::string title_;
    std::uint64_t rows_ = 0, columns_ = 0;
    int per_register_ = 1;
    bool along_columns_ = false;   // a register holds elements of a column, else of a row
    std::vector<Holder> holders_;  // row after row
};

}  // namespace ikat::cli
