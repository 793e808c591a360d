// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/definedness.hpp"

#include <algorithm>
#include <bit>

namespace ikat::emulator {

void Definedness::start(const DecodedKernel& checked, bool defined) {
    predicate_bytes = checked.predicate_bytes;
    checked_of = checked.checked_of.data();
    plain_of = checked.plain_of.data();
    const auto masks_up_to = [&](std::uint32_t end) { return predicate_bytes / 4 + (end - predicate_bytes) / 32; };
    words = masks_up_to(checked.frame_bytes);
    undefined.assign(2 * std::size_t(words), 0);
    made_by.assign((checked.frame_bytes - predicate_bytes) / 128, ~0u);
    unwritten = {};
    stored_of = ~0u;
    if (defined) return;
    const std::uint32_t registers = masks_up_to(checked.register_bytes);
    std::fill_n(undefined.begin(), registers, all_lanes);
    std::fill_n(undefined.begin() + std::ptrdiff_t(words), registers, all_lanes);
}

void shuffle_definedness(const MicroOp* op, Warp* w, std::uint32_t mask, const std::uint32_t* sources,
                         const std::uint32_t* there) {
    std::uint32_t from[4], from_computed[4];  // d may be a
    std::copy_n(undefined_at(w, op->a), 4, from);
    std::copy_n(computed_at(w, op->a), 4, from_computed);
    const std::uint32_t maker = maker_of(w, op->a);
    std::uint32_t *const to = undefined_at(w, op->d), *const to_computed = computed_at(w, op->d);
    bool some_absent = false;
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const bool absent = !(there[lane] >> sources[lane] & 1);
        const auto moved = [&](std::uint32_t of) { return (absent ? 1u : of >> sources[lane] & 1) << lane; };
        for (unsigned k = 0; k < 4; ++k) {
            to[k] = (to[k] & ~(1u << lane)) | moved(from[k]);
            to_computed[k] = (to_computed[k] & ~(1u << lane)) | moved(from_computed[k]);
        }
        if (absent) w->definedness->unwritten = {w->index_of(op), Space::Generic, sources[lane], 0};
        some_absent |= absent;
    }
    maker_of(w, op->d) = some_absent ? w->index_of(op) : maker;
    set_undefined(w, op->y, 0, mask, false);
}

}  // namespace ikat::emulator
