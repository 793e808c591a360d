// SPDX-License-Identifier: Apache-2.0
// Copies that continue while a thread does, and how many groups of work a wait leaves unfinished.
#pragma once
#include "codegen/ir/op/forms/family.hpp"

namespace ikat::ir {

/// How a thread copies a few bytes asynchronously: "16.cg", "16.cg.128B". After the addresses comes how many bytes
/// are read; zeros fill the rest.
struct CopyForm {
    enum class Cache : std::uint8_t { Ca, Cg };                    // in all caches, or in L2 alone: 16 bytes
    enum class Prefetch : std::uint8_t { None, B64, B128, B256 };  // what the L2 cache may fetch around them
    static constexpr std::string_view cache_names[] = {"ca", "cg"}, prefetch_names[] = {"", "64B", "128B", "256B"};
    std::uint8_t bytes = 4;  // 4, 8 or 16: those that are written
    Cache cache = Cache::Ca;
    Prefetch prefetch = Prefetch::None;
    std::uint8_t unused = 0;
    std::int32_t from_offset = 0;  // bytes added to the address that is read; its text is there

    static constexpr std::string_view noun = "copy";
    template <class F = CopyForm>
    static constexpr auto fields() {
        return std::tuple{Number{&F::bytes, "bytes, "}, Named{&F::cache, F::cache_names},
                          Named{&F::prefetch, F::prefetch_names, ", and what is prefetched, such as 16.cg.128B"}};
    }
    constexpr bool exists() const { return cache <= Cache::Cg && prefetch <= Prefetch::B256 && unused == 0; }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op, Type) const {
        if (bytes != 4 && bytes != 8 && bytes != 16) return "a thread copies 4, 8 or 16 bytes";
        return cache == Cache::Cg && bytes != 16 ? "a copy past L1, .cg, is of 16 bytes" : "";
    }
    constexpr Shape shape(const Shape& row) const { return row; }
    constexpr MemoryAccess access(MemoryAccess row) const {
        row.bytes = bytes;
        if (row.reads) row.offset = from_offset;
        return row;
    }
    constexpr bool move(Slot address, std::int32_t offset) {
        if (address != Slot::FromGlobal) return false;
        from_offset = offset;
        return true;
    }
    constexpr Conduct conduct(const Conduct& row) const { return row; }
};

/// In a wait for all copies, committed or not.
inline constexpr Word all_copies = 0xffff;
/// A wait names fewer groups than this.
constexpr Word max_groups(Op op) { return op == Op::WgmmaWait ? 8 : op == Op::CopyWait ? all_copies + 1 : all_copies; }

/// How many groups a wait leaves unfinished, the last ones: "2", "all" of copy_wait none.
struct GroupsForm {
    std::uint16_t count = 0;

    static constexpr std::string_view noun = "number of groups";
    static std::string write(const GroupsForm& form);
    static bool read(GroupsForm& form, std::string_view word);
    template <class F = GroupsForm>
    static constexpr auto fields() {
        return std::tuple{Spelled{&F::write, &F::read, "a number, or all"}};
    }
    constexpr bool exists() const { return true; }
    constexpr Type type(Type row) const { return row; }
    constexpr std::string_view problem(Op op, Type) const {
        return count < max_groups(op) ? "" : "there are not that many groups";
    }
    constexpr Shape shape(const Shape& row) const { return row; }
    constexpr MemoryAccess access(const MemoryAccess& row) const { return row; }
    constexpr bool move(Slot, std::int32_t) { return false; }
    constexpr Conduct conduct(Conduct row) const {
        row.flight.all = count == all_copies;
        row.flight.groups = row.flight.all ? 0 : count;
        return row;
    }
};

}  // namespace ikat::ir
