// SPDX-License-Identifier: Apache-2.0
// Tensors in global memory of which one thread copies boxes to and from shared memory (TMA), from sm_90 on.
//
//     [](TensorMap<half, Box<64, 32>> a, ...) {
//         Shared<half, 64, 32> s;
//         Shared<Barrier, 1> full;
//         ...
//         full[0].arrive_expect(a.bytes);
//         tma_load(s[0, 0], a[row, column], full[0]);       64 rows of 32 elements; zeros where there is nothing
//
// A launch takes a view of a buffer, device.launch(k, grid, x.view(m, n), ...), and makes the map that the kernel's
// type asks for. Its base is aligned to 16 bytes, and so are its rows.
#pragma once
#include <array>

#include "dsl/kernel/kernel.hpp"
#include "dsl/record/async/tensor_maps.hpp"
#include "dsl/threads/barrier.hpp"

namespace ikat {

/// A box of which only each S-th row … is copied (cuTensorMapEncodeTiled: elementStrides).
template <class B, std::uint32_t... S>
struct StridedBox : B {
    static constexpr std::array<std::uint32_t, sizeof...(S)> strides{S...};
};

/// The extents of what is copied at once, in elements: rows, columns; up to five dimensions.
template <std::uint32_t... N>
struct Box {
    static constexpr std::uint32_t rank = sizeof...(N);
    static constexpr std::array<std::uint32_t, sizeof...(N)> extents{N...}, strides{(N, 1u)...};
    /// Box<16, 64>::Every<2, 1>: each second row of 16, 8 rows in shared memory.
    template <std::uint32_t... S>
    using Every = StridedBox<Box, S...>;
};

/// The start of a box of elements T, map[row, column].
template <class T>
class TensorPlace {
public:
    explicit TensorPlace(const trace::TensorBox& box) : box_(box) {}
    const trace::TensorBox& box() const { return box_; }

private:
    trace::TensorBox box_;
};

/// A coordinate: a host integer, an i32 or a u32. It may lie outside the tensor.
class Coordinate {
public:
    template <class V, detail::OtherThan<V, Coordinate> = 0>
    Coordinate(V&& v, const trace::Where& where = trace::Where::current()) : value_(take(std::forward<V>(v), where)) {}
    const trace::Recorded& value() const { return value_; }

private:
    template <class V>
    static trace::Recorded take(V&& v, const trace::Where& where) {
        if constexpr (DeviceValue<V> && std::is_same_v<DeviceTypeOf<V>, std::uint32_t>)
            return cast<std::int32_t>(std::forward<V>(v)).recorded();
        else
            return Incoming<std::int32_t>(std::forward<V>(v), where).value();
    }
    trace::Recorded value_;
};

/// What a load has for elements outside of the tensor.
enum class Fill : std::uint8_t { Zeros, NaN };

namespace detail {

template <class B>
constexpr bool check_strides() {
    constexpr bool each = B::strides.size() == B::rank;
    static_assert(each, "Box<...>::Every<S...>: there is one for each dimension");
    if constexpr (each) {
        constexpr bool in_range = [] {
            for (const std::uint32_t stride : B::strides)
                if (stride < 1 || stride > 8) return false;
            return true;
        }();
        static_assert(in_range, "Box<...>::Every<S...>: each is 1 to 8");
        static_assert(B::strides[B::rank - 1] == 1, "Box<...>::Every<S...>: the last is 1, rows are copied whole");
    }
    return each;
}

template <class T, class B, int swizzle, Fill fill>
constexpr TensorMapInfo tensor_map() {
    static_assert(ir::contains(ir::AnyNum | ir::Float8, ir::type_of<T>), "TensorMap: elements are integers and floats");
    static_assert(B::rank >= 1 && B::rank <= 5, "TensorMap: a box has one to five dimensions");
    static_assert(swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == 128,
                  "TensorMap: rows are swizzled within 32, 64 or 128 bytes, or with 0 not at all");
    static_assert(fill == Fill::Zeros || ir::contains(ir::Float, ir::type_of<T>),
                  "TensorMap: only of half, bfloat16, float and double can the fill be NaN");
    TensorMapInfo out{
        .element = ir::type_of<T>, .rank = B::rank, .swizzle = swizzle, .fills_with_nan = fill == Fill::NaN};
    for (std::uint32_t d = 0; d < B::rank; ++d) out.box[d] = B::extents[d];
    if constexpr (check_strides<B>())
        for (std::uint32_t d = 0; d < B::rank; ++d) out.every[d] = B::strides[d];
    return out;
}

template <class T, class B, int swizzle>
constexpr bool check_box() {
    constexpr std::uint64_t row = std::uint64_t{B::extents[B::rank - 1]} * sizeof(T);
    constexpr bool in_range = [] {
        for (const std::uint32_t extent : B::extents)
            if (extent < 1 || extent > 256) return false;
        return true;
    }();
    static_assert(in_range, "Box: each extent is 1 to 256");
    static_assert(row % 16 == 0, "Box: its innermost extent is a multiple of 16 bytes");
    static_assert(swizzle == 0 || row <= swizzle,
                  "TensorMap: a row of a swizzled box has at most as many bytes as that");
    return true;
}

}  // namespace detail

/// A tensor of elements T that the kernel reads and writes in boxes B; rows of a box in shared memory are swizzled
/// within `swizzle` bytes: 16-byte piece number p of row r lies in place p ^ r % 8 with 128 bytes, p ^ r / 2 % 4 with
/// 64, p ^ r / 4 % 2 with 32, if a row has as many bytes.
template <class T, class B, int swizzle_ = 0, Fill fill = Fill::Zeros>
class TensorMap {
    static_assert(detail::check_box<T, B, swizzle_>());

public:
    using element_type = T;
    static constexpr TensorMapInfo map = detail::tensor_map<T, B, swizzle_, fill>();
    static constexpr int rank = int(B::rank), swizzle = swizzle_;
    /// Of a box.
    static constexpr std::uint32_t bytes = std::uint32_t(map.box_bytes());

    explicit TensorMap(const trace::Array& parameter) : parameter_(parameter) {}

    const trace::Array& parameter() const { return parameter_; }
    /// Of the map, a generic address, for inline_ptx().
    Leaf<std::uint64_t> address(const trace::Where& where = trace::Where::current()) const {
        return Leaf<std::uint64_t>(trace::raw_address(parameter_, where));
    }

    // clang-format off
    TensorPlace<T> operator[](const Coordinate& a) const requires(rank == 1) { return at(a); }
    TensorPlace<T> operator[](const Coordinate& a, const Coordinate& b) const requires(rank == 2) { return at(a, b); }
    TensorPlace<T> operator[](const Coordinate& a, const Coordinate& b, const Coordinate& c) const requires(rank == 3) { return at(a, b, c); }
    TensorPlace<T> operator[](const Coordinate& a, const Coordinate& b, const Coordinate& c, const Coordinate& d) const requires(rank == 4) { return at(a, b, c, d); }
    TensorPlace<T> operator[](const Coordinate& a, const Coordinate& b, const Coordinate& c, const Coordinate& d, const Coordinate& e) const requires(rank == 5) { return at(a, b, c, d, e); }
    // clang-format on

private:
    TensorPlace<T> at(const auto&... coordinate) const {
        return TensorPlace<T>({.map = parameter_, .at = {coordinate.value()...}, .rank = sizeof...(coordinate)});
    }

    trace::Array parameter_;
};

template <class T, class B, int swizzle, Fill fill>
struct ParameterTraits<TensorMap<T, B, swizzle, fill>> {
    using Map = TensorMap<T, B, swizzle, fill>;
    static constexpr bool valid = true;
    static constexpr int mapped_rank = Map::rank;
    using host_type = T;
    static constexpr trace::ParameterType types[] = {
        {.type = ir::Type::U8, .bytes = 128, .alignment = 64, .map = &Map::map}};
    static Map make(const trace::Argument* argument) { return Map(argument->array); }
};

namespace detail {

template <class P, class T>
constexpr bool check_box_place() {
    static_assert(CopyPlace<P>::is_place, "a box is copied to or from a place in shared memory: s[i]");
    if constexpr (CopyPlace<P>::is_place)
        static_assert(std::is_same_v<typename CopyPlace<P>::element, T>,
                      "a box is copied between places with elements of the same type; s.as<T>() gives them another");
    return CopyPlace<P>::is_place;
}

}  // namespace detail

/// Begins to copy the box that starts at map[i, ...] to a place in shared memory, aligned to 128 bytes, or with a
/// swizzle to 8 rows of it. One thread calls it. Its bytes, map.bytes, all arrive at the barrier; for elements
/// outside of the tensor there are zeros, or NaN if the map says so.
template <class P, class T>
void tma_load(const P& to, const TensorPlace<T>& from, const BarrierPlace& barrier,
              const trace::Where& where = trace::Where::current()) {
    if constexpr (detail::check_box_place<P, T>())
        trace::tensor_load(to.slot(), from.box(), barrier.slot(), nullptr, where);
}
/// The same to each block of the cluster whose bit is set in the mask: to the same place there, and its bytes arrive at
/// the same barrier there.
template <class P, class T, Operand V>
void tma_load(const P& to, const TensorPlace<T>& from, const BarrierPlace& barrier, V&& mask,
              const trace::Where& where = trace::Where::current()) {
    const trace::Recorded blocks = Incoming<std::uint16_t>(std::forward<V>(mask), where).value();
    if constexpr (detail::check_box_place<P, T>())
        trace::tensor_load(to.slot(), from.box(), barrier.slot(), &blocks, where);
}
/// Begins to copy from shared memory to the box; what lies outside of the tensor is left out. As with bulk_store, other
/// threads' stores come before, with fence_async_shared(), and bulk_commit() makes a group.
template <class T, class P>
void tma_store(const TensorPlace<T>& to, const P& from, const trace::Where& where = trace::Where::current()) {
    if constexpr (detail::check_box_place<P, T>())
        trace::tensor_store(to.box(), from.slot(), ir::BulkForm::Reduction::None, where);
}
/// The same, combining each element with what is there, atomically.
#define IKAT_TENSOR_REDUCTION(name, Kind)                                                                     \
    template <class T, class P>                                                                               \
    void name(const TensorPlace<T>& to, const P& from, const trace::Where& where = trace::Where::current()) { \
        if constexpr (detail::check_box_place<P, T>())                                                        \
            trace::tensor_store(to.box(), from.slot(), ir::BulkForm::Reduction::Kind, where);                 \
    }
IKAT_TENSOR_REDUCTION(tma_add, Add)
IKAT_TENSOR_REDUCTION(tma_min, Min)
IKAT_TENSOR_REDUCTION(tma_max, Max)
IKAT_TENSOR_REDUCTION(tma_and, And)
IKAT_TENSOR_REDUCTION(tma_or, Or)
IKAT_TENSOR_REDUCTION(tma_xor, Xor)
#undef IKAT_TENSOR_REDUCTION
/// Fetches the map itself, so that the first copy with it need not wait for it.
template <class T, class B, int swizzle, Fill fill>
void prefetch(const TensorMap<T, B, swizzle, fill>& map, const trace::Where& where = trace::Where::current()) {
    trace::prefetch_map(map.parameter(), where);
}
/// Fetches the box into the L2 cache.
template <class T>
void tma_prefetch(const TensorPlace<T>& from, const trace::Where& where = trace::Where::current()) {
    trace::tensor_prefetch(from.box(), where);
}

}  // namespace ikat
