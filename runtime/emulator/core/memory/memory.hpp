// SPDX-License-Identifier: Apache-2.0
// The address space of the emulated device. An address is a virtual number:
//
//     63      48 47       36 35                      0
//     [    0    | window id |        offset           ]
// Windows 0 to 4 are fixed: null, and the generic views of shared, local, param and const memory. Every other window is
// divided into cells of one power of two; an allocation has its own cell of 16 MiB or more, at least 16 times its size
// (less for those above 4 GiB), and starts a quarter into it:
//
//     | before | the buffer | after                   |     before and after belong to nothing
// Buffers that are mapped, so that the host has them at the same address, are in windows of their own, where no system
// puts anything by itself. A window is of one memory of the process (address_windows.hpp); others that see this memory
// have its cells, too, so that all checks are the same there.
// So finding the buffer of an address takes two loads and a shift, an index slightly out of bounds never lands in a
// neighbour, and the cell of a freed buffer (host memory returned, size 0) stays poisoned until many later frees.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/emulator/core/checks/faults.hpp"
#include "runtime/emulator/core/memory/address_windows.hpp"
#include "runtime/emulator/core/memory/device_memory.hpp"
#include "runtime/emulator/core/memory/host_memory.hpp"
#include "runtime/emulator/core/memory/saved_bytes.hpp"
#include "runtime/emulator/core/memory/written.hpp"

namespace ikat::emulator {

inline constexpr int window_bits = 36;
inline constexpr std::uint64_t window_bytes = std::uint64_t{1} << window_bits;
inline constexpr std::uint64_t address_limit = std::uint64_t{1} << 48;
/// The name of buffers from a kernel's malloc.
inline constexpr std::string_view heap_name = "malloc";

/// What a kernel's malloc has in CUDA.
inline constexpr std::size_t default_heap_bytes = 8 << 20;

/// State spaces; Shared to Const are also the ids of their windows. Cluster is .shared::cluster, which the decoder
/// turns into generic addresses.
enum class Space : std::uint8_t { Global, Shared, Local, Param, Const, Generic, Cluster };
constexpr std::uint64_t window_address(Space space) { return std::uint64_t(space) << window_bits; }

/// The memory at addresses [base, base + bytes). Lane l of a warp sees host + l * lane_stride (local memory is
/// private to each thread; elsewhere the stride is 0).
struct View {
    std::byte* host = nullptr;
    std::uint64_t base = 0, bytes = 0, lane_stride = 0;
    bool writable = true;
    /// A bit for each byte that something has written (written.hpp); lane l has its own from l * lane_stride / 8 on.
    std::uint8_t* bits = nullptr;
    std::uint8_t* written = nullptr;         // the same, or nullptr if all have been
    FaultCode denial = FaultCode::ReadOnly;  // what a store there is if it is not writable
};

/// The views of a window, by cell: see variables.hpp.
struct Cells {
    static constexpr int bits = 16;
    const View* views = nullptr;
    std::uint64_t last = 0;  // the empty view, for all other addresses

    const View& at(std::uint64_t address) const { return views[std::min(address >> bits, last)]; }
};

struct Memory::State : std::enable_shared_from_this<Memory::State> {
    struct Cell {
        std::atomic<std::byte*> host{nullptr};
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<std::uint8_t*> written{nullptr};
    };
    /// The shift is written after the cells and read before them, so that a launch that sees a window under
    /// construction sees one empty cell.
    struct Window {
        std::atomic<Cell*> cells{nullptr};
        std::atomic<int> shift{window_bits};
    };
    /// What is known about an address, for messages.
    struct Buffer {
        std::uint64_t address = 0, bytes = 0;
        std::string name;
        bool freed = false;
        bool on_heap = false;      // from a kernel's malloc
        bool is_reserved = false;  // its address is kept when it is freed
        HostMemory host{};
        std::uint8_t* written = nullptr;

        std::string called() const;  // "buffer 'x'", "the buffer at 0x..." if it has no name
    };
    struct HostRange {
        std::byte* begin;
        bool is_zero;  // untouched: it still has the host's zero pages
    };

    explicit State(std::string_view device);
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    /// The live buffer whose cell contains the address; bytes is 0 if there is none.
    View find(std::uint64_t address) const {
        if (address >= address_limit) return {};
        const Window& window = windows_[address >> window_bits];
        const int shift = window.shift.load(std::memory_order_acquire);
        const Cell& cell = window.cells.load(std::memory_order_relaxed)[(address & (window_bytes - 1)) >> shift];
        const std::uint64_t cell_bytes = std::uint64_t{1} << shift;
        const std::uint64_t bytes = cell.bytes.load(std::memory_order_acquire);  // before the pointer: see allocate
        std::uint8_t* const written = cell.written.load(std::memory_order_relaxed);
        return {.host = cell.host.load(std::memory_order_relaxed),
                .base = (address & ~(cell_bytes - 1)) + cell_bytes / 4,
                .bytes = bytes,
                .bits = written,
                .written = written};
    }

    std::uint64_t allocate(std::size_t bytes, std::string_view name);
    std::uint64_t allocate_mapped(std::size_t bytes, std::string_view name);
    std::uint64_t adopt(void* host, std::size_t bytes, std::string_view name);
    /// The maximum size of a later buffer that reuses the address of one with this many bytes.
    static std::uint64_t max_bytes_like(std::uint64_t bytes);
    void release(std::uint64_t address);
    void renew(std::uint64_t address);
    std::uint64_t reserve(std::size_t bytes, std::string_view name);
    void begin(std::uint64_t address);
    void give_back(std::uint64_t address);
    /// A kernel's malloc: 0 if its heap is full. A kernel's free: false if malloc did not return the address.
    std::uint64_t allocate_on_heap(std::size_t bytes);
    bool release_on_heap(std::uint64_t address);
    void set_heap_bytes(std::size_t bytes);
    std::size_t heap_used() const;
    void rename(std::uint64_t address, std::string_view name);
    /// The host bytes of a range inside one live buffer; Error otherwise. `what` begins the message. They are poisoned
    /// if they are fresh and the caller does not overwrite the whole buffer.
    HostRange range(std::uint64_t address, std::size_t bytes, std::string_view what, bool overwrites);
    /// Records that a range inside one live buffer has been written.
    void note_written(std::uint64_t address, std::size_t bytes);
    /// ... or copied from another or the same buffer: uninitialised bytes stay uninitialised.
    void note_copied(std::uint64_t to, const State& source, std::uint64_t from, std::size_t bytes);
    /// What nothing has written of a range inside one live buffer.
    written::Gap unwritten(std::uint64_t address, std::size_t bytes) const;
    /// The buffer, live or freed, whose cell contains the address; of a memory that is seen from here, too.
    std::optional<Buffer> describe(std::uint64_t address) const;

    /// What its device is called.
    const std::string& device() const { return device_; }
    /// See Memory.
    void see(State& other);
    void hide(State& other);
    bool sees(const State& other) const;
    /// For the end of a memory: it sees none, and is seen by none.
    void leave();
    /// The memory that has the window of an address, if that is seen from here; else this one.
    State& home(std::uint64_t address);
    const State& home(std::uint64_t address) const { return const_cast<State*>(this)->home(address); }
    /// The memory of another device that has the buffer at an address, and is not seen from here; or null.
    std::shared_ptr<State> other_device_at(std::uint64_t address) const;

    /// The contents of all live buffers that are seen from here, taken while a launch may begin.
    struct Snapshot {
        struct Contents {
            std::shared_ptr<const SavedBytes> bytes, written;  // (the bits; nullptr if all have been)
        };
        std::map<std::uint64_t, Contents> buffers;  // by address
    };
    /// It refers to an earlier one for what is the same.
    Snapshot snapshot(const Snapshot& before = {}) const;
    /// Makes them what they were. False if buffers have come or gone since; then nothing is changed.
    bool restore(const Snapshot& snapshot);

    /// Locked while 128 bits at an address are exchanged, for which the host has no instruction.
    static std::mutex& wide_exchange(std::uint64_t address) {
        return wide_exchanges_[address / 16 % wide_exchanges_.size()];
    }

    /// While it lives, host memory of released buffers is kept, so that a racing release cannot crash who uses it.
    struct Kept {
        explicit Kept(std::shared_ptr<State> state);
        ~Kept();
        Kept(const Kept&) = delete;
        Kept& operator=(const Kept&) = delete;

    private:
        const std::shared_ptr<State> state_;
    };
    /// The same while a launch runs, for all that it sees, and what nobody has used yet is poisoned.
    struct Running {
        explicit Running(State& state);

    private:
        std::deque<Kept> kept_;
    };

private:
    struct SizeClass {
        std::uint64_t next = 0, end = 0;  // fresh addresses of the newest window of the class
        std::deque<std::uint64_t> freed;  // bases of freed cells, oldest first
    };
    /// Buffers of one kind of windows, by the size of their cells.
    using Classes = std::array<SizeClass, window_bits + 1>;
    Classes& classes_of(WindowKind kind) { return classes_[unsigned(kind)]; }
    std::uint64_t fresh_cell(WindowKind kind, int shift);
    /// An address for a buffer of this many bytes, or 0.
    std::uint64_t take_cell(WindowKind kind, std::size_t bytes);
    /// Puts a buffer of which no byte has been written at its address.
    void add_fresh(Buffer buffer);
    /// The address may be used again, by and by.
    void free_cell(std::uint64_t address);
    /// Adds a buffer of which all bytes count as written.
    void add_written(std::uint64_t address, std::byte* host, Buffer buffer);
    Cell& cell_of(std::uint64_t address) const;
    void add_own(Snapshot& to, const Snapshot& before) const;
    /// This memory and those that it sees.
    std::vector<std::shared_ptr<State>> seen() const;
    /// These are called with the lock of what is seen (peers.cpp).
    void show(unsigned window, State& to) const;
    void drop(const State& other);
    void show_window(unsigned window) const;
    void return_to_host(const Buffer& buffer) noexcept;
    void return_kept() noexcept;

    Cell nowhere_;
    std::array<Window, address_limit / window_bytes> windows_;
    std::vector<unsigned> taken_;  // windows that are this memory's
    std::array<Classes, 2> classes_{};
    std::map<std::uint64_t, Buffer> buffers_;  // by base address
    std::set<std::uint64_t> fresh_;            // untouched ones: poisoned before something may read them
    std::vector<HostMemory> kept_;             // released while launches run
    std::vector<std::uint8_t*> kept_bits_;
    unsigned running_ = 0;
    std::size_t heap_bytes_ = default_heap_bytes, heap_used_ = 0;
    static inline std::array<std::mutex, 16> wide_exchanges_;  // by address
    mutable std::mutex mutex_;
    const std::string device_;
    // Which memories it sees, and which see it. The lock of all of them is taken after `mutex_`.
    std::vector<std::shared_ptr<State>> seen_;
    std::vector<State*> seen_by_;
    std::atomic<bool> sees_others_ = false;
};

}  // namespace ikat::emulator
