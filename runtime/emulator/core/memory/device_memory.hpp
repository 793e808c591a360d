// SPDX-License-Identifier: Apache-2.0
// Device memory as the host sees it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ikat::emulator {

/// Device memory. Addresses are virtual 64-bit numbers whose high bits identify the allocation, so that a bounds check
/// is one comparison and a freed address stays poisoned. No other memory of the process has them: so one memory may
/// show what another has, at the same addresses. Thread-safe.
class Memory {
public:
    /// `device` is what it is called in messages about other memories: "emulator:1".
    explicit Memory(std::string_view device = {});
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    /// `bytes` fresh bytes, 256-byte aligned, filled with a poison pattern. `name` is for messages. Throws Error if
    /// there is not enough memory. Large ones take host memory only where they are written.
    std::uint64_t allocate(std::size_t bytes, std::string_view name = {});
    /// The same at an address that the host has, too: it reads and writes there itself, so that all bytes count as
    /// written; they begin as zeros.
    std::uint64_t allocate_mapped(std::size_t bytes, std::string_view name = {});
    /// The address by which kernels reach memory that stays the host's, and begins at a page of it. release ends that.
    std::uint64_t adopt(void* host, std::size_t bytes, std::string_view name = {});
    /// Throws Error for an address that allocate did not return or that was already freed.
    void release(std::uint64_t address);
    /// An address for a buffer that comes and goes: until begin it counts as released. Nothing else gets the address
    /// before give_back, after which a buffer that is there is an ordinary one. begin throws Error if there is not
    /// enough memory.
    std::uint64_t reserve(std::size_t bytes, std::string_view name = {});
    void begin(std::uint64_t address);
    void give_back(std::uint64_t address);
    /// Host copies; throw Error if the range is not inside one allocation.
    void write(std::uint64_t address, std::span<const std::byte> from);
    void read(std::uint64_t address, std::span<std::byte> to) const;
    /// Fills with one element. A fresh buffer filled with zeros takes memory only where it is used.
    void fill(std::uint64_t address, std::span<const std::byte> element, std::size_t count);
    /// Copies between buffers, or within one; uninitialised bytes stay uninitialised.
    void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
    struct State;
    /// The same between memories, whichever of them is seen from here.
    static void copy(State& target, std::uint64_t to, State& source, std::uint64_t from, std::size_t bytes);

    /// What the other memory has is here, too, until hide(), or until either ends. No launch may be running.
    void see(const Memory& other);
    void hide(const Memory& other);
    bool sees(const Memory& other) const;
    void name(std::uint64_t address, std::string_view name);
    /// The live buffer at an address that allocate returned is as after that: nothing of it counts as written.
    void renew(std::uint64_t address);
    /// The bytes of a range inside a buffer that neither a kernel nor the host has written: how many, and the first,
    /// counted from the buffer's begin. What the buffer is called in messages.
    struct Unwritten {
        std::uint64_t count = 0, first = 0;
        std::string buffer{};
    };
    Unwritten unwritten(std::uint64_t address, std::size_t bytes) const { return unwritten(*state_, address, bytes); }
    static Unwritten unwritten(const State& memory, std::uint64_t address, std::size_t bytes);
    /// The live buffer that an address is in or right after; its bytes are 0 if there is none.
    struct Range {
        std::uint64_t address = 0, bytes = 0;
    };
    Range buffer_of(std::uint64_t address) const;
    /// How much a kernel's malloc has, in all; at first 8 MiB, CUDA's default.
    void set_heap_bytes(std::size_t bytes);
    /// Whether the address is in a part of the address space that memories of this process have, mapped buffers aside.
    static bool is_device(std::uint64_t address);

    State& state() const { return *state_; }
    /// For work that is done later: what is released is not there, even if all of it has ended.
    const std::shared_ptr<State>& share() const { return state_; }

private:
    std::shared_ptr<State> state_;
};

}  // namespace ikat::emulator
