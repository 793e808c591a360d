// SPDX-License-Identifier: Apache-2.0
// The kernels of quantise(): floats to blocks of 32 weights. Eight lanes make a block, each from four neighbours.
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/record/capture.hpp"
#include "runtime/quantised_format.hpp"

namespace ikat::stdlib {

/// Which of the kernels. Its parameters:
///
///     x              f32, f16, bf16
///     w              bytes
///     rows, columns  of x and of w
///     x_pitch        from a row of x to the next: in fours of elements if x_is_aligned, else in elements
///     w_pitch        ... of w, in bytes
///
/// A warp takes eight blocks of a row.
struct QuantiserKernel {
    runtime::Quantised format = runtime::Quantised::Q8_0;  // or Q4_0, MXFP4
    ir::Type x = ir::Type::F32;
    bool x_is_aligned = true;  // rows begin at multiples of four elements

    /// Whether there are kernels for it.
    static bool takes(runtime::Quantised format);

    /// "quantise_q8_0_f16".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const QuantiserKernel&) const = default;
};

}  // namespace ikat::stdlib
