// SPDX-License-Identifier: Apache-2.0
// A parallel copy as a sequence of moves.
//
//     (r0, r1, r2) ← (r1, r0, r1)        r2 ← r1        r1 now has a copy and may be overwritten
//                                        r1 ← r0
//                                        r0 ← r2        read from the copy: no scratch register needed
// A destination that no pending move reads can be written immediately. A value that has been written to a destination
// is read from there by the other moves, so its old register can be written. What remains are closed cycles that are
// not read from outside; each is broken by saving one of its registers in the scratch register.
#include <algorithm>

#include "codegen/support/diagnostic.hpp"
#include "regalloc/regalloc.hpp"

namespace ikat::regalloc {
namespace {

constexpr std::uint32_t none = ~0u;

struct Sequencer {
    Register scratch;
    std::vector<Register> registers{};     // involved, ascending; the other vectors hold indices into it
    std::vector<std::uint32_t> source{};   // what the register must receive; none when done
    std::vector<std::uint32_t> readers{};  // pending moves that read the register's initial value
    std::vector<Register> place{};         // where that value is now
    std::vector<std::uint32_t> ready{};    // destinations that may be written
    std::vector<Move> moves{};

    std::uint32_t find(Register r) const {
        return std::uint32_t(std::ranges::lower_bound(registers, r) - registers.begin());
    }

    void collect(std::span<const Move> parallel) {
        for (const Move& move : parallel)
            if (move.to != move.from) registers.insert(registers.end(), {move.to, move.from});
        std::ranges::sort(registers);
        registers.erase(std::unique(registers.begin(), registers.end()), registers.end());
        source.assign(registers.size(), none);
        readers.assign(registers.size(), 0);
        place = registers;
        for (const Move& move : parallel) {
            if (move.to == move.from) continue;
            const std::uint32_t to = find(move.to), from = find(move.from);
            IKAT_ASSERT(source[to] == none, "register " + std::to_string(move.to) + " is the destination of two moves");
            source[to] = from;
            ++readers[from];
        }
    }

    void write_ready() {
        while (!ready.empty()) {
            const std::uint32_t to = ready.back(), from = source[to];
            ready.pop_back();
            moves.push_back({registers[to], place[from]});
            source[to] = none;
            const bool still_at_home = place[from] == registers[from];
            place[from] = registers[to];
            if (still_at_home && source[from] != none) ready.push_back(from);
        }
    }

    void run() {
        for (std::uint32_t i = std::uint32_t(registers.size()); i-- > 0;)
            if (source[i] != none && readers[i] == 0) ready.push_back(i);
        write_ready();
        for (std::uint32_t i = 0; i < registers.size(); ++i) {
            if (source[i] == none) continue;
            moves.push_back({scratch, registers[i]});
            place[i] = scratch;
            ready.push_back(i);
            write_ready();
        }
    }
};

}  // namespace

std::vector<Move> sequentialise(std::span<const Move> parallel, Register scratch) {
    Sequencer sequencer{scratch};
    sequencer.collect(parallel);
    sequencer.run();
    return std::move(sequencer.moves);
}

}  // namespace ikat::regalloc
