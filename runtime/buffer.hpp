// SPDX-License-Identifier: Apache-2.0
// Device memory with a single owner and a known element type.
//
//     Buffer<float> x = device.upload(host, "x");
//     x.fill(0);
//     std::vector<float> back = x.download();
// A buffer keeps its device open. Host copies and fills have completed when they return, and happen after all earlier
// work of the device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "codegen/ir/type.hpp"
#include "runtime/backend.hpp"
#include "runtime/view.hpp"

namespace ikat::runtime {

/// The types that device memory can hold: numbers and trivially copyable structs.
template <class T>
concept Element = ir::contains(ir::Storable, ir::type_of<T>) ||
    (std::is_class_v<T> && !std::is_empty_v<T> && std::is_trivially_copyable_v<T>);

/// A piece of device memory, in bytes, and its only owner. Movable, not copyable.
class Allocation {
public:
    explicit Allocation(Reference<MemoryBlock> block) : block_(std::move(block)) {}
    Allocation(Reference<PoolObject> pool, std::size_t bytes, std::string_view name);
    ~Allocation();
    Allocation(Allocation&& other) noexcept = default;  // leaves it without memory
    Allocation& operator=(Allocation&& other) noexcept {
        std::swap(block_, other.block_);
        return *this;
    }

    std::uint64_t address() const { return block_ ? block_->address() : 0; }
    std::size_t bytes() const { return block_ ? block_->bytes() : 0; }
    const std::string& name() const { return home().name(); }
    /// The name in messages from now on.
    void rename(std::string_view name) { home().rename(name); }
    Backend* device() const { return block_ ? block_->device() : nullptr; }

    BufferPart whole() const { return {block_, 0, bytes()}; }

    /// From byte `offset` on. These throw Error if they exceed the allocation.
    void write(std::span<const std::byte> from, std::size_t offset = 0);
    void read(std::span<std::byte> to, std::size_t offset = 0) const;
    void copy(const Allocation& from);
    void fill(std::span<const std::byte> element);

private:
    /// The memory; a buffer has some until it is moved from.
    MemoryBlock& home() const;

    Reference<MemoryBlock> block_;
};

/// The bytes of this many elements. Throws Error if no address reaches them.
std::size_t checked_bytes(std::size_t count, std::size_t element_bytes, std::string_view name);

/// Memory of a device for size() elements, with one owner. Movable, not copyable. Functions throw Error if it was moved
/// from.
template <Element T>
class Buffer {
public:
    using value_type = T;

    explicit Buffer(Allocation memory) : memory_(std::move(memory)) {}

    std::size_t size() const { return memory_.bytes() / sizeof(T); }
    const Allocation& memory() const { return memory_; }
    std::uint64_t address() const { return memory_.address(); }

    /// The name in messages. A launch names a nameless buffer after the kernel's parameter.
    const std::string& name() const { return memory_.name(); }
    void rename(std::string_view name) { memory_.rename(name); }

    /// Writes at most as many elements as the buffer has, starting with the first.
    void upload(std::span<const T> from) { memory_.write(std::as_bytes(from)); }
    void download(std::span<T> to) const { memory_.read(std::as_writable_bytes(to)); }
    std::vector<T> download() const {
        std::vector<T> host(size());
        download(host);
        return host;
    }

    /// Elements first ... first + count - 1, and the buffer as a matrix (runtime/view.hpp).
    BufferSlice<T> slice(std::uint64_t first, std::uint64_t count,
                         const Location& where = Location::of(std::source_location::current())) {
        return all<T>().slice(first, count, where);
    }
    BufferSlice<const T> slice(std::uint64_t first, std::uint64_t count,
                               const Location& where = Location::of(std::source_location::current())) const {
        return all<const T>().slice(first, count, where);
    }
    /// All elements as a slice.
    operator BufferSlice<T>() { return all<T>(); }
    operator BufferSlice<const T>() const { return all<const T>(); }
    auto view(const LocatedNumber& first, std::integral auto... others) { return all<T>().view(first, others...); }
    auto view(const LocatedNumber& first, std::integral auto... others) const {
        return all<const T>().view(first, others...);
    }

    /// All elements of `from`, from the same device.
    void copy(const Buffer& from) { memory_.copy(from.memory_); }
    void fill(std::type_identity_t<T> value) { memory_.fill(std::as_bytes(std::span(&value, 1))); }

private:
    template <class E>
    BufferSlice<E> all() const {
        return BufferSlice<E>(memory_.whole());
    }

    Allocation memory_;
};

/// Whether a type is a Buffer<T>.
template <class T>
inline constexpr bool is_buffer = false;
template <class T>
inline constexpr bool is_buffer<Buffer<T>> = true;

}  // namespace ikat::runtime
