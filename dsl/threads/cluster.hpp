// SPDX-License-Identifier: Apache-2.0
// Clusters: the blocks of a kernel(...).cluster(4) wait for each other and reach each other's shared memory.
//
//     Shared<u32, 256> counts;
//     counts[thread_id().x] = 0;
//     cluster_sync();                                  all blocks run, and have cleared their counts
//     atomic_add(peer(counts, bin / 256)[bin % 256], 1);
//     cluster_sync();                                  nobody changes them any more
//
// Before a block's shared memory is used, it must have begun, and it must not end before that: a cluster_sync() comes
// before the first use and after the last. Where a block is in its cluster, cluster_rank() and others tell
// (dsl/threads/simt.hpp).
#pragma once
#include "dsl/threads/barrier.hpp"
#include "dsl/threads/simt.hpp"

namespace ikat {

namespace detail {

inline void cluster_barrier(ir::ClusterBarrierForm::Kind kind, const trace::Where& where) {
    trace::effect({.op = ir::Op::ClusterBarrier, .attribute = ir::pack(ir::ClusterBarrierForm{kind})}, {}, where);
}

}  // namespace detail

/// All threads of the cluster wait for each other, and then see what the others have written.
inline void cluster_sync(const trace::Where& where = trace::Where::current()) {
    detail::cluster_barrier(ir::ClusterBarrierForm::Kind::Sync, where);
}
/// The same in two steps: each thread arrives once, and then waits until all have arrived.
inline void cluster_arrive(const trace::Where& where = trace::Where::current()) {
    detail::cluster_barrier(ir::ClusterBarrierForm::Kind::Arrive, where);
}
inline void cluster_wait(const trace::Where& where = trace::Where::current()) {
    detail::cluster_barrier(ir::ClusterBarrierForm::Kind::Wait, where);
}

/// A barrier of another block of the cluster: peer(full[s], rank). Its own threads wait there, which then see what this
/// thread has written before it arrived.
class PeerBarrier {
public:
    explicit PeerBarrier(const trace::Slot& slot) : slot_(slot) {}
    const trace::Slot& slot() const { return slot_; }

    /// One arrival, which other threads that wait for the phase see with all that this thread has stored before.
    void arrive(const trace::Where& where = trace::Where::current()) const {
        trace::mbarrier(slot_, {ir::MbarrierForm::Kind::Arrive}, nullptr, where);
    }
    /// The same, by a thread that has only read: what it has written need not be seen, which saves a fence.
    void arrive_relaxed(const trace::Where& where = trace::Where::current()) const {
        trace::mbarrier(slot_, {ir::MbarrierForm::Kind::ArriveRelaxed}, nullptr, where);
    }
    void arrive_drop(const trace::Where& where = trace::Where::current()) const {
        trace::mbarrier(slot_, {ir::MbarrierForm::Kind::Drop}, nullptr, where);
    }
    template <Operand V>
    void expect(V&& bytes, const trace::Where& where = trace::Where::current()) const {
        with(ir::MbarrierForm::Kind::Expect, std::forward<V>(bytes), where);
    }
    template <Operand V>
    void arrive_expect(V&& bytes, const trace::Where& where = trace::Where::current()) const {
        with(ir::MbarrierForm::Kind::ArriveExpect, std::forward<V>(bytes), where);
    }
    template <class V>
    void wait(V&&) const {
        static_assert(always_false<V>, "only threads of its own block wait at a barrier");
    }
    template <class V>
    void try_wait(V&&) const {
        static_assert(always_false<V>, "only threads of its own block wait at a barrier");
    }

private:
    template <class V>
    void with(ir::MbarrierForm::Kind kind, V&& v, const trace::Where& where) const {
        const trace::Recorded value = Incoming<std::uint32_t>(std::forward<V>(v), where).value();
        trace::mbarrier(slot_, {kind}, &value, where);
    }

    trace::Slot slot_;
};

namespace detail {

template <class E, std::size_t... N>
requires std::is_base_of_v<Array<trace::Direction::ReadWrite, E, N...>, Shared<E, N...>>
auto peer_of(const Shared<E, N...>& array, const trace::Recorded& rank, const trace::Where& where) {
    return Array<trace::Direction::ReadWrite, E, N...>(trace::peer(array.flat().array(), rank, where));
}
template <class E>
auto peer_of(const Indexable<E, trace::Direction::ReadWrite>& array, const trace::Recorded& rank,
             const trace::Where& where) {
    return Indexable<E, trace::Direction::ReadWrite>(trace::peer(array.array(), rank, where));
}
inline PeerBarrier peer_of(const BarrierPlace& barrier, const trace::Recorded& rank, const trace::Where& where) {
    trace::Slot slot = barrier.slot();
    slot.array = trace::peer(slot.array, rank, where);
    return PeerBarrier(slot);
}

}  // namespace detail

/// The same array, or the same barrier, of the block of the cluster with this rank.
template <class A, Operand R>
auto peer(const A& of, R&& rank, const trace::Where& where = trace::Where::current()) {
    const trace::Recorded number = Incoming<std::uint32_t>(std::forward<R>(rank), where).value();
    if constexpr (requires { detail::peer_of(of, number, where); })
        return detail::peer_of(of, number, where);
    else
        static_assert(always_false<A>,
                      "peer(s, rank) is of a Shared<T, N> array of numbers, of dynamic_shared<T>(), or of a barrier, "
                      "full[i]");
}

/// Begins to copy `bytes` bytes, a multiple of 16, from a place in the block's own shared memory to one in another
/// block of the cluster: bulk_send(peer(s, rank)[i], r[j], bytes, peer(full[k], rank)). One thread calls it; the bytes
/// arrive at the barrier, which is of that block. What other threads have stored is copied after their
/// fence_async_shared() and a barrier, as in bulk_store().
template <class To, class From, Operand V>
void bulk_send(const To& to, const From& from, V&& bytes, const PeerBarrier& barrier,
               const trace::Where& where = trace::Where::current()) {
    if constexpr (detail::check_bulk<To, From>())
        trace::bulk_send(to.slot(), from.slot(), detail::byte_count(std::forward<V>(bytes), where), barrier.slot(),
                         where);
}

}  // namespace ikat
