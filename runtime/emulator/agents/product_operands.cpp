// SPDX-License-Identifier: Apache-2.0
// The operands of products that lie in shared memory.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/agents/async_products.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

/// a or b in shared memory.
struct AsyncProducts::Operand {
    const char* name;
    std::uint64_t bits;
    unsigned blocks;
    bool is_transposed;
    std::byte* to;
    unsigned next_block, next_half;  // how many blocks further in `to`

    std::byte* kept(unsigned block, unsigned half) const {
        return to + block_bytes * (block * next_block + half * next_half);
    }
};

/// A variable of the block's shared memory.
struct AsyncProducts::PartOfShared {
    View view;
    std::uint64_t low = 0;  // its first address, as on a device

    bool has(std::uint64_t first, std::uint64_t last) const { return first >= low && last <= low + view.bytes; }
    bool find(const Warp* w, std::uint64_t first, std::uint64_t last) {
        for (const NamedRange& range : block_of(w).variables(Space::Shared).ranges) {
            low = Variables::on_device(range.address);
            if (first < low || last > low + range.bytes) continue;
            view = w->windows[int(Space::Shared)].at(range.address);
            return true;
        }
        view = {};
        return false;
    }
};

bool AsyncProducts::is_valid(const MicroOp* op, Warp* w, const MatrixDescriptor& descriptor, std::uint64_t bits,
                             const Operand& operand) {
    const auto wrong = [&](FaultCode code, std::string what) {
        return find(op, w, code, fmt::format("the descriptor of {}, 0x{:016x}, {}", operand.name, bits, what));
    };
    if (descriptor.has_reserved_bits)
        return wrong(FaultCode::DescriptorReserved, "has bits set that must be 0: 14, 15, 30, 31, 46 to 48, 52 to 61");
    if (descriptor.base_offset)
        return wrong(FaultCode::DescriptorBaseOffset, fmt::format("has base offset {}", descriptor.base_offset));
    if (descriptor.is_aligned(operand.is_transposed)) return true;
    if (!descriptor.has_aligned_rows())
        return wrong(FaultCode::DescriptorAlignment,
                     fmt::format("starts at 0x{:x} of shared memory, in rows that do not begin at a multiple of {}",
                                 descriptor.start, MatrixDescriptor::alignment));
    return wrong(FaultCode::DescriptorAlignment,
                 fmt::format("starts {} bytes into its rows of {} bytes, which end before the operand's",
                             descriptor.start % descriptor.width, descriptor.width));
}

/// a and b, as far as they are in shared memory.
std::span<const AsyncProducts::Operand> AsyncProducts::operands_of(Product& product, std::array<Operand, 2>& all) {
    const WarpgroupProduct& form = product.form;
    all = {{{"a", product.a, 8, form.a_by_columns, product.rows.data(), 1, 8},
            {"b", product.b, form.columns / 8u, form.b_by_rows, product.columns.data(), 2, 1}}};
    return std::span<const Operand>(all).subspan(form.a_in_registers);
}

/// Calls f(where it is kept, its memory and the offset there, first row of a block, number of the row in it) for each
/// 16 bytes of an operand. False on a finding.
template <class F>
bool AsyncProducts::each_row(const MicroOp* op, Warp* w, const Operand& operand, F f) {
    const MatrixDescriptor descriptor = MatrixDescriptor::of(operand.bits);
    PartOfShared part;
    for (unsigned block = 0; block < operand.blocks; ++block)
        for (unsigned half = 0; half < 2; ++half)
            for (unsigned i = 0; i < 8; ++i) {
                const std::uint64_t at = descriptor.place(block, half, i, operand.is_transposed);
                if (!part.has(at, at + 16) && !part.find(w, at, at + 16))
                    return find(op, w, FaultCode::DescriptorBounds,
                                fmt::format("the descriptor of {}, 0x{:016x}, leads to 16 bytes at 0x{:x} of shared "
                                            "memory, which are not in one variable",
                                            operand.name, operand.bits, at));
                if (!f(operand.kept(block, half) + 16 * i, part.view, at - part.low, 8 * block, i)) return false;
            }
    return true;
}

/// The same with f(where it is kept, its memory, its written bits, their place even if all are written), if all of the
/// operand is surely in one variable; false if it is not, or f is for any.
template <class F>
bool AsyncProducts::each_row_of_one(Warp* w, const Operand& operand, F f) {
    const MatrixDescriptor descriptor = MatrixDescriptor::of(operand.bits);
    PartOfShared part;
    const auto [first, last] = descriptor.range(operand.blocks, operand.is_transposed);
    if (!part.find(w, first, last) || part.low % 16) return false;
    constexpr std::uint8_t all_written[] = {0xff, 0xff};
    bool holds = true;
    for (unsigned block = 0; block < operand.blocks; ++block)
        for (unsigned half = 0; half < 2; ++half) {
            std::byte* const kept = operand.kept(block, half);
            for (unsigned i = 0; i < 8; ++i) {
                const std::uint64_t offset = descriptor.place(block, half, i, operand.is_transposed) - part.low;
                const std::uint8_t* const bits = part.view.written ? part.view.written + offset / 8 : all_written;
                holds &= f(kept + 16 * i, part.view.host + offset, bits, part.view.bits + offset / 8);
            }
        }
    return holds;
}

bool AsyncProducts::gather(const MicroOp* op, Warp* w, Product& product) {
    const auto is_unwritten = [](const View& view, std::uint64_t offset, unsigned bytes) {
        return view.written && !written::all(view.written, offset, bytes);
    };
    const auto copy = [](std::byte* to, const std::byte* from, const std::uint8_t* bits, const std::uint8_t*) {
        std::memcpy(to, from, 16);
        return (bits[0] & bits[1]) == 0xff;
    };
    std::array<Operand, 2> operands;
    for (const Operand& operand : operands_of(product, operands)) {
        if (!is_valid(op, w, MatrixDescriptor::of(operand.bits), operand.bits, operand)) return false;
        if (each_row_of_one(w, operand, copy)) continue;
        const auto copy_checked = [&](std::byte* to, const View& view, std::uint64_t offset, unsigned first,
                                      unsigned i) {
            std::memcpy(to, view.host + offset, 16);
            if (!is_unwritten(view, offset, 16)) return true;
            if (touches_agent(w, op, Space::Shared, 0, view.base + offset, 16, false)) return false;
            product.has_undefined = true;
            for (unsigned k = 0; k < 8; ++k) {
                const unsigned row = first + (operand.is_transposed ? k : i);
                if (!is_unwritten(view, offset + 2 * k, 2)) continue;
                if (*operand.name == 'a')
                    product.undefined_rows |= std::uint64_t{1} << row;
                else
                    product.undefined_columns[row / 32] |= 1u << row % 32;
            }
            return true;
        };
        if (!each_row(op, w, operand, copy_checked)) return false;
    }
    return true;
}

/// Tells the tools what a product reads. False on a finding.
bool AsyncProducts::tell(const MicroOp* op, Warp* w, Product& product) {
    ranges_.clear();
    std::array<Operand, 2> operands;
    for (const Operand& operand : operands_of(product, operands))
        each_row(op, w, operand, [&](std::byte*, const View& view, std::uint64_t offset, unsigned, unsigned) {
            const std::uint64_t address = view.base + offset;
            ranges_.push_back({address, 16, view.bits, offset, address});
            return true;
        });
    found = nullptr;
    return block_.tell({.code = w->kernel,
                        .op = op,
                        .w = w,
                        .lanes = all_lanes,
                        .operation = product.operation,
                        .of = AgentAccess::Of::Product,
                        .space = Space::Shared,
                        .owner = &block_,
                        .ranges = ranges_});
}

/// A wait covers the product. False on a finding.
bool AsyncProducts::complete(const MicroOp* op, Warp* w, Product& product) {
    product.is_over = true;
    const auto is_same = [](const std::byte* was, const std::byte* is, const std::uint8_t* bits, const std::uint8_t*) {
        return std::memcmp(was, is, 16) == 0 && (bits[0] & bits[1]) == 0xff;
    };
    std::array<Operand, 2> operands;
    for (const Operand& operand : operands_of(product, operands)) {
        if (each_row_of_one(w, operand, is_same)) continue;
        const auto check = [&](const std::byte* was, const View& view, std::uint64_t offset, unsigned, unsigned) {
            const bool is_written = product.has_undefined || !view.written || written::all(view.written, offset, 16);
            if (is_written && std::memcmp(was, view.host + offset, 16) == 0) return true;
            found = product.instruction;
            found_is = "the product";
            return passes_access(w, op, FaultCode::ProductSourceChanged, Space::Shared, 0, view.base + offset, 16,
                                 false);
        };
        if (!each_row(op, w, operand, check)) return false;
    }
    return true;
}

}  // namespace ikat::emulator
