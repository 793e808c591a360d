// SPDX-License-Identifier: Apache-2.0
// Page-locked memory of the host: what copies on streams read and write while the program goes on.
//
//     HostBuffer<float> host = device.host_buffer<float>(n);
//     std::ranges::copy(numbers, host.begin());
//     stream.upload_async(x, host);            // host stays as it is ...
//     stream.launch(k, grid(n, 256), x, y, n);
//     stream.download_async(host, y);
//     stream.synchronize();                    // ... until here
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>

#include "runtime/buffer.hpp"

namespace ikat::runtime {

/// What a HostBuffer and work on it refer to. It is released when work of the device is done.
class HostMemory final : public Counted {
public:
    HostMemory(Reference<Backend> device, std::size_t bytes, std::string_view name)
        : device_(std::move(device)), begin_(device_->allocate_host(bytes, name)), bytes_(bytes) {}
    ~HostMemory() override { device_->release_host(begin_); }

    std::byte* begin() const { return begin_; }
    std::size_t bytes() const { return bytes_; }

private:
    const Reference<Backend> device_;
    std::byte* const begin_;
    const std::size_t bytes_;
};

/// Elements of a HostBuffer, which owns them. T is const if it is.
template <class T>
class HostSlice {
public:
    HostSlice(Reference<const HostMemory> memory, std::uint64_t first, std::uint64_t count)
        : memory_(std::move(memory)), first_(first), count_(count) {}
    template <class From>
    requires std::same_as<const From, T> HostSlice(const HostSlice<From>& other)
        : HostSlice(other.memory(), other.first(), other.size()) {}

    T* data() const { return memory_ ? reinterpret_cast<T*>(memory_->begin()) + first_ : nullptr; }
    std::uint64_t size() const { return count_; }
    T* begin() const { return data(); }
    T* end() const { return data() + count_; }
    T& operator[](std::uint64_t i) const { return data()[i]; }

    /// The memory that it is part of, and its first element there.
    const Reference<const HostMemory>& memory() const { return memory_; }
    std::uint64_t first() const { return first_; }

private:
    Reference<const HostMemory> memory_;
    std::uint64_t first_, count_;
};

/// Throws Error if a buffer of `of` elements does not have these.
void check_host_slice(std::uint64_t first, std::uint64_t count, std::uint64_t of, const Location& where);

/// Page-locked memory of the host for size() elements, with one owner. Movable, not copyable; a moved-from one is
/// empty.
template <Element T>
class HostBuffer {
public:
    using value_type = T;

    explicit HostBuffer(Reference<const HostMemory> memory) : memory_(std::move(memory)) {}
    HostBuffer(HostBuffer&& other) noexcept = default;
    HostBuffer& operator=(HostBuffer&& other) noexcept = default;

    std::size_t size() const { return memory_ ? memory_->bytes() / sizeof(T) : 0; }
    T* data() { return memory_ ? reinterpret_cast<T*>(memory_->begin()) : nullptr; }
    const T* data() const { return const_cast<HostBuffer&>(*this).data(); }
    T* begin() { return data(); }
    T* end() { return data() + size(); }
    const T* begin() const { return data(); }
    const T* end() const { return data() + size(); }
    T& operator[](std::size_t i) { return data()[i]; }
    const T& operator[](std::size_t i) const { return data()[i]; }

    /// Elements first ... first + count - 1. Throws Error if there are not that many.
    HostSlice<T> slice(std::uint64_t first, std::uint64_t count,
                       const Location& where = Location::of(std::source_location::current())) {
        check_host_slice(first, count, size(), where);
        return {memory_, first, count};
    }
    HostSlice<const T> slice(std::uint64_t first, std::uint64_t count,
                             const Location& where = Location::of(std::source_location::current())) const {
        check_host_slice(first, count, size(), where);
        return {memory_, first, count};
    }
    operator HostSlice<T>() { return {memory_, 0, size()}; }
    operator HostSlice<const T>() const { return {memory_, 0, size()}; }

private:
    Reference<const HostMemory> memory_;
};

/// Page-locked elements whose type is data.
struct HostPart {
    ir::Type type = ir::Type::Void;  // of the elements; Void: structs
    Reference<const HostMemory> memory{};
    std::byte* begin = nullptr;
    std::uint64_t bytes = 0;

    template <class T>
    HostPart(const HostSlice<T>& slice)
        : type(ir::type_of<std::remove_const_t<T>>),
          memory(slice.memory()),
          begin(reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(slice.data()))),
          bytes(slice.size() * sizeof(T)) {}
    template <Element T>
    HostPart(const HostBuffer<T>& buffer) : HostPart(HostSlice<const T>(buffer)) {}
};

/// Those that may be written.
struct MutableHostPart : HostPart {
    template <class T>
    MutableHostPart(const HostSlice<T>& slice) : HostPart(slice) {
        static_assert(!std::is_const_v<T>, "these elements are written, but they are const");
    }
    template <Element T>
    MutableHostPart(HostBuffer<T>& buffer) : HostPart(buffer) {}
};

}  // namespace ikat::runtime
