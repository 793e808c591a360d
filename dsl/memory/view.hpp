// SPDX-License-Identifier: Apache-2.0
// Parameters of rank 2 to 5: memory that knows its extents and pitches.
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
// and one of rank r is 2 r: A, A_extent0 (of the outermost dimension) ... A_extent{r-1} (columns), A_pitch0 (elements
// from one index of the outermost dimension to the next) ... A_pitch{r-2} (from one row to the next). An element's
// address is computed in 64 bits from the first product on, so that 32-bit indices work for views of any size:
// A + (u64(i) * pitch + j) * size.
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

inline constexpr int max_dimensions = 5;

/// The parameters of the PTX entry for a parameter of a rank.
template <int rank>
constexpr auto view_types(const trace::ParameterType& pointer) {
    constexpr const char* extents[] = {"extent0", "extent1", "extent2", "extent3", "extent4"};
    constexpr const char* pitches[] = {"pitch0", "pitch1", "pitch2", "pitch3"};
    const auto part = [](const char* name) { return trace::ParameterType{.type = ir::Type::U32, .part = name}; };
    std::array<trace::ParameterType, rank == 1 ? 1 : 2 * rank> out{pointer};
    if constexpr (rank > 1) {
        for (int d = 0; d < rank; ++d) out[std::size_t(1 + d)] = part(extents[d]);
        for (int d = 0; d < rank - 1; ++d) out[std::size_t(1 + rank + d)] = part(rank == 2 ? "pitch" : pitches[d]);
    }
    return out;
}

/// The extents and pitches that follow the pointer.
template <int rank>
ViewShape<rank> view_shape(const trace::Argument* arguments) {
    ViewShape<rank> out;
    for (int d = 0; d < rank; ++d) out.extents[d] = arguments[1 + d].value;
    for (int d = 0; d < rank - 1; ++d) out.pitches[d] = arguments[1 + rank + d].value;
    return out;
}

/// The last of several indices.
template <class... I>
const Index& last_of(const Index& first, const I&... more) {
    if constexpr (sizeof...(I) == 0)
        return first;
    else
        return last_of(more...);
}

/// Accesses that take an index for each dimension d. They are parameters of type Index, and not a pack of any types, so
/// that each has the location where it is written.
template <class E, trace::Direction direction, class Dimensions>
class ViewElements;
template <class E, trace::Direction direction, std::size_t... d>
class ViewElements<E, direction, std::index_sequence<d...>> : public ArrayGuard {
    static constexpr int rank = sizeof...(d);
    template <std::size_t>
    using At = Index;

public:
    ViewElements(const trace::Array& array, const ViewShape<rank>& shape) : array_(array), shape_(shape) {}

    const trace::Array& array() const { return array_; }
    const ViewShape<rank>& shape() const { return shape_; }

    /// Columns N * j ... N * j + N - 1 of a row, whose j is the last index, in one access, which row and array must be
    /// aligned to.
    template <int N>
    auto vec(const At<d>&... i) const {
        return row_of(i...).template vec<N>(last_of(i...));
    }
    /// The element, or `other` if the condition is false: then nothing is accessed.
    template <class Condition, class V>
    auto load_if(Condition&& condition, const At<d>&... i, V&& other) const {
        return row_of(i...).load_if(std::forward<Condition>(condition), last_of(i...), std::forward<V>(other));
    }
    /// The same for vec<N>(i...).
    template <int N, class Condition, class V>
    auto load_if(Condition&& condition, const At<d>&... i, V&& other) const {
        return row_of(i...).template load_if<N>(std::forward<Condition>(condition), last_of(i...),
                                                std::forward<V>(other));
    }
    /// Stores if the condition is true.
    template <class Condition, class V>
    void store_if(Condition&& condition, const At<d>&... i, V&& v,
                  const trace::Where& where = trace::Where::current()) const {
        row_of(i...).store_if(std::forward<Condition>(condition), last_of(i...), std::forward<V>(v), where);
    }
    template <int N, class Condition>
    void store_if(Condition&& condition, const At<d>&... i, const Vec<E, N>& v,
                  const trace::Where& where = trace::Where::current()) const {
        row_of(i...).template store_if<N>(std::forward<Condition>(condition), last_of(i...), v, where);
    }

protected:
    /// The memory from [i...] on, which may be fewer indices than there are dimensions.
    Pointer<E, direction> from(const auto&... i) const {
        const trace::Position steps[] = {i.position()...};
        return Pointer<E, direction>(trace::advanced(array_, steps, shape_.pitches, sizeof...(i)));
    }
    /// The row of an element: all indices but the last.
    Pointer<E, direction> row_of(const At<d>&... i) const {
        const trace::Position steps[] = {i.position()...};
        return Pointer<E, direction>(trace::advanced(array_, steps, shape_.pitches, rank - 1));
    }

private:
    trace::Array array_;
    ViewShape<rank> shape_;
};

}  // namespace detail

template <class E, trace::Direction direction, int rank>
class Pointer : public detail::ViewElements<E, direction, std::make_index_sequence<std::size_t(rank)>> {
    static_assert(rank >= 2 && rank <= detail::max_dimensions,
                  "a parameter has rank 1 to 5: In<float>, In<float, 2>, In<float, 3>");
    static_assert(ir::contains(ir::Storable, ir::type_of<E>),
                  "memory holds integers and floats, named by their host types: In<float>, not In<f32>");
    using Base = detail::ViewElements<E, direction, std::make_index_sequence<std::size_t(rank)>>;

public:
    using element_type = E;
    static constexpr trace::Direction access = direction;
    using Base::array, Base::shape;
    Pointer(const trace::Array& array, const detail::ViewShape<rank>& shape) : Base(array, shape) {}
    template <trace::Direction other_direction>
    requires(direction == trace::Direction::Read && other_direction == trace::Direction::ReadWrite)
        Pointer(const Pointer<E, other_direction, rank>& other)
        : Base(other.array(), other.shape()) {}

    /// The extent of a dimension, 0 (the outermost) to rank - 1: a u32.
    Leaf<std::uint32_t> extent(std::int64_t dimension) const {
        return Leaf<std::uint32_t>(shape().extents[trace::checked_dimension(dimension, rank, "extent")]);
    }
    /// The number of elements from one row to the next, a u32.
    Leaf<std::uint32_t> pitch() const { return pitch(rank - 2); }
    /// The number of elements from one index of a dimension to the next, a u32; for dimensions 0 to rank - 2.
    Leaf<std::uint32_t> pitch(std::int64_t dimension) const {
        return Leaf<std::uint32_t>(shape().pitches[trace::checked_dimension(dimension, rank - 1, "pitch")]);
    }

    /// The element, if there is an index for each dimension; else the part with these indices, of the dimensions that
    /// are left: a row, a plane. Its start is computed once, where it is made.
    auto operator[](const Index& a) const { return at(a); }
    auto operator[](const Index& a, const Index& b) const { return at(a, b); }
    auto operator[](const Index& a, const Index& b, const Index& c) const requires(rank >= 3) { return at(a, b, c); }
    auto operator[](const Index& a, const Index& b, const Index& c, const Index& d) const requires(rank >= 4) {
        return at(a, b, c, d);
    }
    auto operator[](const Index& a, const Index& b, const Index& c, const Index& d, const Index& e) const
        requires(rank >= 5) {
        return at(a, b, c, d, e);
    }
    template <class... I>
    requires(sizeof...(I) > rank) auto operator[](const I&...) const {
        static_assert(sizeof...(I) <= rank, "a view takes at most as many indices as its rank: A[i, j], A[p, i, j]");
        return Base::from(Index(0))[0];
    }

    /// Row i, of rank 1.
    auto row(const Index& i) const requires(rank == 2) { return at(i); }
    auto row(const Index& p, const Index& i) const requires(rank == 3) { return at(p, i); }
    /// Plane p, of rank 2.
    auto plane(const Index& p) const requires(rank == 3) { return at(p); }
    /// rows x columns elements from [i, j] on, with the same pitch. Nothing checks that they are inside the view.
    Pointer window(const Index& i, const Index& j, const Incoming<std::uint32_t>& rows,
                   const Incoming<std::uint32_t>& columns) const requires(rank == 2) {
        const detail::ViewShape<2> part{
            {trace::settled(trace::committed(rows.value())), trace::settled(trace::committed(columns.value()))},
            {shape().pitches[0]}};
        return Pointer(trace::slice(Base::from(i).array(), j.position()), part);
    }

private:
    auto at(const auto&... i) const {
        constexpr int count = sizeof...(i), left = rank - count;
        if constexpr (left == 0) {
            return Base::row_of(i...)[detail::last_of(i...)];
        } else {
            const trace::Array start = trace::fixed(Base::from(i...).array());
            if constexpr (left == 1) {
                return Pointer<E, direction>(start);
            } else {
                detail::ViewShape<left> part;
                for (int d = 0; d < left; ++d) part.extents[d] = shape().extents[count + d];
                for (int d = 0; d < left - 1; ++d) part.pitches[d] = shape().pitches[count + d];
                return Pointer<E, direction, left>(start, part);
            }
        }
    }
};

}  // namespace ikat
