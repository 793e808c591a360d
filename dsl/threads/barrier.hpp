// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory, which count arrivals of threads and bytes that copies bring, and copies of many bytes by
// one thread, which arrive there.
//
//     Shared<Barrier, 1> full;
//     Shared<float, 1024> s;
//     if_(thread_id().x == 0, [&] { full[0].init(1); fence_barrier_init(); });
//     sync_block();
//     if_(thread_id().x == 0, [&] {
//         full[0].arrive_expect(4096);                     one arrival, and this many bytes, end the phase
//         bulk_load(s[0], x[0], 4096, full[0]);
//     });
//     full[0].wait(0);                                     until phase 0 has ended: all see what has been copied
//
// Phases are numbered from 0; a thread waits for one by the parity of its number. The phase before the first counts as
// ended: wait(1) returns at once on a new barrier.
#pragma once
#include "dsl/memory/async.hpp"
#include "dsl/record/async/barriers.hpp"
#include "dsl/threads/atomic.hpp"

namespace ikat {

/// The element of Shared<Barrier, N>.
struct Barrier {};

/// One barrier, full[s].
class BarrierPlace {
public:
    explicit BarrierPlace(const trace::Slot& slot) : slot_(slot) {}
    const trace::Slot& slot() const { return slot_; }

    /// By one thread, before all else: each phase ends with this many arrivals, 1 to 2^20 - 1. Others use the barrier
    /// after a fence_barrier_init() by that thread and a sync_block().
    template <Operand V>
    void init(V&& arrivals, const trace::Where& where = trace::Where::current()) const {
        with(ir::MbarrierForm::Kind::Init, std::forward<V>(arrivals), where);
    }
    /// Its bytes may then be used for something else.
    void invalidate(const trace::Where& where = trace::Where::current()) const {
        trace::mbarrier(slot_, {ir::MbarrierForm::Kind::Invalidate}, nullptr, where);
    }

    /// One arrival. What the thread has written before is visible to those that have waited for the phase.
    void arrive(const trace::Where& where = trace::Where::current()) const {
        trace::mbarrier(slot_, {ir::MbarrierForm::Kind::Arrive}, nullptr, where);
    }
    /// The same, and each later phase needs one arrival fewer.
    void arrive_drop(const trace::Where& where = trace::Where::current()) const {
        trace::mbarrier(slot_, {ir::MbarrierForm::Kind::Drop}, nullptr, where);
    }
    /// This many bytes more must arrive before the phase ends: those of the copies that are begun with this barrier.
    template <Operand V>
    void expect(V&& bytes, const trace::Where& where = trace::Where::current()) const {
        with(ir::MbarrierForm::Kind::Expect, std::forward<V>(bytes), where);
    }
    /// expect(bytes) and then arrive().
    template <Operand V>
    void arrive_expect(V&& bytes, const trace::Where& where = trace::Where::current()) const {
        with(ir::MbarrierForm::Kind::ArriveExpect, std::forward<V>(bytes), where);
    }
    /// One arrival as soon as all copy_async() of this thread so far are done.
    void arrive_copies(const trace::Where& where = trace::Where::current()) const { trace::copy_arrive(slot_, where); }

    /// Whether the phase of this parity, 0 or 1, has ended: the present one or the one before it. It may be false for a
    /// while although it has.
    template <Operand V>
    Leaf<bool> try_wait(V&& parity, const trace::Where& where = trace::Where::current()) const {
        return Leaf<bool>(trace::try_barrier(slot_, number(std::forward<V>(parity), where), where));
    }
    /// Waits until it has ended.
    template <Operand V>
    void wait(V&& parity, const trace::Where& where = trace::Where::current()) const {
        trace::wait_at_barrier(slot_, number(std::forward<V>(parity), where), where);
    }

private:
    template <class V>
    static trace::Recorded number(V&& v, const trace::Where& where) {
        return Incoming<std::uint32_t>(std::forward<V>(v), where).value();
    }
    template <class V>
    void with(ir::MbarrierForm::Kind kind, V&& v, const trace::Where& where) const {
        const trace::Recorded value = number(std::forward<V>(v), where);
        trace::mbarrier(slot_, {kind}, &value, where);
    }

    trace::Slot slot_;
};

/// Barriers of the block, in one or two dimensions, from sm_80 on.
template <std::size_t... N>
class Shared<Barrier, N...> : public ArrayGuard {
    static_assert(sizeof...(N) == 1 || sizeof...(N) == 2, "an array of barriers has one or two extents");
    static_assert(((N > 0) && ...), "an extent is at least 1");

public:
    explicit Shared(const trace::Where& where = trace::Where::current())
        : array_(trace::declare_array(ir::Space::Shared, ir::Type::U64, (N * ...), where)) {}
    Shared(const Shared&) = default;
    Shared& operator=(const Shared&) = delete;

    BarrierPlace operator[](const Index& i) const requires(sizeof...(N) == 1) { return at(i); }
    BarrierPlace operator[](const Index& i, const Index& j) const requires(sizeof...(N) == 2) { return at(i, j); }

private:
    BarrierPlace at(const auto&... i) const {
        constexpr std::uint64_t extents[] = {N...};
        const trace::Position indices[] = {i.position()...};
        return BarrierPlace(trace::subscript(array_, indices, extents, sizeof...(N)));
    }

    trace::Array array_;
};

/// By the thread that has made barriers: others, and copies, see them as they are.
inline void fence_barrier_init(const trace::Where& where = trace::Where::current()) {
    fence(Scope::None, FenceOrder::BarrierInit, where);
}
/// What this thread has stored is seen by copies of many bytes, and by products of a warpgroup, that are begun after
/// it, and the next barrier of the block: in shared memory, or with fence_async() in all memory.
inline void fence_async_shared(const trace::Where& where = trace::Where::current()) {
    fence(Scope::None, FenceOrder::AsyncShared, where);
}
inline void fence_async(const trace::Where& where = trace::Where::current()) {
    fence(Scope::None, FenceOrder::Async, where);
}

namespace detail {

template <class V>
trace::ByteCount byte_count(V&& v, const trace::Where& where) {
    trace::ByteCount out{Incoming<std::uint32_t>(std::forward<V>(v), where).value(), 0};
    if constexpr (std::is_integral_v<std::remove_cvref_t<V>>) out.known = std::uint64_t(v);
    return out;
}

template <class To, class From>
constexpr bool check_bulk() {
    constexpr bool places = CopyPlace<To>::is_place && CopyPlace<From>::is_place;
    static_assert(places, "a copy is from a place in memory to another: s[i], x[i]");
    if constexpr (places) {
        static_assert(std::is_same_v<typename CopyPlace<To>::element, typename CopyPlace<From>::element>,
                      "a copy is between places with elements of the same type; x.as<T>() gives them another");
        static_assert(CopyPlace<To>::direction != trace::Direction::Read,
                      "In<T> is read-only: declare the parameter as InOut<T> or Out<T>");
        static_assert(CopyPlace<From>::direction != trace::Direction::Write,
                      "Out<T> is write-only: declare the parameter as InOut<T>");
    }
    return places;
}

/// Whether PTX has the reduction of such elements.
template <ir::BulkForm::Reduction reduction, class To>
constexpr void check_reduction() {
    if constexpr (CopyPlace<To>::is_place) {
        using enum ir::Type;
        constexpr ir::TypeSet compared = ir::set(U32, I32, U64, I64, F16, BF16);
        constexpr ir::TypeSet added = ir::set(U32, I32, U64, F16, BF16, F32, F64);
        constexpr bool adds = reduction == ir::BulkForm::Reduction::Add;
        static_assert(ir::contains(adds ? added : compared, ir::type_of<typename CopyPlace<To>::element>),
                      "elements are added of u32, i32, u64, f16, bf16, f32 and f64, and compared of u32, i32, u64, "
                      "i64, f16 and bf16");
    }
}

template <ir::BulkForm::Reduction reduction, class To, class From, class V>
void bulk_store(const To& to, const From& from, V&& bytes, const trace::Where& where) {
    if constexpr (check_bulk<To, From>())
        trace::bulk_store(to.slot(), from.slot(), byte_count(std::forward<V>(bytes), where), reduction, where);
}

}  // namespace detail

/// Begins to copy `bytes` bytes, a multiple of 16, from a place in global memory to one in shared memory, both aligned
/// to 16 bytes. One thread calls it; the barrier's phase ends when they have arrived. From sm_90 on, like all that
/// follows.
template <class To, class From, Operand V>
void bulk_load(const To& to, const From& from, V&& bytes, const BarrierPlace& barrier,
               const trace::Where& where = trace::Where::current()) {
    if constexpr (detail::check_bulk<To, From>())
        trace::bulk_load(to.slot(), from.slot(), detail::byte_count(std::forward<V>(bytes), where), barrier.slot(),
                         where);
}
/// The same from shared to global memory. Other threads' stores to the source come before: each runs
/// fence_async_shared(), and then they meet at a barrier. The copies up to the next bulk_commit() are a group.
template <class To, class From, Operand V>
void bulk_store(const To& to, const From& from, V&& bytes, const trace::Where& where = trace::Where::current()) {
    detail::bulk_store<ir::BulkForm::Reduction::None>(to, from, std::forward<V>(bytes), where);
}
/// The same, adding each element to what is there, atomically, or taking the least or the greatest of both.
template <class To, class From, Operand V>
void bulk_add(const To& to, const From& from, V&& bytes, const trace::Where& where = trace::Where::current()) {
    detail::check_reduction<ir::BulkForm::Reduction::Add, To>();
    detail::bulk_store<ir::BulkForm::Reduction::Add>(to, from, std::forward<V>(bytes), where);
}
template <class To, class From, Operand V>
void bulk_min(const To& to, const From& from, V&& bytes, const trace::Where& where = trace::Where::current()) {
    detail::check_reduction<ir::BulkForm::Reduction::Min, To>();
    detail::bulk_store<ir::BulkForm::Reduction::Min>(to, from, std::forward<V>(bytes), where);
}
template <class To, class From, Operand V>
void bulk_max(const To& to, const From& from, V&& bytes, const trace::Where& where = trace::Where::current()) {
    detail::check_reduction<ir::BulkForm::Reduction::Max, To>();
    detail::bulk_store<ir::BulkForm::Reduction::Max>(to, from, std::forward<V>(bytes), where);
}
/// Fetches `bytes` bytes of global memory into the L2 cache.
template <class From, Operand V>
void bulk_prefetch(const From& from, V&& bytes, const trace::Where& where = trace::Where::current()) {
    static_assert(detail::CopyPlace<From>::is_place, "bulk_prefetch(x[i], bytes) takes a place in memory");
    if constexpr (detail::CopyPlace<From>::is_place)
        trace::bulk_prefetch(from.slot(), detail::byte_count(std::forward<V>(bytes), where), where);
}
/// Makes a group of this thread's stores since the last one; it may be empty.
inline void bulk_commit(const trace::Where& where = trace::Where::current()) { trace::bulk_commit(where); }
/// Waits until at most the N last groups of this thread are unfinished.
template <int N>
void bulk_wait(const trace::Where& where = trace::Where::current()) {
    static_assert(N >= 0 && N < int(ir::all_copies), "bulk_wait<N>: N is how many groups may be unfinished");
    trace::bulk_wait(N, false, where);
}
/// Waits until all but the last N groups have read their sources, which may then be changed.
template <int N>
void bulk_wait_read(const trace::Where& where = trace::Where::current()) {
    static_assert(N >= 0 && N < int(ir::all_copies), "bulk_wait_read<N>: N is how many groups may be unfinished");
    trace::bulk_wait(N, true, where);
}

}  // namespace ikat
