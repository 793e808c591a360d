// SPDX-License-Identifier: Apache-2.0
// Allocation, release and host access of the emulated address space (see memory.hpp for its layout).
#include "runtime/emulator/core/memory/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "codegen/support/diagnostic.hpp"
#include "runtime/emulator/core/memory/written.hpp"

namespace ikat::emulator {

namespace {

constexpr int smallest_shift = 24;  // cells are at least 16 MiB of address space

constexpr int room = 4;  // a cell is this many powers of two larger than its buffer

int shift_for(std::uint64_t bytes) {
    return std::clamp(int(std::bit_width(bytes ? bytes - 1 : 0)) + room, smallest_shift, window_bits);
}

std::size_t cells_of(int shift) { return std::size_t{1} << (window_bits - shift); }

/// As many cells as any window has, so that no shift leads out of it: one that was another memory's may be seen still.
constexpr std::size_t table_bytes = (std::size_t{1} << (window_bits - smallest_shift)) * sizeof(Memory::State::Cell);

/// Frees of a size class before an address is reused: 1024, or what 64 windows hold.
std::size_t quarantine(int shift) { return std::min<std::size_t>(1024, 64 * cells_of(shift)); }

/// A zeroed table that takes host memory only where it is touched.
void* reserve_table() {
    void* table =
        mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return table == MAP_FAILED ? nullptr : table;
}

[[noreturn]] void out_of_memory(std::size_t bytes, std::string_view name) {
    throw Error(fmt::format("no memory for buffer '{}' of {} bytes", name, bytes),
                "the emulator keeps device memory in host memory: use a smaller problem or free buffers first");
}

}  // namespace

Memory::State::State(std::string_view device) : device_(device.empty() ? "which has no name" : device) {
    for (Window& window : windows_) window.cells = &nowhere_;
}

Memory::State::~State() {
    for (auto& [address, buffer] : buffers_)
        if (!buffer.freed) release_host(buffer.host), std::free(buffer.written);
    return_kept();
    for (const unsigned window : taken_) munmap(static_cast<void*>(windows_[window].cells.load()), table_bytes);
    address_windows().give_back(taken_);
}

Memory::State::Cell& Memory::State::cell_of(std::uint64_t address) const {
    const Window& window = windows_[address >> window_bits];
    return window.cells.load()[(address & (window_bytes - 1)) >> window.shift];
}

std::uint64_t Memory::State::fresh_cell(WindowKind kind, int shift) {
    SizeClass& cells = classes_of(kind)[shift];
    if (cells.next == cells.end) {
        void* const table = reserve_table();
        if (!table) return 0;
        const unsigned window = address_windows().take(kind, *this);
        if (!window) return munmap(table, table_bytes), 0;
        taken_.push_back(window);
        windows_[window].cells = static_cast<Cell*>(table);
        windows_[window].shift.store(shift, std::memory_order_release);
        show_window(window);
        cells.next = std::uint64_t(window) << window_bits;
        cells.end = cells.next + window_bytes;
    }
    return std::exchange(cells.next, cells.next + (std::uint64_t{1} << shift)) + (std::uint64_t{1} << shift) / 4;
}

std::uint64_t Memory::State::max_bytes_like(std::uint64_t bytes) {
    const int shift = shift_for(bytes);
    return shift == window_bits ? window_bytes / 2 : std::uint64_t{1} << (shift - room);
}

std::uint64_t Memory::State::take_cell(WindowKind kind, std::size_t bytes) {
    const int shift = shift_for(bytes);
    std::deque<std::uint64_t>& freed = classes_of(kind)[shift].freed;
    if (freed.size() < quarantine(shift))
        if (const std::uint64_t fresh = fresh_cell(kind, shift)) return fresh;
    if (freed.empty()) return 0;
    const std::uint64_t address = freed.front();
    freed.pop_front();
    return address;
}

namespace {

/// What a buffer needs of the host.
struct HostParts {
    explicit HostParts(std::size_t bytes, std::string_view name) {
        if (bytes > window_bytes / 2) out_of_memory(bytes, name);
        const std::size_t rounded = (bytes + 255) / 256 * 256 + 256;
        host = allocate_host(rounded);
        written = static_cast<std::uint8_t*>(std::calloc(rounded / 8, 1));
        if (!host || !written) give_up(bytes, name);
    }
    [[noreturn]] void give_up(std::size_t bytes, std::string_view name) {
        release_host(host);
        std::free(written);
        out_of_memory(bytes, name);
    }

    HostMemory host{};
    std::uint8_t* written = nullptr;
};

}  // namespace

void Memory::State::add_fresh(Buffer buffer) {
    const std::uint64_t address = buffer.address;
    fresh_.insert(address);
    cell_of(address).written.store(buffer.written, std::memory_order_relaxed);
    cell_of(address).host.store(buffer.host.begin, std::memory_order_relaxed);
    cell_of(address).bytes.store(buffer.bytes, std::memory_order_release);  // after the pointer, for find
    buffers_[address] = std::move(buffer);
}

std::uint64_t Memory::State::allocate(std::size_t bytes, std::string_view name) {
    HostParts parts(bytes, name);
    const std::lock_guard lock(mutex_);
    const std::uint64_t address = take_cell(WindowKind::Own, bytes);
    if (!address) parts.give_up(bytes, name);
    add_fresh(
        {.address = address, .bytes = bytes, .name = std::string(name), .host = parts.host, .written = parts.written});
    return address;
}

std::uint64_t Memory::State::reserve(std::size_t bytes, std::string_view name) {
    if (bytes > window_bytes / 2) out_of_memory(bytes, name);
    const std::lock_guard lock(mutex_);
    const std::uint64_t address = take_cell(WindowKind::Own, bytes);
    if (!address) out_of_memory(bytes, name);
    buffers_[address] = {
        .address = address, .bytes = bytes, .name = std::string(name), .freed = true, .is_reserved = true};
    return address;
}

void Memory::State::begin(std::uint64_t address) {
    Buffer buffer;
    {
        const std::lock_guard lock(mutex_);
        buffer = buffers_.at(address);
    }
    const HostParts parts(buffer.bytes, buffer.name);
    buffer.freed = false;
    buffer.host = parts.host;
    buffer.written = parts.written;
    const std::lock_guard lock(mutex_);
    add_fresh(std::move(buffer));
}

void Memory::State::give_back(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    Buffer& buffer = buffers_.at(address);
    buffer.is_reserved = false;
    if (buffer.freed) free_cell(address);
}

void Memory::State::add_written(std::uint64_t address, std::byte* host, Buffer buffer) {
    cell_of(address).written.store(nullptr, std::memory_order_relaxed);
    cell_of(address).host.store(host, std::memory_order_relaxed);
    cell_of(address).bytes.store(buffer.bytes, std::memory_order_release);  // after the pointer, for find
    buffers_[address] = std::move(buffer);
}

std::uint64_t Memory::State::allocate_mapped(std::size_t bytes, std::string_view name) {
    if (bytes > window_bytes / 2) out_of_memory(bytes, name);
    const auto page = std::size_t(sysconf(_SC_PAGESIZE));
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
    const std::lock_guard lock(mutex_);
    for (int attempts = 64; attempts > 0; --attempts) {  // another library may have mapped something there
        const std::uint64_t address = take_cell(WindowKind::Mapped, bytes);
        if (!address) break;
        void* const wanted = reinterpret_cast<void*>(address);
        void* const host = mmap(wanted, rounded, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (host == wanted) {
            add_written(address, static_cast<std::byte*>(host),
                        {.address = address,
                         .bytes = bytes,
                         .name = std::string(name),
                         .host = {static_cast<std::byte*>(host), rounded, true}});
            return address;
        }
        if (host != MAP_FAILED) munmap(host, rounded);
    }
    out_of_memory(bytes, name);
}

std::uint64_t Memory::State::adopt(void* host, std::size_t bytes, std::string_view name) {
    if (bytes > window_bytes / 2) out_of_memory(bytes, name);
    const std::lock_guard lock(mutex_);
    const std::uint64_t address = take_cell(WindowKind::Own, bytes);
    if (!address) out_of_memory(bytes, name);
    add_written(address, static_cast<std::byte*>(host),
                {.address = address, .bytes = bytes, .name = std::string(name)});
    return address;
}

void Memory::State::return_kept() noexcept {
    for (const HostMemory& host : kept_) release_host(host);
    for (std::uint8_t* written : kept_bits_) std::free(written);
    kept_.clear();
    kept_bits_.clear();
}

void Memory::State::return_to_host(const Buffer& buffer) noexcept {
    kept_.push_back(buffer.host);
    kept_bits_.push_back(buffer.written);
    if (!running_) return_kept();
}

void Memory::State::release(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.find(address);
    if (found == buffers_.end())
        throw Error(fmt::format("0x{:x} is released but was not returned by allocate", address),
                    "release the address of the buffer itself, not one inside it");
    Buffer& buffer = found->second;
    if (buffer.freed)
        throw Error(fmt::format("buffer '{}' at 0x{:x} is released a second time", buffer.name, address),
                    "release each buffer once");
    buffer.freed = true;
    fresh_.erase(address);
    cell_of(address).bytes = 0;
    return_to_host(buffer);  // the cell's pointer stays: a launch may have read the size a moment ago
    buffer.host = {};
    buffer.written = nullptr;
    if (!buffer.is_reserved) free_cell(address);
}

void Memory::State::free_cell(std::uint64_t address) {
    const auto window = unsigned(address >> window_bits);
    classes_of(AddressWindows::kind_of(window))[windows_[window].shift].freed.push_back(address);
}

std::uint64_t Memory::State::allocate_on_heap(std::size_t bytes) {
    {
        const std::lock_guard lock(mutex_);
        if (bytes == 0 || heap_used_ > heap_bytes_ || bytes > heap_bytes_ - heap_used_) return 0;
        heap_used_ += bytes;
    }
    const std::uint64_t address = allocate(bytes, heap_name);
    const std::lock_guard lock(mutex_);
    Buffer& buffer = buffers_.at(address);
    buffer.on_heap = true;
    poison_host(buffer.host);
    fresh_.erase(address);
    return address;
}

bool Memory::State::release_on_heap(std::uint64_t address) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = buffers_.find(address);
        if (found == buffers_.end() || found->second.freed || !found->second.on_heap) return false;
        heap_used_ -= found->second.bytes;
        found->second.on_heap = false;
    }
    release(address);
    return true;
}

std::size_t Memory::State::heap_used() const {
    const std::lock_guard lock(mutex_);
    return heap_used_;
}

void Memory::State::set_heap_bytes(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    heap_bytes_ = bytes;
}

void Memory::State::renew(std::uint64_t address) {
    if (State& its = home(address); &its != this) return its.renew(address);
    const std::lock_guard lock(mutex_);
    const Buffer& buffer = buffers_.at(address);
    if (!fresh_.contains(address)) poison_host(buffer.host);
    std::memset(buffer.written, 0, (buffer.bytes + 7) / 8);
    cell_of(address).written.store(buffer.written, std::memory_order_relaxed);
}

void Memory::State::rename(std::uint64_t address, std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.find(address);
    if (found == buffers_.end() || found->second.freed)
        throw Error(fmt::format("0x{:x} is named '{}' but is not a live buffer", address, name),
                    "name the address that allocate returned");
    found->second.name = name;
}

std::string Memory::State::Buffer::called() const {
    return name.empty() ? fmt::format("the buffer at 0x{:x}", address) : fmt::format("buffer '{}'", name);
}

std::optional<Memory::State::Buffer> Memory::State::describe(std::uint64_t address) const {
    if (address >= address_limit) return {};
    if (const State& its = home(address); &its != this) return its.describe(address);
    const std::lock_guard lock(mutex_);
    const std::uint64_t cell_bytes = std::uint64_t{1} << windows_[address >> window_bits].shift;
    const auto found = buffers_.find((address & ~(cell_bytes - 1)) + cell_bytes / 4);
    if (found == buffers_.end()) return {};
    return found->second;
}

Memory::State::HostRange Memory::State::range(std::uint64_t address, std::size_t bytes, std::string_view what,
                                              bool overwrites) {
    if (State& its = home(address); &its != this) return its.range(address, bytes, what, overwrites);
    const View view = find(address);
    const std::uint64_t offset = address - view.base;
    if (view.host && offset <= view.bytes && bytes <= view.bytes - offset) {
        const std::lock_guard lock(mutex_);
        const bool is_fresh = fresh_.erase(view.base), is_whole = bytes == view.bytes;
        if (is_fresh && !(overwrites && is_whole)) poison_host(buffers_.at(view.base).host);
        return {view.host + offset, is_fresh && overwrites && is_whole};
    }
    const auto buffer = describe(address);
    std::string where = "no buffer is there";
    if (buffer && buffer->freed)
        where = fmt::format("buffer '{}' there has been released", buffer->name);
    else if (buffer)
        where = fmt::format("buffer '{}' has {} bytes from 0x{:x}", buffer->name, buffer->bytes, buffer->address);
    else if (const auto other = other_device_at(address))
        where = fmt::format("{} there is on another device, {}", other->describe(address)->called(), other->device());
    throw Error(fmt::format("{} of {} bytes at 0x{:x} is outside any buffer: {}", what, bytes, address, where),
                "copy at most as many bytes as the buffer was allocated with");
}

void Memory::State::note_written(std::uint64_t address, std::size_t bytes) {
    const View view = find(address);
    if (!view.written) return;
    const bool others = true;                         // a launch may run
    if (address == view.base && bytes == view.bytes)  // no longer tracked; the bits live as long as the buffer
        cell_of(address).written.store(nullptr, std::memory_order_relaxed);
    else
        written::set(view.written, address - view.base, bytes, others);
}

written::Gap Memory::State::unwritten(std::uint64_t address, std::size_t bytes) const {
    const View view = find(address);
    return view.written ? written::gap(view.written, address - view.base, bytes) : written::Gap{};
}

void Memory::State::note_copied(std::uint64_t to, const State& other, std::uint64_t from, std::size_t bytes) {
    if (State& its = home(to); &its != this) return its.note_copied(to, other, from, bytes);
    const View source = other.find(from);
    const std::uint64_t first = from - source.base;
    if (!source.written || written::all(source.written, first, bytes)) return note_written(to, bytes);
    const View target = find(to);
    std::uint8_t* bits = target.written;
    if (!bits) {  // all of it was written: it is tracked again
        const std::lock_guard lock(mutex_);
        bits = buffers_.at(target.base).written;
        if (!bits) return;  // the host writes there, too
        std::memset(bits, 0xff, (target.bytes + 7) / 8);
        cell_of(to).written.store(bits, std::memory_order_release);
    }
    const std::vector<std::uint8_t> from_bits(source.written + first / 8, source.written + (first + bytes + 7) / 8);
    written::copy(bits, to - target.base, from_bits.data(), first % 8, bytes);
}

Memory::Memory(std::string_view device) : state_(std::make_shared<State>(device)) {}
Memory::~Memory() { state_->leave(); }

std::uint64_t Memory::allocate(std::size_t bytes, std::string_view name) { return state_->allocate(bytes, name); }
std::uint64_t Memory::allocate_mapped(std::size_t bytes, std::string_view name) {
    return state_->allocate_mapped(bytes, name);
}
std::uint64_t Memory::adopt(void* host, std::size_t bytes, std::string_view name) {
    return state_->adopt(host, bytes, name);
}
void Memory::release(std::uint64_t address) { state_->release(address); }
std::uint64_t Memory::reserve(std::size_t bytes, std::string_view name) { return state_->reserve(bytes, name); }
void Memory::begin(std::uint64_t address) { state_->begin(address); }
void Memory::give_back(std::uint64_t address) { state_->give_back(address); }
void Memory::name(std::uint64_t address, std::string_view name) { state_->rename(address, name); }
void Memory::renew(std::uint64_t address) { state_->renew(address); }
void Memory::set_heap_bytes(std::size_t bytes) { state_->set_heap_bytes(bytes); }
bool Memory::is_device(std::uint64_t address) {
    return address < address_limit && AddressWindows::kind_of(unsigned(address >> window_bits)) == WindowKind::Own &&
           address_windows().is_taken(address);
}
Memory::Range Memory::buffer_of(std::uint64_t address) const {
    const View found = state_->find(address);
    return address - found.base <= found.bytes ? Range{found.base, found.bytes} : Range{};
}

void Memory::write(std::uint64_t address, std::span<const std::byte> from) {
    if (from.empty()) return;
    std::memcpy(state_->range(address, from.size(), "a copy to the device", true).begin, from.data(), from.size());
    state_->note_written(address, from.size());
}

void Memory::fill(std::uint64_t address, std::span<const std::byte> element, std::size_t count) {
    const std::size_t bytes = element.size() * count;
    if (bytes == 0) return;
    const auto [to, is_zero] = state_->range(address, bytes, "a fill of the device", true);
    const std::byte first = element.front();
    if (std::ranges::count(element, first) != std::ptrdiff_t(element.size())) {
        for (std::size_t at = 0; at < bytes; at += element.size()) std::ranges::copy(element, to + at);
    } else if (!is_zero || first != std::byte{0}) {
        std::memset(to, int(first), bytes);
    }
    state_->note_written(address, bytes);
}

void Memory::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) { copy(*state_, to, *state_, from, bytes); }

void Memory::copy(State& target, std::uint64_t to, State& source, std::uint64_t from, std::size_t bytes) {
    if (bytes == 0) return;
    const std::byte* const begin = source.range(from, bytes, "a copy from the device", false).begin;
    std::memmove(target.range(to, bytes, "a copy to the device", true).begin, begin, bytes);
    target.note_copied(to, source, from, bytes);
}

void Memory::see(const Memory& other) { state_->see(*other.state_); }
void Memory::hide(const Memory& other) { state_->hide(*other.state_); }
bool Memory::sees(const Memory& other) const { return state_->sees(*other.state_); }

Memory::Unwritten Memory::unwritten(const State& memory, std::uint64_t address, std::size_t bytes) {
    const written::Gap gap = bytes ? memory.unwritten(address, bytes) : written::Gap{};
    if (gap.count == 0) return {};
    const auto buffer = memory.describe(address);
    return {gap.count, gap.first, buffer ? buffer->called() : std::string()};
}

void Memory::read(std::uint64_t address, std::span<std::byte> to) const {
    if (to.empty()) return;
    std::memcpy(to.data(), state_->range(address, to.size(), "a copy from the device", false).begin, to.size());
}

}  // namespace ikat::emulator
