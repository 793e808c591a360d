// SPDX-License-Identifier: Apache-2.0
// The kernels of cross_entropy(): one counts the rows that count, one has the rows, one adds their losses.
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/memory/structs.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// The numbers of the launches, in their parameters' order. Sequences and tokens are so many elements apart.
struct CrossEntropyNumbers {
    BOOST_HANA_DEFINE_STRUCT(
        CrossEntropyNumbers,
        // The rows of this launch: so many, from this one on, counted over all sequences of so many tokens.
        (std::uint32_t, rows), (std::uint32_t, first), (std::uint32_t, tokens), (std::uint32_t, classes),
        // 1 if targets are those of the next token.
        (std::uint32_t, shift), (std::uint32_t, ignored), (std::uint64_t, target_sequence),
        (std::uint64_t, target_token),
        // The logits have so many tokens of a sequence; x begins so many elements after a multiple of 16 bytes.
        (std::uint32_t, x_tokens), (std::uint32_t, x_first), (std::uint64_t, x_sequence), (std::uint64_t, x_token),
        (std::uint32_t, dx_first), (std::uint64_t, dx_sequence), (std::uint64_t, dx_token),
        // 1 - smoothing; smoothing; smoothing / classes; what z-losses and the gradient are multiplied with.
        (float, sharp), (float, smoothing), (float, smoothing_of_class), (float, z), (float, scale));
};

/// Which of the kernels. Parameters in brackets are there in some of them only:
///
///     targets                 a number for each row
///     factors                 two: of the loss, of the gradient
///     (device_scale)          Count: a number that the gradient is multiplied with
///     losses                  Rows, Sum: one for each row
///     x, (dx)                 Rows: logits, and their gradient if it does not take their place
///     loss                    Sum: one
///     with                    a CrossEntropyNumbers, but in Sum, which has rows
struct CrossEntropyKernel {
    enum class Step : std::uint8_t { Count, Rows, Sum };
    enum class Gradient : std::uint8_t { None, Elsewhere, InPlace };
    static constexpr std::uint32_t threads_of_sums = 1024;

    Step step = Step::Rows;
    ir::Type type = ir::Type::F32;
    Gradient gradient = Gradient::None;
    /// Of a row: 32, then a block has four rows, 256 or 1024.
    std::uint32_t threads = 32;
    /// Of a cluster, which have a row together.
    std::uint32_t blocks = 1;
    /// Whether the row is kept in dynamic shared memory for its gradient, of kept_bytes().
    bool keeps = false;
    /// Count: whether the mean is wanted, and whether there is a scale on the device.
    bool is_mean = false, has_scale = false;

    std::uint32_t rows_of_block() const { return threads == 32 ? 4 : 1; }
    std::uint32_t threads_of_block() const { return step == Step::Rows ? threads * rows_of_block() : threads_of_sums; }
    /// What of a row a block keeps, in vectors of 16 bytes.
    std::uint32_t kept_vectors(std::uint32_t classes) const;
    std::uint64_t kept_bytes(std::uint32_t classes) const {
        return keeps ? std::uint64_t(rows_of_block()) * kept_vectors(classes) * 16 : 0;
    }

    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const CrossEntropyKernel&) const = default;
};

}  // namespace ikat::stdlib
