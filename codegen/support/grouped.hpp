// SPDX-License-Identifier: Apache-2.0
// Items that belong to groups 0 … n-1, all in one array: the edges into each block, the uses of each value.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ikat {

template <class Item>
class Grouped {
public:
    Grouped() = default;
    /// each(f) calls f(group, item) for every item, and does so twice: once to count, once to store. Within a group
    /// items keep that order.
    Grouped(std::size_t groups, auto&& each) : first_(groups + 1) {
        each([&](std::size_t group, const Item&) { ++first_[group + 1]; });
        for (std::size_t group = 0; group < groups; ++group) first_[group + 1] += first_[group];
        items_.resize(first_.back());
        std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
        each([&](std::size_t group, const Item& item) { items_[next[group]++] = item; });
    }
    std::span<const Item> operator[](std::size_t group) const {
        return std::span(items_).subspan(first_[group], first_[group + 1] - first_[group]);
    }

private:
    std::vector<std::uint32_t> first_;
    std::vector<Item> items_;
};

}  // namespace ikat
