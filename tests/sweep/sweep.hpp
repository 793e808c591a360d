// SPDX-License-Identifier: Apache-2.0
// Runs the functions of the table on a device and compares with the host: with stride 1, f32 over all arguments, f64
// over 2^26 and powers over 2^30 fixed samples; with a larger stride, over proportionally fewer.
#pragma once
#include <cstdint>

#include "runtime/device.hpp"
#include "tests/sweep/functions.hpp"

namespace ikat::test {

/// The stride of the sweep in every test run.
inline constexpr std::uint32_t sample_stride = 4001;

/// The result of a sweep. Of equal errors the first is kept.
template <class T>
struct Outcome {
    double error = 0;  ///< in the function's units; infinite if a result is of a wrong kind
    T at = 0, y = 0, got = 0;
    std::uint64_t arguments = 0, misrounded = 0;
    std::uint64_t digest = 0;

    double misrounded_percent() const { return 100 * double(misrounded) / double(arguments); }
};

/// Both signs of every stride-th magnitude, in the order of their bits. For an odd or even function the host computes
/// only f(x), unless the bits of f(-x) do not match.
Outcome<float> sweep(const Function<float>& function, const runtime::Device& device, std::uint32_t stride);

/// Special values (zeros, infinities ...), then alternately arbitrary bit patterns and ordinary numbers.
Outcome<double> sweep(const Function<double>& function, const runtime::Device& device, std::uint32_t stride);

/// Pairs: of special values; of all exponents; whose power is in range; of x near 1; of y that are halves.
Outcome<float> sweep(const Power& power, const runtime::Device& device, std::uint32_t stride);

/// The error at one argument.
template <class T>
double error_at(const Function<T>& function, const runtime::Device& device, T x);
double error_at(const Power& power, const runtime::Device& device, float x, float y);

}  // namespace ikat::test
