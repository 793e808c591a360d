// SPDX-License-Identifier: Apache-2.0
// Arrays in buffers with gaps, for tests of functions on views.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/tensor_view.hpp"
#include "tests/differential/stdlib/case.hpp"

namespace ikat::test {

using runtime::MutableTensorView;
using runtime::TensorView;
using Extents = std::vector<std::uint64_t>;

/// Where the rows of an array are: without gaps; at multiples of 16 bytes; anywhere; of dimensions in another order.
enum class Place { packed, aligned, odd, permuted };
inline constexpr Place places[] = {Place::aligned, Place::odd, Place::permuted};

/// An array of some shape in a buffer that has gaps. What it holds depends on the seed alone.
template <class T>
class Placed {
public:
    Placed(const runtime::Device& device, Place place, Extents extents, std::uint32_t seed)
        : extents_(std::move(extents)), strides_(extents_.size(), 1) {
        const std::uint64_t columns = extents_.back();
        std::uint64_t stride = place == Place::packed ? columns
                               : place == Place::odd  ? (columns + 2) | 1
                                                      : (columns + 127) / 64 * 64;
        first_ = place == Place::packed ? 0 : place == Place::odd ? 3 : 64;
        const auto add = [&](std::size_t d) {
            strides_[d] = stride;
            stride *= extents_[d];
            if (place == Place::odd) stride += 2;
            if (place == Place::aligned) stride += 64;
        };
        const std::size_t outer = extents_.size() - 1;
        for (std::size_t d = 0; d < outer; ++d) add(place == Place::permuted ? d : outer - 1 - d);
        std::vector<T> all(first_ + stride + columns + 7, sentinel);
        const std::vector<float> numbers = random_elements<float>(size(), seed, -2, 2);
        for (std::size_t i = 0; i < numbers.size(); ++i) all[position(i)] = T(std::is_integral_v<T> ? 0 : numbers[i]);
        buffer_.emplace(device.upload(all));
    }

    MutableTensorView view() const {
        const runtime::BufferPart part = buffer_->memory().whole().from(first_ * sizeof(T));
        return MutableTensorView(
            TensorView(ir::type_of<T>, part, extents_, Extents(strides_.begin(), strides_.end() - 1)));
    }
    operator TensorView() const { return view(); }
    operator MutableTensorView() const { return view(); }

    std::vector<T> exact() const {
        const std::vector<T> all = buffer_->download();
        std::vector<T> out;
        for (std::size_t i = 0; i < size(); ++i) out.push_back(all[position(i)]);
        return out;
    }
    std::vector<float> elements() const {
        const std::vector<T> all = exact();
        return std::vector<float>(all.begin(), all.end());
    }
    /// Gives it other elements, row by row.
    void set(const std::vector<float>& numbers) {
        std::vector<T> all = buffer_->download();
        for (std::size_t i = 0; i < size(); ++i) all[position(i)] = T(numbers[i]);
        buffer_->upload(all);
    }
    /// How many elements of the gaps have changed.
    std::size_t changed_gaps() const {
        const std::vector<T> all = buffer_->download();
        std::vector<bool> is_element(all.size());
        for (std::size_t i = 0; i < size(); ++i) is_element[position(i)] = true;
        std::size_t out = 0;
        for (std::size_t i = 0; i < all.size(); ++i) out += !is_element[i] && float(all[i]) != float(sentinel);
        return out;
    }

private:
    static constexpr T sentinel = T(77);

    std::size_t size() const {
        std::size_t out = 1;
        for (const std::uint64_t extent : extents_) out *= extent;
        return out;
    }
    std::size_t position(std::size_t i) const {
        std::size_t out = first_;
        for (std::size_t d = extents_.size(); d-- > 0; i /= extents_[d]) out += i % extents_[d] * strides_[d];
        return out;
    }

    Extents extents_, strides_;
    std::uint64_t first_ = 0;
    std::optional<runtime::Buffer<T>> buffer_;
};

inline bool same(float a, float b, float bound) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
           std::abs(a - b) <= bound * std::max({1.0f, std::abs(a), std::abs(b)});
}

}  // namespace ikat::test
