// SPDX-License-Identifier: Apache-2.0
#include "tests/sweep/sweep.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/simt.hpp"
#include "tests/sweep/outcome.hpp"

namespace ikat::test {
namespace {

constexpr std::uint32_t sign = 0x80000000u, infinity = 0x7f800000u;

/// y[i] = f(x), where x is the float with the bits first + i stride.
auto made(const Function<float>& function) {
    return kernel("sweep", params("y", "first", "stride", "n"),
                  [f = function.device](Out<float> y, u32 first, u32 stride, u32 n) {
                      for (auto i : grid_stride(n)) y[i] = f(value(bit_cast<f32>(fma(i, stride, first))));
                  });
}

/// Processes slice by slice the results for positive and for negative arguments, and accumulates the outcome.
class Sweep {
public:
    Sweep(const Function<float>& function, const runtime::Device& device)
        : function_(function), device_(device), kernel_(made(function)), y_(device.buffer<float>(slice, "y")) {}

    Outcome<float> with_stride(std::uint32_t stride) {
        const std::uint64_t count = (std::uint64_t{sign} + stride - 1) / stride;
        for (std::uint64_t i = 0; i < count; i += slice) {
            const auto first = std::uint32_t(i * stride), n = std::uint32_t(std::min<std::uint64_t>(slice, count - i));
            run(positive_, first, stride, n);
            run(negative_, first | sign, stride, n);
            for (std::uint32_t k = 0; k < n; ++k) compare(first + k * stride, positive_[k], negative_[k]);
        }
        return outcome_;
    }

private:
    static constexpr std::uint32_t slice = 1 << 18;

    void run(std::vector<float>& to, std::uint32_t first, std::uint32_t stride, std::uint32_t n) {
        y_.upload(poison_);
        device_.launch(kernel_, runtime::grid(std::min(n, 1u << 16), 256), y_, first, stride, n);
        y_.download(to);
    }

    void compare(std::uint32_t bits, float positive, float negative) {
        outcome_.arguments += 2;
        outcome_.digest += digest_of(bits, positive) + digest_of(bits | sign, negative);
        const auto x = std::bit_cast<float>(bits);
        const double want = bits > infinity ? double(x) : function_.host(x);
        const bool rounded = count(x, positive, want);
        if (mirrored(positive, negative))
            outcome_.misrounded += !rounded;
        else
            count(-x, negative, bits > infinity ? want : function_.host(-double(x)));
    }

    /// Whether the error of f(-x) is known from that of f(x).
    bool mirrored(float positive, float negative) const {
        const std::uint32_t flip = function_.symmetry == Symmetry::Odd ? sign : 0;
        return function_.symmetry != Symmetry::None &&
               (std::bit_cast<std::uint32_t>(positive) ^ flip) == std::bit_cast<std::uint32_t>(negative);
    }

    bool count(float x, float got, double want) {
        return note(outcome_, x, 0.0f, got, want, [&] { return error_of(function_, x, got, want); });
    }

    const Function<float>& function_;
    const runtime::Device& device_;
    decltype(made(function_)) kernel_;
    runtime::Buffer<float> y_;
    const std::vector<float> poison_ = std::vector<float>(slice, -77);
    std::vector<float> positive_ = std::vector<float>(slice), negative_ = positive_;
    Outcome<float> outcome_;
};

}  // namespace

Outcome<float> sweep(const Function<float>& function, const runtime::Device& device, std::uint32_t stride) {
    return Sweep(function, device).with_stride(stride);
}

}  // namespace ikat::test
