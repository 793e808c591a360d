// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory that continue while the thread does, in groups.
//
//     copy_async<16>(s.vec<4>(i), x.vec<4>(i));       begins; s and x must not be touched there
//     copy_commit();                                  closes the group of the copies so far
//     ...
//     copy_wait<0>();                                 until none of the thread's groups is unfinished
//     sync_block();                                   until the other threads' are done, too
//
// A place is an element, s[i], from which on this many bytes are copied, or a vector of as many bytes. Both must be
// aligned to that many. Targets below sm_80 load and store instead.
#pragma once
#include "dsl/memory/memory.hpp"
#include "dsl/record/async/copies.hpp"

namespace ikat {
namespace detail {

/// What is known of a place at compile time; of anything else, nothing.
template <class P>
struct CopyPlace {
    static constexpr bool is_place = false;
};
template <class E, trace::Direction direction_>
struct CopyPlace<Subscript<E, direction_>> {
    static constexpr bool is_place = true;
    using element = E;
    static constexpr trace::Direction direction = direction_;
    static constexpr int bytes = 0;  // as many as are asked for
};
template <class E, int N, trace::Direction direction_>
struct CopyPlace<VecSubscript<E, N, direction_>> {
    static constexpr bool is_place = true;
    using element = E;
    static constexpr trace::Direction direction = direction_;
    static constexpr int bytes = N * int(sizeof(E));
};

template <int bytes, class To, class From>
constexpr bool check_copy() {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "copy_async<N>: a thread copies 4, 8 or 16 bytes");
    constexpr bool places = CopyPlace<To>::is_place && CopyPlace<From>::is_place;
    static_assert(places, "copy_async(to, from) takes places in memory: s[i], x[i], x.vec<4>(i)");
    if constexpr (places) {
        using To_ = CopyPlace<To>;
        using From_ = CopyPlace<From>;
        using E = typename To_::element;
        static_assert(std::is_same_v<E, typename From_::element>,
                      "copy_async(to, from): both places have elements of the same type; x.as<T>() gives them another");
        static_assert(bytes < 4 || bytes % int(sizeof(E)) == 0, "copy_async<N>: N bytes are whole elements");
        static_assert((To_::bytes == 0 || To_::bytes == bytes) && (From_::bytes == 0 || From_::bytes == bytes),
                      "copy_async<N>: a vector has N bytes: s.vec<4>(i) of floats, 16");
        static_assert(To_::direction != trace::Direction::Read,
                      "copy_async(to, from): what is copied to is a Shared array");
        static_assert(From_::direction != trace::Direction::Write,
                      "Out<T> is write-only: declare the parameter as InOut<T>");
    }
    return places;
}

}  // namespace detail

/// Begins to copy `bytes` bytes (4, 8 or 16) from a place in global memory to one in shared memory.
template <int bytes, class To, class From>
void copy_async(const To& to, const From& from, const trace::Where& where = trace::Where::current()) {
    if constexpr (detail::check_copy<bytes, To, From>())
        trace::copy_async(to.slot(), from.slot(), bytes, nullptr, where);
}
/// The same if the condition is true. If not, nothing is read, and zeros are written.
template <int bytes, class Condition, class To, class From>
void copy_async_if(Condition&& condition, const To& to, const From& from,
                   const trace::Where& where = trace::Where::current()) {
    const trace::Recorded read = Incoming<bool>(std::forward<Condition>(condition)).value();
    if constexpr (detail::check_copy<bytes, To, From>()) trace::copy_async(to.slot(), from.slot(), bytes, &read, where);
}
/// Makes a group of the thread's copies since the last one; it may be empty.
inline void copy_commit(const trace::Where& where = trace::Where::current()) { trace::copy_commit(where); }
/// Waits until at most the N last groups of this thread are unfinished. Only this thread sees what they have copied:
/// others do after a sync_block() that follows.
template <int N>
void copy_wait(const trace::Where& where = trace::Where::current()) {
    static_assert(N >= 0 && N < int(ir::all_copies), "copy_wait<N>: N is how many groups may be unfinished");
    trace::copy_wait(N, where);
}
/// Waits for all of the thread's copies, committed or not.
inline void copy_wait(const trace::Where& where = trace::Where::current()) { trace::copy_wait(ir::all_copies, where); }

}  // namespace ikat
