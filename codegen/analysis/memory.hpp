// SPDX-License-Identifier: Apache-2.0
// Which memory an access touches, and whether two accesses may overlap.
//
// An address is split into the object it points into (a parameter's buffer, a symbol), a base, an index and a constant
// number of bytes:
//
//     %3 = at.u64.u32 4+16, %x, %i           (%x: param.u64 %x)
//     load.f32 global [%3+8]                 object %x, base %x, index %i times 4, offset 24
//
// Guarantees: an `in` parameter's buffer overlaps no other parameter's (the launch checks it), symbols overlap
// nothing, spaces other than generic are disjoint.
#pragma once
#include "codegen/ir/object.hpp"
#include "codegen/ir/op/accesses.hpp"

namespace ikat::analysis {

using ir::Object;

struct Address {
    Object object;
    ir::Value base = ir::no_value;   // any number
    ir::Value index = ir::no_value;  // … and what is added to it: that many times `scale` bytes, if not no_value
    std::uint32_t scale = 0;
    std::int64_t offset = 0;  // bytes
    std::uint32_t bytes = 0;  // that are accessed there,
    ir::Space space{};        // in this space

    /// Whether they are apart by their offsets.
    bool has_same_base(const Address& other) const {
        return base == other.base && index == other.index && scale == other.scale;
    }
};

/// The address of one of the instruction's accesses, and of its first.
Address address_of(const ir::Function& fn, ir::Inst inst, const ir::MemoryAccess& access);
Address address_of(const ir::Function& fn, ir::Inst inst);

enum class Alias : std::uint8_t {
    No,    // never share a byte
    May,   // nothing is known
    Must,  // the same bytes
};

/// For two accesses as executed by one thread with the same values of their instructions' operands.
Alias alias(const ir::Function& fn, const Address& a, const Address& b);

/// Whether the function waits for the grids before it, which until then may write what it reads.
bool waits_for_grids(const ir::Function& fn);

/// Which loads of a function read what nothing writes while it runs: const and param space, and, if it does not wait
/// for other grids, `in` parameters and .nc.
class ConstantMemory {
public:
    explicit ConstantMemory(const ir::Function& fn) : fn_(fn), others_write_(waits_for_grids(fn)) {}
    bool is_read_by(ir::Inst load) const;

private:
    const ir::Function& fn_;
    bool others_write_;
};

}  // namespace ikat::analysis
