// SPDX-License-Identifier: Apache-2.0
// Which memory of the process has which windows of the address space (memory.hpp). They are counted once for all of
// them, so that an address is one device's alone:
//
//     first memory   5       7             what it had is given again when no window is left that nobody has had,
//     second            6       8 9        the longest returned first
// Other copies of this library in the process, as the stand-in for the CUDA driver has one, see that a window is taken
// by the page at its beginning, which no buffer reaches.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "runtime/emulator/core/memory/device_memory.hpp"

namespace ikat::emulator {

/// Windows of buffers, and of those that the host has at the same address.
enum class WindowKind : std::uint8_t { Own, Mapped };

class AddressWindows {
public:
    /// A window that no other memory has; 0 if none is left.
    unsigned take(WindowKind kind, Memory::State& owner);
    /// For the end of a memory: others may have its windows.
    void give_back(std::span<const unsigned> windows);

    static WindowKind kind_of(unsigned window);
    /// Whether a memory has the window of this address.
    bool is_taken(std::uint64_t address) const;
    /// The memory that has the window of this address; null if there is none, or if it is ending.
    std::shared_ptr<Memory::State> owner(std::uint64_t address) const;

private:
    /// Numbers of windows from `next` to `end` have not been given yet.
    struct Range {
        unsigned next, end;
        std::deque<unsigned> returned;  // oldest first
    };
    unsigned keep(unsigned window, Memory::State& owner);

    static constexpr unsigned first_own = 5, count = 0x1000;
#ifdef __SANITIZE_THREAD__  // a program may have memory in few places
    static constexpr unsigned first_mapped = 0x552, end_mapped = 0x566;
#else
    static constexpr unsigned first_mapped = 0x400, end_mapped = 0x500;
#endif
    std::array<Range, 2> ranges_{{{first_own, first_mapped, {}}, {first_mapped, end_mapped, {}}}};
    std::array<std::weak_ptr<Memory::State>, count> owners_{};
    std::bitset<count> has_page_;
    mutable std::mutex mutex_;
};

/// Those of the process.
AddressWindows& address_windows();

}  // namespace ikat::emulator
