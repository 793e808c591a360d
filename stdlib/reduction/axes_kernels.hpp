// SPDX-License-Identifier: Apache-2.0
// The kernels of reductions along dimensions: which threads make a result, and where they find its elements.
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/kernel/kernel.hpp"
#include "dsl/memory/structs.hpp"
#include "stdlib/reduction/axes.hpp"

namespace ikat::stdlib {

/// Where elements and results are, in elements. The number of a result counts along the dimensions kept0 x kept1 x ...,
/// the first of which changes first, and that of an element along reduced0 x reduced1 x ...; x0, y0 and r0 are the
/// strides of these.
struct ReductionPlaces {
    BOOST_HANA_DEFINE_STRUCT(ReductionPlaces,
                             /// A power of 2: pieces of that many elements, which follow each other, begin at multiples
                             /// of the bytes of a piece, up to 16.
                             (std::uint32_t, unit), (std::uint32_t, results), (std::uint32_t, elements),
                             (std::uint32_t, shares), (std::uint32_t, kept0), (std::uint32_t, kept1),
                             (std::uint32_t, kept2), (std::uint32_t, x0), (std::uint32_t, x1), (std::uint32_t, x2),
                             (std::uint32_t, x3), (std::uint32_t, y0), (std::uint32_t, y1), (std::uint32_t, y2),
                             (std::uint32_t, y3), (std::uint32_t, reduced0), (std::uint32_t, reduced1),
                             (std::uint32_t, reduced2), (std::uint32_t, reduced3), (std::uint32_t, r0),
                             (std::uint32_t, r1), (std::uint32_t, r2), (std::uint32_t, r3), (std::uint32_t, r4));
};

/// Which threads make a result.
enum class ReductionThreads : std::uint8_t {
    warp,    // a warp, along the elements
    block,   // a block of 256
    columns  // eight threads, each of another warp; those of a warp go along 32 results
};

struct ReductionKernel {
    Reduction what = Reduction::sum;
    ir::Type x = ir::Type::F32;
    ReductionThreads threads = ReductionThreads::warp;
    bool one_dimension = true;  // is reduced
    bool in_shares = false;     // of the elements: results are not finished, but stored for ...
    bool combines = false;      // ... this kernel, which has a warp for each result
    bool unbiased = false;

    static constexpr std::uint32_t block = 256;
    std::uint32_t results_of_block() const {
        return threads == ReductionThreads::block ? 1 : threads == ReductionThreads::columns ? 32 : block / 32;
    }
    /// A share has a number for each result, of a variance two; and a count, or an index, of some reductions.
    bool has_second() const { return what == Reduction::variance; }
    bool has_count() const {
        return what == Reduction::variance || what == Reduction::argmax || what == Reduction::argmin;
    }

    std::string name() const;
    /// Its parameters are x, y, a, b, n, places: y or, in shares, a and those of b and n that there are, of shares x
    /// results. One that combines has no x.
    KernelHandle make() const;
    const KernelHandle& handle() const;
    auto operator<=>(const ReductionKernel&) const = default;
};

}  // namespace ikat::stdlib
