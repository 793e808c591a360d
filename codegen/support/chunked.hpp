// SPDX-License-Identifier: Apache-2.0
// A list that grows by chunks: an element never moves, so that a long list of large elements costs no copies, and no
// memory besides its own.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace ikat {

template <class T, std::size_t per_chunk = 64>
class Chunked {
    template <class List>
    struct Iterator {
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        List* list = nullptr;
        std::size_t i = 0;

        auto& operator*() const { return (*list)[i]; }
        auto* operator->() const { return &(*list)[i]; }
        Iterator& operator++() { return ++i, *this; }
        Iterator operator++(int) { return {list, i++}; }
        bool operator==(const Iterator&) const = default;
    };

public:
    using value_type = T;
    Chunked() = default;
    Chunked(const Chunked&) = default;
    Chunked(Chunked&& other) noexcept : chunks_(std::move(other.chunks_)), size_(std::exchange(other.size_, 0)) {}
    Chunked& operator=(Chunked other) noexcept {
        chunks_.swap(other.chunks_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Chunked() = default;

    std::size_t size() const { return size_; }
    /// How many fit without more memory.
    std::size_t capacity() const { return chunks_.size() * per_chunk; }
    T& operator[](std::size_t i) { return chunks_[i / per_chunk][i % per_chunk]; }
    const T& operator[](std::size_t i) const { return chunks_[i / per_chunk][i % per_chunk]; }
    T& back() { return (*this)[size_ - 1]; }

    void push_back(T&& value) {
        if (size_ == capacity()) chunks_.emplace_back().reserve(per_chunk);
        chunks_[size_++ / per_chunk].push_back(std::move(value));
    }
    /// Drops the elements after the first `count`; their memory stays for others.
    void cut(std::size_t count) {
        for (; size_ > count; --size_) chunks_[(size_ - 1) / per_chunk].pop_back();
    }

    auto begin() { return Iterator<Chunked>{this, 0}; }
    auto end() { return Iterator<Chunked>{this, size_}; }
    auto begin() const { return Iterator<const Chunked>{this, 0}; }
    auto end() const { return Iterator<const Chunked>{this, size_}; }

private:
    std::vector<std::vector<T>> chunks_;  // full, then one that is not, then empty ones
    std::size_t size_ = 0;
};

}  // namespace ikat
