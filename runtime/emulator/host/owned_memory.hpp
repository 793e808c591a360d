// SPDX-License-Identifier: Apache-2.0
// The memory of a device by whose it is: buffers, managed ones, which the host reaches, too, and page-locked memory of
// the host, which kernels reach. The end of a context frees what it has.
#pragma once
#include <map>
#include <mutex>
#include <optional>

#include "runtime/emulator/core/memory/device_memory.hpp"
#include "runtime/emulator/host/ids.hpp"

namespace ikat::emulator {

/// Host memory that is page-locked: allocated so, which kernels reach at the host's address, or registered by the
/// program, which owns it, and reached at an address of its own.
struct PinnedRange {
    ContextId context{};
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    unsigned flags = 0;  // as given by the client
    bool is_registered = false;
    std::uint64_t device = 0;  // the address that kernels use for its first byte
};

/// Thread-safe.
class OwnedMemory {
public:
    /// Buffers have at most `limit` bytes in all.
    explicit OwnedMemory(std::uint64_t limit, std::string_view device = {}) : limit_(limit), space_(device) {}

    /// The address space, which variables of modules are in, too.
    Memory& space() { return space_; }
    const Memory& space() const { return space_; }

    /// Throw Error if there is not so much left.
    std::uint64_t allocate(ContextId context, std::size_t bytes, std::string_view name = {});
    std::uint64_t allocate_managed(ContextId context, std::size_t bytes);
    /// False for an address that neither of them returned, or that was released.
    bool release(std::uint64_t address);
    std::uint64_t used_bytes() const;

    /// An address for a buffer that comes with begin() and goes with release(), as often as asked for, before
    /// give_back(), after which a buffer that is there is an ordinary one. begin() throws Error if there is not so much
    /// memory left, and does nothing if the buffer is there.
    std::uint64_t reserve(ContextId context, std::size_t bytes, std::string_view name);
    void begin(std::uint64_t address);
    void give_back(std::uint64_t address);

    std::uint64_t allocate_pinned(ContextId context, std::size_t bytes, unsigned flags);
    /// False if any of it is page-locked already.
    bool register_pinned(ContextId context, void* begin, std::size_t bytes, unsigned flags);
    /// Kernels reach it no longer. False if no range of this kind begins there.
    bool release_pinned(const void* begin, bool is_registered);
    /// The range that an address of the host is in.
    std::optional<PinnedRange> pinned(std::uintptr_t address) const;

    /// The live buffer that an address is in or right after; 0 bytes if there is none. Variables have no context.
    struct Buffer {
        std::uint64_t address = 0, bytes = 0;
        std::optional<ContextId> context{};
        bool is_managed = false;
    };
    Buffer buffer(std::uint64_t address) const;

    /// Frees all that a context has.
    void end(ContextId context);

private:
    struct Allocation {
        ContextId context{};
        std::size_t bytes = 0;
        bool is_managed = false;
    };
    std::uint64_t add(Allocation allocation, std::string_view name);
    void check_room(std::size_t bytes, std::string_view name) const;
    void release(std::map<std::uint64_t, Allocation>::iterator allocation);
    void release(const PinnedRange& range);
    std::optional<PinnedRange> pinned_around(std::uintptr_t address) const;

    const std::uint64_t limit_;
    Memory space_;
    std::map<std::uint64_t, Allocation> allocations_;  // by address
    std::map<std::uint64_t, Allocation> reserved_;     // by address; those that are there are allocations, too
    std::map<std::uintptr_t, PinnedRange> pinned_;     // by begin
    std::uint64_t used_ = 0;
    mutable std::mutex mutex_;
};

}  // namespace ikat::emulator
