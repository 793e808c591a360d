// SPDX-License-Identifier: Apache-2.0
// malloc and free in kernels: each allocation is a separate buffer, so that an access beyond it, or after free, is
// found. As on a device, the heap has 8 MiB and persists across launches.
#include <bit>

#include "runtime/emulator/core/memory/memory.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

const MicroOp* heap_allocate(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    const auto* const bytes = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    auto* const d = reinterpret_cast<std::uint64_t*>(frame + op->d);
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        d[lane] = w->memory->allocate_on_heap(bytes[lane]);
    }
    IKAT_NEXT;
}

const MicroOp* heap_free(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    const auto* const addresses = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        if (addresses[lane] && !w->memory->release_on_heap(addresses[lane]) &&
            !passes(w, op, {.code = FaultCode::HeapFree, .lane = lane}))
            return nullptr;
    }
    IKAT_NEXT;
}

}  // namespace ikat::emulator
