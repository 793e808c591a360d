// SPDX-License-Identifier: Apache-2.0
// The loops over a Ring: of the thread that fills its stages, and of the warps that work on them.
//
//     Ring<4> ring(2);
//     RingPlace<4> at;
//     if_(is_producer, [&] {                                                one thread
//         fill_slices(ring, at, slices, bytes, [&](const auto& stage, const auto& arrival, const auto& slice) {
//             tma_load(a[stage] ..., from_a[row, slice * 64], arrival);
//         });
//     }).else_([&] {                                                        whole warps
//         pipeline(ring, at, slices, [&](const auto& stage, const auto& slice) { ... a[stage] ... });
//     });
#pragma once
#include "dsl/threads/wgmma.hpp"
#include "stdlib/tile/ring.hpp"

namespace ikat::stdlib {

/// By the thread that fills: ask(stage, arrival, slice) for slices 0 to count - 1, in order, each when a stage is free.
/// It begins copies of `bytes` bytes to the stage, which arrive at the barrier `arrival`.
template <std::uint32_t stages>
void fill_slices(const Ring<stages>& ring, RingPlace<stages>& at, const Word& count, const Word& bytes, auto&& ask) {
    const auto of_stage = word(bytes);
    for (auto slice : range(word(count)))
        ring.fill(at, of_stage, [&](const auto& stage, const auto& arrival) { ask(stage, arrival, value(slice)); });
}

/// By the warps that free stages: work(stage, slice) for `count` slices, each when it is there; then its stage is free.
template <std::uint32_t stages>
void pipeline(const Ring<stages>& ring, RingPlace<stages>& at, const Word& count, auto&& work) {
    for (auto slice : range(word(count))) {
        ring.wait(at);
        const auto stage = at.stage();
        work(stage, value(slice));
        sync_warp();  // all lanes are done with it
        ring.free(stage);
        at.next();
    }
}

/// The same for products of a warpgroup: begin(stage, slice) begins them, WarpgroupTiles::begin(). One slice's products
/// are in flight while the next one's begin; then its stage is free. At the end none are in flight. `count` is not 0.
/// all_begun() is called once, while the last slice's are.
template <std::uint32_t stages>
void pipeline_products(const Ring<stages>& ring, RingPlace<stages>& at, const Word& count, auto&& begin,
                       auto&& all_begun) {
    u32 before = 0;
    for (auto slice : range(word(count))) {
        ring.wait(at);
        const auto stage = at.stage();
        wgmma_fence();
        begin(stage, value(slice));
        wgmma_commit();
        wgmma_wait<1>();
        if_(slice != 0u, [&] { ring.free(before); });
        before = stage;
        at.next();
    }
    all_begun();
    wgmma_wait<0>();
    ring.free(before);
}
template <std::uint32_t stages>
void pipeline_products(const Ring<stages>& ring, RingPlace<stages>& at, const Word& count, auto&& begin) {
    pipeline_products(ring, at, count, begin, [] {});
}

}  // namespace ikat::stdlib
