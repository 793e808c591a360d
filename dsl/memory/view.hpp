// SPDX-License-Identifier: Apache-2.0
// Parameters of rank 2 and 3: memory that knows its extents and pitches.
//
//     [](In<float, 2> A, Out<float> y) {
//         f32 sum = 0;
//         auto row = A[block_id().x];                      // an In<float>
//         for (auto j : range(A.extent(1))) sum += row[j];
//
// A parameter `A` of rank 2 is four parameters of the PTX entry, in this order:
//
//     .param .u64 A           where A[0, 0] is
//     .param .u32 A_extent0   rows
//     .param .u32 A_extent1   columns
//     .param .u32 A_pitch     elements from one row to the next, at least as many as columns
//
// and one of rank 3 is six: A, A_extent0 (planes), A_extent1 (rows), A_extent2 (columns), A_pitch0 (elements from one
// plane to the next), A_pitch1 (from one row to the next). An element's address is computed in 64 bits from the first
// product on, so that 32-bit indices work for views of any size: A + (u64(i) * pitch + j) * size.
#pragma once
#include <array>

#include "dsl/memory/memory.hpp"
#include "dsl/record/capture.hpp"

namespace ikat {
namespace detail {

template <int rank>
struct ViewShape {
    trace::Recorded extents[rank];
    trace::Recorded pitches[rank - 1];
};

/// The parameters of the PTX entry for a parameter of a rank.
template <int rank>
constexpr auto view_types(const trace::ParameterType& pointer) {
    const auto part = [](const char* name) { return trace::ParameterType{.type = ir::Type::U32, .part = name}; };
    if constexpr (rank == 2)
        return std::array{pointer, part("extent0"), part("extent1"), part("pitch")};
    else if constexpr (rank == 3)
        return std::array{pointer, part("extent0"), part("extent1"), part("extent2"), part("pitch0"), part("pitch1")};
    else
        return std::array{pointer};
}

/// The extents and pitches that follow the pointer.
template <int rank>
ViewShape<rank> view_shape(const trace::Argument* arguments) {
    ViewShape<rank> out;
    for (int d = 0; d < rank; ++d) out.extents[d] = arguments[1 + d].value;
    for (int d = 0; d < rank - 1; ++d) out.pitches[d] = arguments[1 + rank + d].value;
    return out;
}

}  // namespace detail

template <class E, trace::Direction direction, int rank>
class Pointer : public ArrayGuard {
    static_assert(rank == 2 || rank == 3, "a parameter has rank 1, 2 or 3: In<float>, In<float, 2>, In<float, 3>");
    static_assert(ir::contains(ir::Storable, ir::type_of<E>),
                  "memory holds integers and floats, named by their host types: In<float>, not In<f32>");
    using Row = Pointer<E, direction>;
    using T = E;

public:
    using element_type = E;
    Pointer(const trace::Array& array, const detail::ViewShape<rank>& shape) : array_(array), shape_(shape) {}
    template <trace::Direction other_direction>
    requires(direction == trace::Direction::Read && other_direction == trace::Direction::ReadWrite)
        Pointer(const Pointer<E, other_direction, rank>& other)
        : array_(other.array()), shape_(other.shape()) {}

    const trace::Array& array() const { return array_; }
    const detail::ViewShape<rank>& shape() const { return shape_; }

    /// The extent of a dimension, 0 (the outermost) to rank - 1: a u32.
    Leaf<std::uint32_t> extent(std::int64_t dimension) const {
        return Leaf<std::uint32_t>(shape_.extents[trace::checked_dimension(dimension, rank, "extent")]);
    }
    /// The number of elements from one row to the next, a u32.
    Leaf<std::uint32_t> pitch() const { return pitch(rank - 2); }
    /// The number of elements from one index of a dimension to the next, a u32; for dimensions 0 to rank - 2.
    Leaf<std::uint32_t> pitch(std::int64_t dimension) const {
        return Leaf<std::uint32_t>(shape_.pitches[trace::checked_dimension(dimension, rank - 1, "pitch")]);
    }

    // ---- elements

    auto operator[](const Index& i, const Index& j) const requires(rank == 2) { return elements(i)[j]; }
    auto operator[](const Index& p, const Index& i, const Index& j) const requires(rank == 3) {
        return elements(p, i)[j];
    }
    template <class... I>
    requires(sizeof...(I) > rank) auto operator[](const I&...) const {
        static_assert(sizeof...(I) <= rank, "a view takes at most as many indices as its rank: A[i, j], A[p, i, j]");
        return elements(Index(0))[0];
    }
    /// Columns N * j ... N * j + N - 1 of a row in one access, which row and array must be aligned to.
    template <int N>
    auto vec(const Index& i, const Index& j) const requires(rank == 2) {
        return elements(i).template vec<N>(j);
    }
    template <int N>
    auto vec(const Index& p, const Index& i, const Index& j) const requires(rank == 3) {
        return elements(p, i).template vec<N>(j);
    }
    /// The element, or `other` if the condition is false: then nothing is accessed.
    template <class Condition, class V>
    auto load_if(Condition&& condition, const Index& i, const Index& j, V&& other) const requires(rank == 2) {
        return elements(i).load_if(std::forward<Condition>(condition), j, std::forward<V>(other));
    }
    template <class Condition, class V>
    auto load_if(Condition&& condition, const Index& p, const Index& i, const Index& j, V&& other) const
        requires(rank == 3) {
        return elements(p, i).load_if(std::forward<Condition>(condition), j, std::forward<V>(other));
    }
    /// The same for vec<N>(i, j).
    template <int N, class Condition, class V>
    auto load_if(Condition&& condition, const Index& i, const Index& j, V&& other) const requires(rank == 2) {
        return elements(i).template load_if<N>(std::forward<Condition>(condition), j, std::forward<V>(other));
    }
    template <int N, class Condition, class V>
    auto load_if(Condition&& condition, const Index& p, const Index& i, const Index& j, V&& other) const
        requires(rank == 3) {
        return elements(p, i).template load_if<N>(std::forward<Condition>(condition), j, std::forward<V>(other));
    }
    /// Stores if the condition is true.
    template <class Condition, class V>
    void store_if(Condition&& condition, const Index& i, const Index& j, V&& v,
                  const trace::Where& where = trace::Where::current()) const requires(rank == 2) {
        elements(i).store_if(std::forward<Condition>(condition), j, std::forward<V>(v), where);
    }
    template <class Condition, class V>
    void store_if(Condition&& condition, const Index& p, const Index& i, const Index& j, V&& v,
                  const trace::Where& where = trace::Where::current()) const requires(rank == 3) {
        elements(p, i).store_if(std::forward<Condition>(condition), j, std::forward<V>(v), where);
    }
    template <int N, class Condition>
    void store_if(Condition&& condition, const Index& i, const Index& j, const Vec<T, N>& v,
                  const trace::Where& where = trace::Where::current()) const requires(rank == 2) {
        elements(i).template store_if<N>(std::forward<Condition>(condition), j, v, where);
    }
    template <int N, class Condition>
    void store_if(Condition&& condition, const Index& p, const Index& i, const Index& j, const Vec<T, N>& v,
                  const trace::Where& where = trace::Where::current()) const requires(rank == 3) {
        elements(p, i).template store_if<N>(std::forward<Condition>(condition), j, v, where);
    }

    // ---- parts: their start is computed once, where they are made

    /// Row i, of rank 1.
    Row row(const Index& i) const requires(rank == 2) { return Row(trace::fixed(elements(i).array())); }
    Row row(const Index& p, const Index& i) const requires(rank == 3) {
        return Row(trace::fixed(elements(p, i).array()));
    }
    Row operator[](const Index& i) const requires(rank == 2) { return row(i); }
    Row operator[](const Index& p, const Index& i) const requires(rank == 3) { return row(p, i); }
    /// Plane p, of rank 2.
    auto plane(const Index& p) const requires(rank == 3) {
        const detail::ViewShape<2> shape{{shape_.extents[1], shape_.extents[2]}, {shape_.pitches[1]}};
        return Pointer<E, direction, 2>(trace::fixed(elements(p).array()), shape);
    }
    auto operator[](const Index& p) const requires(rank == 3) { return plane(p); }
    /// rows x columns elements from [i, j] on, with the same pitch. Nothing checks that they are inside the view.
    Pointer window(const Index& i, const Index& j, const Incoming<std::uint32_t>& rows,
                   const Incoming<std::uint32_t>& columns) const requires(rank == 2) {
        const detail::ViewShape<2> shape{
            {trace::settled(trace::committed(rows.value())), trace::settled(trace::committed(columns.value()))},
            {shape_.pitches[0]}};
        return Pointer(trace::slice(elements(i).array(), j.position()), shape);
    }

private:
    /// The memory from [i...] on.
    Row elements(const auto&... i) const {
        const trace::Position steps[] = {i.position()...};
        return Row(trace::advanced(array_, steps, shape_.pitches, sizeof...(i)));
    }

    trace::Array array_;
    detail::ViewShape<rank> shape_;
};

}  // namespace ikat
