// SPDX-License-Identifier: Apache-2.0
// Which bytes of global memory a grid has read, and which it has written: a bit for each, of the buffers that it has
// touched. Blocks may add at the same time.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/emulator/core/memory/memory.hpp"

namespace ikat::emulator {

/// Bytes as a set.
class ByteSet {
public:
    explicit ByteSet(std::uint64_t bytes)
        : words_(std::make_unique<std::atomic<std::uint64_t>[]>(std::size_t(bytes / 64 + 1))) {}
    void add(std::uint64_t first, std::uint64_t count);
    /// The first of these that it has.
    std::optional<std::uint64_t> find(std::uint64_t first, std::uint64_t count) const;

private:
    std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
};

class Footprint {
public:
    /// Of a buffer, at addresses [base, base + bytes).
    struct Part {
        Part(std::uint64_t first, std::uint64_t size) : base(first), bytes(size), read(size), written(size) {}
        bool has(std::uint64_t address) const { return address - base < bytes; }
        std::uint64_t base, bytes;
        ByteSet read, written;
    };
    /// The part of the buffer that an address is in; nullptr if it is in none. It stays where it is.
    Part* part(std::uint64_t address, const Memory::State& memory);
    const Part* find(std::uint64_t address) const;

private:
    std::map<std::uint64_t, Part> parts_;  // by the base
    std::mutex mutex_;
};

}  // namespace ikat::emulator
