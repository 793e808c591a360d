// SPDX-License-Identifier: Apache-2.0
// A short list of small values. Up to N are stored in the object itself, more on the heap.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

namespace ikat {

template <class T, std::uint32_t N>
class InlineVector {
    static_assert(std::is_trivially_copyable_v<T> && N * sizeof(T) >= sizeof(T*));

public:
    using value_type = T;
    InlineVector() = default;
    InlineVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
    InlineVector(const InlineVector& other) { assign(other.begin(), other.end()); }
    InlineVector(InlineVector&& other) noexcept { take(other); }
    InlineVector& operator=(const InlineVector& other) {
        if (this != &other) assign(other.begin(), other.end());
        return *this;
    }
    InlineVector& operator=(InlineVector&& other) noexcept {
        if (this == &other) return *this;
        if (capacity_ > N) delete[] heap();
        take(other);
        return *this;
    }
    ~InlineVector() {
        if (capacity_ > N) delete[] heap();
    }

    T* data() { return capacity_ > N ? heap() : reinterpret_cast<T*>(bytes_); }
    const T* data() const { return const_cast<InlineVector*>(this)->data(); }
    std::uint32_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* begin() { return data(); }
    T* end() { return data() + size_; }
    const T* begin() const { return data(); }
    const T* end() const { return data() + size_; }
    T& operator[](std::size_t i) { return data()[i]; }
    const T& operator[](std::size_t i) const { return data()[i]; }
    T& back() { return data()[size_ - 1]; }
    const T& back() const { return data()[size_ - 1]; }

    void reserve(std::size_t count) {
        if (count <= capacity_) return;
        T* larger = new T[count];
        std::copy(begin(), end(), larger);
        if (capacity_ > N) delete[] heap();
        std::memcpy(bytes_, &larger, sizeof larger);
        capacity_ = std::uint32_t(count);
    }
    void push_back(T value) {
        if (size_ == capacity_) reserve(2 * std::size_t(capacity_));
        data()[size_++] = value;
    }
    template <class Iterator>
    void assign(Iterator first, Iterator last) {
        const auto count = std::size_t(last - first);
        reserve(count);
        std::copy(first, last, data());
        size_ = std::uint32_t(count);
    }
    bool operator==(const InlineVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

private:
    T* heap() const {
        T* out;
        std::memcpy(&out, bytes_, sizeof out);
        return out;
    }
    void take(InlineVector& other) {
        size_ = std::exchange(other.size_, 0);
        capacity_ = std::exchange(other.capacity_, N);
        std::memcpy(bytes_, other.bytes_, sizeof bytes_);
    }

    std::uint32_t size_ = 0, capacity_ = N;
    alignas(T) alignas(T*) unsigned char bytes_[N * sizeof(T)];
};

}  // namespace ikat
