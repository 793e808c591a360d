// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/memory/address_windows.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/emulator/core/memory/memory.hpp"

namespace ikat::emulator {
namespace {

std::size_t page_bytes() { return std::size_t(sysconf(_SC_PAGESIZE)); }
void* first_page(unsigned window) { return reinterpret_cast<void*>(std::uint64_t(window) << window_bits); }

enum class Claim : std::uint8_t { Page, Nothing, Refused };

/// Takes the page at the window's beginning, unless something is there. Where the system has no page to give, there is
/// nothing else either.
Claim claim(unsigned window) {
#ifdef __SANITIZE_THREAD__  // it ends a program that maps anything there
    return Claim::Nothing;
#endif
    void* const wanted = first_page(window);
    void* const page =
        mmap(wanted, page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == wanted) return Claim::Page;
    if (page == MAP_FAILED) return errno == EEXIST ? Claim::Refused : Claim::Nothing;
    munmap(page, page_bytes());  // a system that does not know the flag chose another place
    return Claim::Refused;
}

}  // namespace

static_assert(unsigned(Space::Const) + 1 == 5, "the first window that is not fixed");

unsigned AddressWindows::keep(unsigned window, Memory::State& owner) {
    const Claim claimed = claim(window);
    if (claimed == Claim::Refused) return 0;
    has_page_[window] = claimed == Claim::Page;
    owners_[window] = owner.weak_from_this();
    return window;
}

unsigned AddressWindows::take(WindowKind kind, Memory::State& owner) {
    const std::lock_guard lock(mutex_);
    Range& range = ranges_[unsigned(kind)];
    while (range.next < range.end) {
        const unsigned window = range.next++;
        if (keep(window, owner)) return window;
        range.returned.push_back(window);  // whoever has it may return it
    }
    for (std::size_t left = range.returned.size(); left > 0; --left) {
        const unsigned window = range.returned.front();
        range.returned.pop_front();
        if (keep(window, owner)) return window;
        range.returned.push_back(window);
    }
    return 0;
}

void AddressWindows::give_back(std::span<const unsigned> windows) {
    const std::lock_guard lock(mutex_);
    for (const unsigned window : windows) {
        if (has_page_[window]) munmap(first_page(window), page_bytes());
        owners_[window].reset();
        ranges_[unsigned(kind_of(window))].returned.push_back(window);
    }
}

WindowKind AddressWindows::kind_of(unsigned window) {
    return window >= first_mapped && window < end_mapped ? WindowKind::Mapped : WindowKind::Own;
}

bool AddressWindows::is_taken(std::uint64_t address) const {
    const std::lock_guard lock(mutex_);
    return address < address_limit && !owners_[address >> window_bits].expired();
}

std::shared_ptr<Memory::State> AddressWindows::owner(std::uint64_t address) const {
    const std::lock_guard lock(mutex_);
    return address < address_limit ? owners_[address >> window_bits].lock() : nullptr;
}

AddressWindows& address_windows() {
    static auto& its = *new AddressWindows;  // some memories end after all else
    return its;
}

}  // namespace ikat::emulator
