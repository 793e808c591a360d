// SPDX-License-Identifier: Apache-2.0
// Parts of buffers, and buffers as matrices: the arguments for parameters such as In<T>, In<T, 2> and In<T, 3>. They
// own nothing: the buffer must outlive them, and may be moved. Using a slice of a freed buffer is an Error.
//
//     Buffer<float> x = device.upload(host, "x");
//     device.launch(k, grid, x.slice(64, 32));                  elements 64 ... 95
//     device.launch(k, grid, x.view(rows, columns));            row-major, one row after the other
//     device.launch(k, grid, x.view(rows, columns).pitched(p)); p elements from one row to the next
//     device.launch(k, grid, x.view(planes, rows, columns));
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "runtime/memory_block.hpp"

namespace ikat::runtime {

/// The error for a part of a freed buffer.
inline constexpr const char* freed = "a slice or a view of a buffer that has been freed is used";
inline constexpr const char* freed_hint = "slices and views own nothing: keep the buffer as long as they are used";

/// Elements first ... first + count - 1 of a part. Throws Error if it does not have them.
BufferPart part_of(const BufferPart& whole, std::uint64_t first, std::uint64_t count, std::size_t element_bytes,
                   const Location& where);

/// The first number of a list, with the location of the call that it is given to. Converted from any integer.
struct LocatedNumber {
    std::uint64_t number;
    Location where;
    LocatedNumber(std::integral auto number, const std::source_location& where = std::source_location::current())
        : number(std::uint64_t(number)), where(Location::of(where)) {}
};

/// A mistake and what to do about it; both empty if there is none.
struct ViewProblem {
    std::string message{}, hint{};
    explicit operator bool() const { return !message.empty(); }
};

/// The number of elements that a row-major array spans, from its first to its last; 0 if it has none. The pitches are
/// those of view_problem.
std::uint64_t view_size(std::span<const std::uint64_t> extents, std::span<const std::uint64_t> pitches);

/// The mistake in viewing `elements` elements as an array, with a pitch in elements for each dimension but the last,
/// whose elements follow each other. None if valid: extents and pitches are below 2^32, neither rows nor planes
/// overlap (of a dimension with one index, the pitch does not matter), and the last element exists. Pitches may be in
/// any order: heads may lie within rows.
ViewProblem view_problem(std::span<const std::uint64_t> extents, std::span<const std::uint64_t> pitches,
                         std::uint64_t elements);

namespace detail {

void read(const BufferPart& part, std::span<std::byte> to);
void write(const BufferPart& part, std::span<const std::byte> from);
void check_view(const BufferPart& part, std::span<const std::uint64_t> extents, std::span<const std::uint64_t> pitches,
                std::size_t element_bytes, const Location& where);
/// Throws Error for columns that rows of that many do not have, and for pieces that they are not made of.
void check_columns(std::uint64_t first, std::uint64_t count, std::uint64_t of, const Location& where);
void check_pieces(std::uint64_t length, std::uint64_t of, const Location& where);

}  // namespace detail

/// A part of a buffer as a row-major array of rank 2 to 5. T is const if the buffer is.
template <class T, int rank>
class BufferView {
public:
    using value_type = std::remove_const_t<T>;
    using view_element = T;
    static constexpr int view_rank = rank;

    /// A view of nothing, without a buffer.
    BufferView() = default;
    /// Throws Error if the part does not have all elements.
    BufferView(const BufferPart& part, const std::array<std::uint64_t, rank>& extents,
               const std::array<std::uint64_t, rank - 1>& pitches,
               const Location& where = Location::of(std::source_location::current()))
        : part_(part), extents_(extents), pitches_(pitches) {
        detail::check_view(part_, extents_, pitches_, sizeof(T), where);
    }

    /// The same extents with other pitches: of rows, or of planes and of rows; in elements.
    template <std::integral... N>
    requires(sizeof...(N) == rank - 2) BufferView pitched(const LocatedNumber& first, N... others)
    const { return BufferView(part_, extents_, {first.number, std::uint64_t(others)...}, first.where); }

    /// Columns first ... first + count - 1 of each row. Throws Error if there are not that many.
    BufferView columns(std::uint64_t first, std::uint64_t count,
                       const Location& where = Location::of(std::source_location::current())) const {
        detail::check_columns(first, count, extents_.back(), where);
        auto extents = extents_;
        extents.back() = count;
        return BufferView(part_.from(first * sizeof(T)), extents, pitches_, where);
    }
    /// Each row in pieces of `length` elements, such as heads: one dimension more. Throws Error if rows are not whole
    /// pieces.
    BufferView<T, rank + 1> split(std::uint64_t length,
                                  const Location& where = Location::of(std::source_location::current())) const
        requires(rank < 5) {
        detail::check_pieces(length, extents_.back(), where);
        std::array<std::uint64_t, rank + 1> extents;
        std::array<std::uint64_t, rank> pitches;
        for (std::size_t i = 0; i < extents_.size(); ++i) extents[i] = extents_[i];
        for (std::size_t i = 0; i < pitches_.size(); ++i) pitches[i] = pitches_[i];
        extents[rank - 1] = extents_.back() / length;
        extents[rank] = pitches[rank - 1] = length;
        return BufferView<T, rank + 1>(part_, extents, pitches, where);
    }

    /// From the first element to the last.
    BufferPart part() const { return {part_.memory, part_.offset, view_size(extents_, pitches_) * sizeof(T)}; }
    const std::array<std::uint64_t, rank>& extents() const { return extents_; }
    const std::array<std::uint64_t, rank - 1>& pitches() const { return pitches_; }

private:
    BufferPart part_{};
    std::array<std::uint64_t, rank> extents_{};
    std::array<std::uint64_t, rank - 1> pitches_{};
};

/// Consecutive elements of a buffer. T is const if the buffer is.
template <class T>
class BufferSlice {
public:
    using value_type = std::remove_const_t<T>;
    using buffer_element = T;

    /// An empty slice without a buffer.
    BufferSlice() = default;
    explicit BufferSlice(const BufferPart& part) : part_(part) {}
    template <class From>
    requires std::same_as<const From, T> BufferSlice(const BufferSlice<From>& other) : part_(other.part()) {}

    std::uint64_t size() const { return part_.bytes / sizeof(T); }
    const BufferPart& part() const { return part_; }

    /// Elements first ... first + count - 1. Throws Error if there are not that many.
    BufferSlice slice(std::uint64_t first, std::uint64_t count,
                      const Location& where = Location::of(std::source_location::current())) const {
        return BufferSlice(part_of(part_, first, count, sizeof(T), where));
    }
    /// view(rows, columns), view(planes, rows, columns), up to five dimensions for the map of a tensor. Throws Error if
    /// there are not that many elements.
    template <std::integral... N>
    requires(sizeof...(N) >= 1 && sizeof...(N) <= 4) auto view(const LocatedNumber& first, N... others) const {
        constexpr int rank = sizeof...(N) + 1;
        const std::array<std::uint64_t, rank> sizes{first.number, std::uint64_t(others)...};
        std::array<std::uint64_t, rank - 1> pitches;
        std::uint64_t pitch = 1;
        for (int d = rank - 1; d > 0; --d) pitches[std::size_t(d - 1)] = pitch *= sizes[std::size_t(d)];
        return BufferView<T, rank>(part_, sizes, pitches, first.where);
    }

    /// Writes at most as many elements as the slice has, starting with the first.
    void upload(std::span<const value_type> from) const requires(!std::is_const_v<T>) {
        detail::write(part_, std::as_bytes(from));
    }
    std::vector<value_type> download() const {
        std::vector<value_type> host(size());
        detail::read(part_, std::as_writable_bytes(std::span(host)));
        return host;
    }

private:
    BufferPart part_;
};

}  // namespace ikat::runtime
