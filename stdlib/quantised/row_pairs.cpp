// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/row_pairs.hpp"

#include <algorithm>

namespace ikat::stdlib {

void ArrayRows::add(std::uint64_t extent, std::uint64_t stride) {
    if (extent == 1) return;
    extents.push_back(extent);
    strides.push_back(stride);
}

std::uint64_t ArrayRows::number_of_rows() const {
    std::uint64_t out = 1;
    for (const std::uint64_t extent : extents) out *= extent;
    return out;
}

bool ArrayRows::is_flat() const {
    std::uint64_t stride = length;
    for (std::size_t d = extents.size(); d-- > 0; stride *= extents[d])
        if (strides[d] != stride) return false;
    return true;
}

ArrayRows ArrayRows::in(const std::vector<std::uint64_t>& dimensions) const {
    ArrayRows out{length, dimensions, std::vector<std::uint64_t>(dimensions.size())};
    std::uint64_t stride = length;
    for (std::size_t d = dimensions.size(); d-- > 0; stride *= dimensions[d]) out.strides[d] = stride;
    return out;
}

bool RowPairs::fit(const ArrayRows& a, const ArrayRows& b) {
    if (a.extents == b.extents) return true;
    return a.number_of_rows() == b.number_of_rows() && (a.is_flat() || b.is_flat());
}

RowPairs::RowPairs(const ArrayRows& a, const ArrayRows& b, std::uint64_t columns, bool rows_matter) : columns(columns) {
    const bool are_same = a.extents == b.extents;
    const std::array<ArrayRows, 2> given{are_same || !a.is_flat() ? a : a.in(b.extents),
                                         are_same || a.is_flat() ? b : b.in(a.extents)};
    for (std::size_t i = 0; i < 2; ++i) of_[i].length = given[i].length;
    const auto both = [&](auto&& is_so) { return is_so(given[0], of_[0]) && is_so(given[1], of_[1]); };
    for (std::size_t d = given[0].extents.size(); d-- > 0;) {
        const std::uint64_t extent = given[0].extents[d];
        const bool has_rows = !of_[0].extents.empty();
        if (!has_rows && !rows_matter && both([&](const ArrayRows& from, const ArrayRows& to) {
                return from.strides[d] == to.length && extent <= farthest / std::max<std::uint64_t>(to.length, 1);
            })) {
            this->columns *= extent;
            for (ArrayRows& to : of_) to.length *= extent;
        } else if (has_rows && both([&](const ArrayRows& from, const ArrayRows& to) {
                       return from.strides[d] == to.extents[0] * to.strides[0];
                   })) {
            for (ArrayRows& to : of_) to.extents[0] *= extent;
        } else {
            for (std::size_t i = 0; i < 2; ++i) {
                of_[i].extents.insert(of_[i].extents.begin(), extent);
                of_[i].strides.insert(of_[i].strides.begin(), given[i].strides[d]);
            }
        }
    }
}

RowPairs::Launch RowPairs::rows_of(const ArrayRows& a, std::uint64_t first, std::uint64_t rows) {
    const std::uint64_t stride = a.strides.empty() ? 0 : a.strides[0], pitch = rows == 1 ? 0 : stride;
    return {{first * stride, first}, {pitch, 1}, {(rows - 1) * pitch + a.length, rows}, rows};
}

std::uint64_t RowPairs::max_rows(const ArrayRows& a) {
    const std::uint64_t stride = a.strides.empty() ? 0 : a.strides[0];
    return (farthest - std::min(a.length, farthest)) / std::max<std::uint64_t>(stride, 1) + 1;
}

void RowPairs::launch_from(std::size_t dimension, Launch launch, const std::function<void(const Launch&)>& f) const {
    const std::vector<std::uint64_t>& extents = of_[0].extents;
    if (dimension < extents.size()) {
        const std::uint64_t extent = extents[dimension];
        const bool is_last = dimension + 1 == extents.size();
        std::uint64_t max_rows = 1;  // rows of a launch
        if (is_last) {
            max_rows = extent;
            for (const ArrayRows& array : of_)
                if (array.length <= farthest)
                    max_rows = std::min(
                        max_rows, (farthest - array.length) / std::max<std::uint64_t>(array.strides[dimension], 1) + 1);
        }
        for (std::uint64_t begin = 0; begin < extent; begin += max_rows) {
            Launch next = launch;
            next.rows = std::min(max_rows, extent - begin);
            for (std::size_t i = 0; i < 2; ++i) {
                const std::uint64_t stride = of_[i].strides[dimension];
                next.first[i] += begin * stride;
                if (next.rows > 1) next.pitch[i] = stride;
            }
            launch_from(dimension + 1, next, f);
        }
        return;
    }
    for (std::size_t i = 0; i < 2; ++i) launch.reach[i] = (launch.rows - 1) * launch.pitch[i] + of_[i].length;
    f(launch);
}

void RowPairs::each_launch(const std::function<void(const Launch&)>& f) const {
    launch_from(0, {{0, 0}, {0, 0}, {0, 0}, 1}, f);
}

}  // namespace ikat::stdlib
