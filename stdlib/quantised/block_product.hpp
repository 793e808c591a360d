// SPDX-License-Identifier: Apache-2.0
// What kernels of products with up to eight tokens are made of. A warp has some rows of weights, and its block one
// piece of all tokens at a time:
//
//     columns    0 ... 31   32 ... 63   ...   992 ... 1023        a piece; then the next 1024
//     lane           0          1       ...        31             decodes a unit of each of its rows
//
// A lane multiplies its units with all tokens, and at the end the lanes' sums are added. The rows may be of several
// matrices, each of its own format: what is recorded for a row does not depend on the others.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/quantised_format.hpp"
#include "stdlib/quantised/units.hpp"

namespace ikat::stdlib {

/// A matrix of weights, as a kernel has it.
struct WeightRows {
    runtime::Quantised format;
    bool is_aligned;            // begin is 0
    const In<std::uint8_t>& w;  // from a multiple of 16 bytes on
    const u32& rows;
    const u32 &begin, &pitch, &bytes;  // where the first row begins, below 16; from a row to the next; of all
};

/// Up to eight rows of activations, as a kernel has them.
struct Tokens {
    using U = blocks::U;

    std::uint32_t count;
    bool are_packed;  // blocks of Q8_1
    const u32& columns;
    /// Words 4 quad ... 4 quad + 3 of a token, floats or Q8_1, of which `count` are there; the others are 0.
    std::function<std::array<U, 4>(const U& token, const U& quad, const U& count)> load;
};

/// Words in shared memory.
using SharedWords = Indexable<std::uint32_t, Direction::ReadWrite>;

/// The shared memory of products, of which a block computes one at a time.
class ProductMemory {
public:
    /// For that many rows to a warp, each of any of these formats.
    ProductMemory(const Tokens& x, std::uint32_t rows, std::span<const runtime::Quantised> formats);
    const SharedWords& tokens() const { return tokens_; }
    const SharedWords& row(std::size_t number) const { return rows_[number]; }

private:
    SharedWords tokens_;
    std::vector<SharedWords> rows_{};
};

class TokenStage;
class WeightStage;

/// The product of the rows that the warps of a block have with all tokens.
class BlockProduct {
public:
    using U = blocks::U;
    using F = blocks::F;
    static constexpr std::uint32_t piece = 32;  // units

    /// A warp has a row of each of these matrices, all of which have the columns of x. The arguments must outlive it.
    BlockProduct(const Tokens& x, std::vector<const WeightRows*> weights, const ProductMemory& memory);
    ~BlockProduct();

    /// `row(i)` is the row that the warp has of matrix i, if first_row is one of it; else it multiplies nothing. All
    /// threads of the block come here.
    void run(const U& first_row, const std::function<U(std::uint32_t)>& row);

    /// The tokens, and those that there are not, up to a power of two.
    std::uint32_t padded_tokens() const;
    /// How many lanes get the same sum.
    std::uint32_t lanes_of_sum() const { return 32 / (std::uint32_t(weights_.size()) * padded_tokens()); }
    /// Each of these lanes gets the sum number lane / lanes_of_sum(): of row i and a token it is i padded_tokens() +
    /// token.
    F sum() const;

private:
    void add(const U& lane);

    const Tokens& x_;
    std::vector<const WeightRows*> weights_;
    std::unique_ptr<TokenStage> activations_;
    std::vector<std::unique_ptr<WeightStage>> stages_{};
    std::deque<f32> sums_{};  // token after token for each row
};

/// Adds up what the lanes have of each sum. The number of sums is a power of two, n, and a lane gets that of number
/// lane / (32 / n). The order of the additions is that of warp_sum().
blocks::F divided_sum(std::vector<blocks::F> sums);

}  // namespace ikat::stdlib
