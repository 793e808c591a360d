// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/traffic/shared.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

Wavefronts wavefronts_of(std::span<const std::uint64_t> addresses, std::uint32_t mask, std::uint32_t bytes,
                         Direction direction) {
    constexpr std::uint32_t banks = 32, bank_bytes = 4;
    const std::uint32_t together = bytes <= bank_bytes ? warp_size : banks * bank_bytes / bytes;
    IKAT_ASSERT(bytes <= banks * bank_bytes, "an access of a lane is smaller than all banks");
    Wavefronts out;
    for (std::uint32_t first = 0; first < addresses.size(); first += together) {
        std::array<std::uint64_t, banks> words;  // at most 128 bytes are accessed together
        auto end = words.begin();
        for (std::uint32_t lane = first; lane < std::min<std::size_t>(first + together, addresses.size()); ++lane)
            if (mask >> lane & 1)
                for (std::uint32_t byte = 0; byte < bytes; byte += bank_bytes)
                    *end++ = (addresses[lane] + byte) / bank_bytes;
        if (end == words.begin()) continue;
        if (direction != Direction::Atomic) {
            std::sort(words.begin(), end);
            end = std::unique(words.begin(), end);
        }
        std::array<std::uint32_t, banks> of_bank{};
        for (auto word = words.begin(); word != end; ++word) ++of_bank[*word % banks];
        out.taken += std::ranges::max(of_bank);
        out.possible += 1;
    }
    return out;
}

namespace {

[[gnu::noinline]] void count_shared_lanes(const MicroOp* op, const Warp* w, const std::byte* frame,
                                          std::uint32_t mask) {
    const std::uint32_t lanes = op->y & 255;
    const bool is_wide = op->y & 256, is_generic = op->y & 512, is_of_warps = op->y & 1024;
    if (is_of_warps && mask != all_lanes) return;  // it does not run yet
    std::array<std::uint64_t, warp_size> addresses{};
    std::uint32_t counted = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        if (!(mask >> lane & 1)) continue;
        std::uint64_t address = is_wide ? reinterpret_cast<const std::uint64_t*>(frame + op->a)[lane]
                                        : reinterpret_cast<const std::uint32_t*>(frame + op->a)[lane];
        address += std::uint64_t(std::int64_t(std::int32_t(op->x)));
        if (is_generic && address >> window_bits != std::uint64_t(Space::Shared)) continue;
        addresses[lane] = address & (window_bytes - 1);
        counted |= 1u << lane;
    }
    if (!counted) return;
    const Wavefronts some = wavefronts_of(std::span(addresses).first(lanes), counted, op->b, Direction(op->c));
    counter_of(w, op->d).count_shared(w->kernel->instructions[w->index_of(op)], some.taken, some.possible);
}

}  // namespace

const MicroOp* count_shared_traffic(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    count_shared_lanes(op, w, frame, mask);
    IKAT_NEXT;
}

std::vector<SharedTraffic> TrafficOfLaunch::shared(const ptx::Module& module,
                                                   const std::vector<Location>& source_lines) const {
    std::vector<SharedTraffic> out;
    for (const auto& [instruction, counts] : shared_) {
        SharedTraffic& one = out.emplace_back(counts);
        const std::uint32_t line = instruction->where.line;
        const bool has_source = line < source_lines.size() && source_lines[line].known();
        one.where = has_source ? source_lines[line] : location(module, instruction->where);
        one.instruction = module.text(instruction->spelling);
        if (one.instruction == "cp") one.instruction = "cp.async";
    }
    const auto place = [](const SharedTraffic& one) {
        return std::tuple(std::string_view(one.where.file), one.where.line, std::string_view(one.instruction));
    };
    std::ranges::sort(out, {}, place);
    std::vector<SharedTraffic> merged;
    for (SharedTraffic& one : out) {
        one.where.column = 0;
        if (!merged.empty() && place(merged.back()) == place(one))
            merged.back().add(one);
        else
            merged.push_back(std::move(one));
    }
    return merged;
}

}  // namespace ikat::emulator
