// SPDX-License-Identifier: Apache-2.0
// A warp's share of a first-level cache: the 128 most recently used sectors, 4 KiB (about what a multiprocessor with 64
// warps has for each). It is fully associative, so hits do not depend on the addresses of buffers, and private to each
// warp, so they do not depend on the order of warps.
#pragma once
#include <array>
#include <cstdint>
#include <utility>

namespace ikat::emulator {

class SectorCache {
public:
    SectorCache() { clear(); }

    void clear() {
        buckets_.fill(0);
        for (unsigned i = 0; i <= size; ++i)
            entries_[i] = {.newer = std::uint8_t((i + size) % (size + 1)), .older = std::uint8_t((i + 1) % (size + 1))};
    }

    /// Whether it holds the sector, which becomes the most recently used.
    bool read(std::uint64_t sector) {
        const bool held = find(sector) != 0;
        use(sector);
        return held;
    }
    /// Whether it holds an earlier store to the sector, with which this one is combined.
    bool write(std::uint64_t sector) {
        const bool held = find(sector) != 0;
        return std::exchange(use(sector).written, true) && held;
    }

private:
    static constexpr std::uint64_t size = 128, nothing = ~std::uint64_t{0};
    /// In a ring ordered by use; entry 0 is between the most and the least recently used.
    struct Entry {
        std::uint64_t sector = nothing;
        std::uint8_t newer = 0, older = 0;
        std::uint8_t next = 0;  // in its bucket, 0: none
        bool written = false;
    };

    std::uint8_t find(std::uint64_t sector) const {
        std::uint8_t i = buckets_[sector % size];
        while (i && entries_[i].sector != sector) i = entries_[i].next;
        return i;
    }

    Entry& use(std::uint64_t sector) {
        std::uint8_t i = find(sector);
        if (!i) {
            i = entries_[0].newer;
            forget(i);
            entries_[i].sector = sector;
            entries_[i].written = false;
            entries_[i].next = std::exchange(buckets_[sector % size], i);
        }
        entries_[entries_[i].newer].older = entries_[i].older;
        entries_[entries_[i].older].newer = entries_[i].newer;
        entries_[i].newer = 0;
        entries_[i].older = std::exchange(entries_[0].older, i);
        entries_[entries_[i].older].newer = i;
        return entries_[i];
    }

    /// Removes the entry from its bucket.
    void forget(std::uint8_t i) {
        if (entries_[i].sector == nothing) return;
        std::uint8_t* at = &buckets_[entries_[i].sector % size];
        while (*at != i) at = &entries_[*at].next;
        *at = entries_[i].next;
    }

    std::array<Entry, size + 1> entries_;
    std::array<std::uint8_t, size> buckets_;
};

}  // namespace ikat::emulator
