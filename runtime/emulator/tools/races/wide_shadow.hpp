// SPDX-License-Identifier: Apache-2.0
// Who has accessed each word of memory that many blocks use: global memory, and the shared memory of a cluster. Words
// are in pages, which are made when something is accessed there. A page has cells of 16 bytes, or smaller ones once
// there is a smaller access.
//
// Accesses have contexts: an op, the lanes that execute it, their agent and its stamp. A cell names the contexts of its
// last write and of the reads after it. Where several accesses are not ordered with each other, they are a set; words
// that the same contexts have accessed have one set.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/core/micro_info.hpp"
#include "runtime/emulator/tools/races/clock.hpp"

namespace ikat::emulator::races {

class LaunchOrder;

struct Context {
    std::uint64_t block = 0;
    Stamp stamp = 0;
    std::uint32_t op = 0;
    std::uint32_t lanes = 0;  // that execute it
    std::uint8_t agent = 0;
    bool writes = false, is_strong = false, is_of_all = false;
    Scope scope = Scope::Thread;  // if it is strong
    bool operator==(const Context&) const = default;
};

/// The contexts of a launch, and sets of them.
class Contexts {
public:
    explicit Contexts(const LaunchOrder& order) : order_(order), contexts_(1), sets_(1) {}

    /// A context or a set; 0: none.
    using Id = std::uint32_t;
    static constexpr Id is_set = 1u << 31;

    Id number(const Context& context);
    const Context& operator[](Id id) const { return contexts_[id]; }
    /// Calls f(context) for each, the last one first; it returns false to stop.
    template <class F>
    void each(Id id, F f) const {
        for (; id & is_set; id = sets_[id & ~is_set].rest)
            if (!f(contexts_[sets_[id & ~is_set].context])) return;
        if (id) f(contexts_[id]);
    }
    /// With one more, and without those of the last ones that all of the warp of `by`, whose it is, is ordered after.
    Id with(Id id, Id more, const Knower& by);
    std::uint32_t unknown(const Context& context, std::uint32_t lanes, const Knower& by) const {
        if (context.block == by.block) return by.unknown(context.agent, lanes, context.stamp, context.is_of_all);
        return by.clock->unknown_of(context.block, context.agent, lanes, context.stamp);
    }
    /// Whether the two are no race because of what they are, however they are ordered.
    bool is_fine(const Context& one, const Context& other) const;
    /// Whether that is so of all of a set, without looking at each.
    bool are_fine(Id id, const Context& now) const {
        return (id & is_set) && sets_[id & ~is_set].are_strong && is_strong(now);
    }
    /// Whether these are plain reads, of at least two blocks.
    bool are_of_blocks(Id id) const { return (id & is_set) && sets_[id & ~is_set].are_of_blocks; }
    static bool is_strong(const Context& context) { return context.is_strong && context.scope >= Scope::Device; }
    static bool subsumes(const Context& now, const Context& before) {
        return (now.writes || !before.writes) && (!now.is_strong || before.is_strong);
    }
    /// Whether the same lanes do it again, after the other one.
    static bool is_again(const Context& now, const Context& before) {
        return before.block == now.block && before.agent == now.agent && !(before.lanes & ~now.lanes) &&
               subsumes(now, before);
    }
    /// There is no room for more.
    bool is_full() const { return contexts_.size() >= max_count || sets_.size() >= max_count; }

private:
    static constexpr std::size_t max_count = std::size_t{1} << 25;
    // Of atomics that nothing orders, more than that are not kept.
    static constexpr std::uint32_t max_strong = 512;
    struct Set {
        Id rest = 0, context = 0;
        std::uint32_t count = 1;
        bool are_strong = false;  // all of them, for the whole device
        bool are_plain = false;   // reads, all of them
        bool are_of_blocks = false;
    };
    Id grow(Id rest, Id context);
    const LaunchOrder& order_;
    std::vector<Context> contexts_;
    std::unordered_map<std::uint64_t, Id> last_;  // of an agent and an op
    std::vector<Set> sets_;
    std::unordered_map<std::uint64_t, Id> grown_;  // by a set and a context
};

class WideShadow {
    struct Cell {
        Contexts::Id write = 0, read = 0;
        std::uint32_t write_lanes = 0, read_lanes = 0;  // of a single context
        bool operator==(const Cell&) const = default;
    };

public:
    explicit WideShadow(Contexts& contexts) : contexts_(contexts) {}
    void clear() { pages_.clear(), last_ = nullptr, last_number_ = ~std::uint64_t{0}; }
    /// Where nothing orders blocks: whether a plain read changes nothing, because two blocks have read all of it and
    /// nobody has written it. Whoever does later races with one of the two.
    bool is_settled(std::uint64_t address, std::uint32_t bytes) {
        for (const std::uint64_t end = address + bytes; address < end;) {
            const Page& page = page_of(address);
            const std::uint64_t until = std::min(end, ((address >> page_bits) + 1) << page_bits);
            const std::size_t last = page.cell_at(until - 1);
            for (std::size_t i = page.cell_at(address); i <= last; ++i)
                if (page.cells[i].write || !contexts_.are_of_blocks(page.cells[i].read)) return false;
            address = until;
        }
        return true;
    }
    /// What is known of these bytes is forgotten.
    void forget(std::uint64_t address, std::uint64_t bytes);

    struct Conflict {
        Context before;
        std::uint32_t lanes = 0;  // of which it is one
        std::uint64_t address = 0, bytes = 0;
    };
    /// What an access has made of a cell: it makes the same of the next one that is like it.
    struct Memo {
        bool is_known = false;
        Cell before{}, after{};
    };
    /// An access by one lane, with a context. Calls f(conflict) for each cell of it with a race, until one returns
    /// false; then this does.
    template <class F>
    bool access(std::uint64_t address, std::uint32_t bytes, Contexts::Id context, std::uint32_t lane, const Knower& by,
                Memo& memo, F f) {
        const Context& now = contexts_[context];
        Conflict found;
        for (const std::uint64_t end = address + bytes; address < end;) {
            Page& page = page_of(address);
            const std::uint64_t until = std::min(end, ((address >> page_bits) + 1) << page_bits);
            const int fine = std::min(std::countr_zero(address | until), page.shift);
            if (fine < page.shift) page.split(fine);
            page.has_writes |= now.writes;
            const std::uint64_t of_cell = std::uint64_t{1} << page.shift;
            for (; address < until; address += of_cell) {
                Cell& cell = page.cells[page.cell_at(address)];
                if (memo.is_known && cell == memo.before) {
                    cell = memo.after;
                    continue;
                }
                memo.before = cell;
                const std::uint64_t unsure_before = unsure;
                const bool is_fine = touch(cell, context, now, lane, by, found);
                memo.is_known = is_fine && unsure == unsure_before;
                memo.after = cell;
                if (is_fine) continue;
                found.address = address;
                found.bytes = of_cell;
                if (!f(found)) return false;
            }
        }
        return true;
    }
    /// Calls f(id, lanes, address, bytes) for what has written cells of these bytes last, for neighbours with the same
    /// once, until one returns false; then this does.
    template <class F>
    bool each_write(std::uint64_t address, std::uint32_t bytes, F f) {
        Cell last;
        for (const std::uint64_t end = address + bytes; address < end;) {
            const Page& page = page_of(address);
            const std::uint64_t until = std::min(end, ((address >> page_bits) + 1) << page_bits),
                                of_cell = std::uint64_t{1} << page.shift;
            if (!page.has_writes) address = until;
            for (; address < until; address = (address / of_cell + 1) * of_cell) {
                const Cell& cell = page.cells[page.cell_at(address)];
                if (cell.write == last.write && cell.write_lanes == last.write_lanes) continue;
                last = cell;
                if (cell.write && !f(cell.write, cell.write_lanes, address, of_cell - address % of_cell)) return false;
            }
        }
        return true;
    }
    /// Accesses of which it is not known whether they are ordered: only for some lanes of a set of accesses they are.
    std::uint64_t unsure = 0;

private:
    static constexpr int page_bits = 12, max_shift = 4;
    struct Page {
        int shift = max_shift;  // bytes of a cell
        bool has_writes = false;
        std::vector<Cell> cells = std::vector<Cell>(1 << (page_bits - max_shift));
        std::size_t cell_at(std::uint64_t address) const { return address % (std::uint64_t{1} << page_bits) >> shift; }
        void split(int smaller);
    };
    Page& page_of(std::uint64_t address);
    bool find(Contexts::Id id, std::uint32_t lanes, Contexts::Id context, const Knower& by, Conflict& found);
    bool is_over(Contexts::Id id, std::uint32_t lanes, const Context& now, const Knower& by) const;
    bool touch(Cell& cell, Contexts::Id context, const Context& now, std::uint32_t lane, const Knower& by,
               Conflict& found);

    /// The set that was last found to be known, to all lanes of a warp. What is known stays so.
    struct Known {
        Contexts::Id set = 0, context = 0;
        const Clock* clock = nullptr;
        bool operator==(const Known&) const = default;
    };

    Contexts& contexts_;
    Known known_{};
    std::unordered_map<std::uint64_t, Page> pages_;
    std::uint64_t last_number_ = ~std::uint64_t{0};
    Page* last_ = nullptr;
};

}  // namespace ikat::emulator::races
