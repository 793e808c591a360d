// SPDX-License-Identifier: Apache-2.0
// An array in device memory whose type and shape are data: what functions of the library take, and tools give them.
//
//     gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n));    each view becomes a TensorView
//     gemv(device, quantised_view(w, Quantised::Q4_K, {rows, columns}), x, y);
//
// A function that writes an array takes a MutableTensorView, which is made of buffers and views that are not const.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>

#include "codegen/ir/type.hpp"
#include "runtime/buffer.hpp"
#include "runtime/quantised_format.hpp"

namespace ikat::runtime {

/// Owns nothing: the buffer must outlive it.
struct TensorView {
    static constexpr std::uint32_t max_dimensions = 5;
    using Numbers = std::array<std::uint64_t, max_dimensions>;

    ir::Type type = ir::Type::Void;     // of the elements; Void if they are quantised weights ...
    std::optional<Quantised> format{};  // ... of this format
    BufferPart part{};                  // from the first element to the last
    std::uint32_t rank = 0;
    Numbers extents{};  // of `rank` dimensions, the outermost first
    Numbers strides{};  // ... elements from one index to the next

    TensorView() = default;
    template <class T, int r>
    TensorView(const BufferView<T, r>& view) : type(ir::type_of<std::remove_const_t<T>>), part(view.part()), rank(r) {
        for (std::size_t d = 0; d < rank; ++d) {
            extents[d] = view.extents()[d];
            strides[d] = d + 1 < rank ? view.pitches()[d] : 1;
        }
    }
    template <class T>
    TensorView(const BufferSlice<T>& slice)
        : type(ir::type_of<std::remove_const_t<T>>), part(slice.part()), rank(1), extents{slice.size()}, strides{1} {}
    template <Element T>
    TensorView(const Buffer<T>& buffer) : TensorView(BufferSlice<const T>(buffer)) {}
    /// The first elements of a part, with the strides of all dimensions but the last; none: rows follow each other.
    /// Throws Error for a part that does not have them.
    TensorView(ir::Type type, const BufferPart& part, std::span<const std::uint64_t> extents,
               std::span<const std::uint64_t> pitches = {},
               const Location& where = Location::of(std::source_location::current()));
    /// The first weights of a part: rows of whole blocks, with the strides of all dimensions but the last, in weights;
    /// none: rows follow each other. Throws Error for a part that does not have them, and for rows and strides that are
    /// not whole blocks.
    TensorView(Quantised format, const BufferPart& part, std::span<const std::uint64_t> extents,
               std::span<const std::uint64_t> pitches = {},
               const Location& where = Location::of(std::source_location::current()));

    /// "f32", "q4_k"
    std::string_view type_name() const;

    /// The same with dimensions of one index before the others, so that there are `wanted`, no fewer than it has.
    TensorView of_rank(std::uint32_t wanted) const;
    /// Dimension d is the old dimension order[d].
    TensorView permuted(const std::array<std::uint32_t, max_dimensions>& order) const;
    /// The extents of the first n dimensions.
    template <std::size_t n>
    std::array<std::uint64_t, n> shape() const {
        std::array<std::uint64_t, n> out;
        for (std::size_t d = 0; d < n; ++d) out[d] = extents[d];
        return out;
    }
};

/// One that may be written.
struct MutableTensorView : TensorView {
    MutableTensorView() = default;
    template <class T, int r>
    MutableTensorView(const BufferView<T, r>& view) : TensorView(view) {
        check<T>();
    }
    template <class T>
    MutableTensorView(const BufferSlice<T>& slice) : TensorView(slice) {
        check<T>();
    }
    template <Element T>
    MutableTensorView(Buffer<T>& buffer) : TensorView(buffer) {}
    /// Of a view whose memory may be written, which its type does not tell.
    explicit MutableTensorView(const TensorView& view) : TensorView(view) {}

private:
    template <class T>
    static constexpr void check() {
        static_assert(!std::is_const_v<T>,
                      "the function writes this array, but it is const: pass a view of a Buffer "
                      "that is not const");
    }
};

/// Quantised weights in a buffer of bytes. Pitches are as those of TensorView: how many weights from one row to the
/// next, which are whole blocks.
template <class Bytes>
requires std::is_constructible_v < BufferSlice<const std::uint8_t>,
const Bytes& > TensorView quantised_view(const Bytes& bytes, Quantised format,
                                         std::initializer_list<std::uint64_t> extents,
                                         std::initializer_list<std::uint64_t> pitches = {},
                                         const Location& where = Location::of(std::source_location::current())) {
    return TensorView(format, BufferSlice<const std::uint8_t>(bytes).part(), {extents.begin(), extents.size()},
                      {pitches.begin(), pitches.size()}, where);
}

}  // namespace ikat::runtime
