// SPDX-License-Identifier: Apache-2.0
// Blocks of 256 weights in parts, whose scales are integers times one d. A search finds the scale of each part as a
// float, then these are rounded, and each q is chosen anew for the rounded ones.
#include <array>
#include <optional>

#include "stdlib/quantised/fit.hpp"

namespace ikat::stdlib::stored {
namespace {

// ---- with minima: Q2_K, Q4_K, Q5_K

/// x is about scale q + least.
struct Line {
    float scale, least;
};
/// Which scales are tried for a part: those with which its range is last + first, last + first + 0.1 ... steps.
struct Search {
    int last;  // of q
    float first;
    int tries;
    bool is_absolute;  // the error is a sum of distances, not of their squares
};

/// Numbers with their weights, as sums for the best line through them.
class WeightedPart {
public:
    WeightedPart(std::span<const float> x, std::span<const float> weight, const Search& search)
        : x_(x), weight_(weight), search_(search) {
        for (std::size_t i = 0; i < x.size(); ++i) {
            sum_weight_ += weight[i];
            sum_x_ += weight[i] * x[i];
        }
    }

    /// The line with the least error among those tried, and its q.
    Line best(std::span<int> q) const {
        const auto [smallest, largest] = std::ranges::minmax(x_);
        Line out{0, std::min(smallest, 0.0f)};
        if (largest == out.least) return out;
        assign(float(search_.last) / (largest - out.least), out.least, q);
        out.scale = 1 / (float(search_.last) / (largest - out.least));
        float least_error = error(out, q);
        std::array<int, 32> tried_q;
        const std::span<int> tried = std::span(tried_q).first(q.size());
        for (int i = 0; i < search_.tries; ++i) {
            const float range = search_.first + 0.1f * float(i) + float(search_.last);
            assign(range / (largest - out.least), out.least, tried);
            const std::optional<Line> line = through(tried);
            if (!line) continue;
            const float line_error = error(*line, tried);
            if (!(line_error < least_error)) continue;
            std::ranges::copy(tried, q.begin());
            least_error = line_error;
            out = *line;
        }
        return out;
    }

private:
    void assign(float inverse, float least, std::span<int> q) const {
        for (std::size_t i = 0; i < q.size(); ++i) q[i] = nearest(inverse * (x_[i] - least), 0, search_.last);
    }

    float error(const Line& line, std::span<const int> q) const {
        float out = 0;
        for (std::size_t i = 0; i < q.size(); ++i) {
            const float difference = line.scale * float(q[i]) + line.least - x_[i];
            out += weight_[i] * (search_.is_absolute ? std::abs(difference) : difference * difference);
        }
        return out;
    }

    /// The line of least squares for these q, which is not above 0 at q = 0. None where all q are the same.
    std::optional<Line> through(std::span<const int> q) const {
        float sum_q = 0, sum_qq = 0, sum_qx = 0;
        for (std::size_t i = 0; i < q.size(); ++i) {
            const float weighted = weight_[i] * float(q[i]);
            sum_q += weighted;
            sum_qq += weighted * float(q[i]);
            sum_qx += weighted * x_[i];
        }
        const float determinant = sum_weight_ * sum_qq - sum_q * sum_q;
        if (!(determinant > 0)) return std::nullopt;
        const Line out{(sum_weight_ * sum_qx - sum_x_ * sum_q) / determinant,
                       (sum_qq * sum_x_ - sum_q * sum_qx) / determinant};
        return out.least > 0 ? Line{sum_qx / sum_qq, 0} : out;
    }

    std::span<const float> x_, weight_;
    Search search_;
    float sum_weight_ = 0, sum_x_ = 0;
};

/// Numbers that are not negative as integers up to `last`, times d.
struct Rounded {
    half d{};
    std::array<int, 16> integers{};
};
Rounded rounded(std::span<const float> numbers, int last) {
    float largest = 0;
    for (const float each : numbers)
        if (each > largest) largest = each;
    const float inverse = largest > 0 ? float(last) / largest : 0;
    Rounded out{.d = half(largest / float(last))};
    for (std::size_t i = 0; i < numbers.size(); ++i)
        out.integers[i] = std::min(int(std::uint8_t(nearest(inverse * numbers[i]))), last);
    return out;
}

/// `weigh` gives the weights of the errors in a part.
template <std::size_t Size>
void fit_with_minima(std::span<const float> x, auto& block, int last_scale, const Search& search, auto&& weigh) {
    constexpr std::size_t parts = 256 / Size;
    std::array<float, parts> scales, minima;
    std::array<int, 256> q{};
    for (std::size_t part = 0; part < parts; ++part) {
        const std::span<const float> numbers = x.subspan(part * Size, Size);
        std::array<float, Size> weight;
        weigh(numbers, weight);
        const auto of_part = std::span(q).subspan(part * Size, Size);
        const Line line = WeightedPart(numbers, weight, search).best(of_part);
        scales[part] = line.scale;
        minima[part] = -line.least;
    }
    const Rounded scale = rounded(scales, last_scale), minimum = rounded(minima, last_scale);
    block.d = scale.d;
    block.dmin = minimum.d;
    for (std::size_t part = 0; part < parts; ++part) {
        block.scales.set(std::uint32_t(part), {.scale = scale.integers[part], .minimum = minimum.integers[part]});
        const float d = float(scale.d) * float(scale.integers[part]);
        const float below = float(minimum.d) * float(minimum.integers[part]);
        for (std::size_t i = part * Size; i < (part + 1) * Size; ++i)
            block.set(std::uint32_t(i), d != 0 ? nearest((x[i] + below) / d, 0, search.last) : q[i]);
    }
}

/// Large numbers count more, but small ones count, too.
void weigh_with_average(std::span<const float> x, std::span<float> weight) {
    float sum = 0;
    for (const float each : x) sum += each * each;
    const float average = std::sqrt(sum / float(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) weight[i] = average + std::abs(x[i]);
}

// ---- without minima: Q3_K, Q6_K

/// Sums over a part, weighted by x²: of x q and of q².
struct Sums {
    float xq = 0, qq = 0;
    void add(float x, int q) {
        xq += x * x * x * float(q);
        qq += x * x * float(q) * float(q);
    }
    void remove(float x, int q) {
        xq -= x * x * x * float(q);
        qq -= x * x * float(q) * float(q);
    }
};

/// q is -middle ... middle - 1 here, where the number farthest from 0 has -middle. Parts of zeros have no q: they keep
/// -middle, whose bits are 0.
Sums assign(std::span<const float> x, float inverse, int middle, std::span<int> q) {
    Sums out;
    for (std::size_t i = 0; i < x.size(); ++i) {
        q[i] = nearest(inverse * x[i], -middle, middle - 1);
        out.add(x[i], q[i]);
    }
    return out;
}

/// Tries a better q for each number in turn, for the scale that is best for the others. Whether any changed.
bool improve(std::span<const float> x, int middle, std::span<int> q, Sums& sums) {
    bool changed = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
        Sums others = sums;
        others.remove(x[i], q[i]);
        if (!(others.xq > 0)) continue;
        const int better = nearest(x[i] * others.qq / others.xq, -middle, middle - 1);
        if (better == q[i]) continue;
        others.add(x[i], better);
        if (!(others.qq > 0 && others.xq * others.xq * sums.qq > sums.xq * sums.xq * others.qq)) continue;
        q[i] = better;
        sums = others;
        changed = true;
    }
    return changed;
}

/// The scale of a part of Q3_K.
float scale_by_steps(std::span<const float> x, std::span<int> q) {
    constexpr int middle = 4;
    const float extreme = farthest(x);
    if (std::abs(extreme) < smallest_part) return 0;
    Sums sums = assign(x, float(-middle) / extreme, middle, q);
    for (int i = 0; i < 5; ++i)
        if (!improve(x, middle, q, sums)) break;
    return sums.xq / sums.qq;
}

/// The scale of a part of Q6_K.
float scale_by_tries(std::span<const float> x, std::span<int> q) {
    constexpr int middle = 32;
    const float extreme = farthest(x);
    if (std::abs(extreme) < smallest_part) return 0;
    Sums sums = assign(x, float(-middle) / extreme, middle, q);
    float scale = sums.qq != 0 ? sums.xq / sums.qq : 0, best = scale * sums.xq;
    std::array<int, 16> tried;
    for (int i = -9; i <= 9; ++i) {
        if (i == 0) continue;
        sums = assign(x, -(float(middle) + 0.1f * float(i)) / extreme, middle, tried);
        if (!(sums.qq > 0 && sums.xq * sums.xq > best * sums.qq)) continue;
        std::ranges::copy(tried, q.begin());
        scale = sums.xq / sums.qq;
        best = scale * sums.xq;
    }
    return scale;
}

/// `search` gives the scale of a part and its q; the largest scale becomes -last_scale. Nothing is written where all
/// scales are less than `zero`, or 0.
void fit_without_minima(std::span<const float> x, auto& block, int middle, int last_scale, float zero, auto&& search,
                        auto&& set_scale) {
    std::array<float, 16> scales;
    std::array<int, 256> q;
    q.fill(-middle);
    for (std::size_t part = 0; part < 16; ++part)
        scales[part] = search(x.subspan(part * 16, 16), std::span(q).subspan(part * 16, 16));
    const float largest = farthest(scales);
    if (largest == 0 || std::abs(largest) < zero) return;
    const float inverse = float(-last_scale) / largest;
    block.d = half(1 / inverse);
    for (std::size_t part = 0; part < 16; ++part) {
        const int scale = set_scale(std::uint32_t(part), nearest(inverse * scales[part]));
        const float d = float(block.d) * float(scale);
        for (std::size_t i = part * 16; i < (part + 1) * 16; ++i)
            block.set(std::uint32_t(i), (d != 0 ? nearest(x[i] / d, -middle, middle - 1) : q[i]) + middle);
    }
}

}  // namespace

void fit(std::span<const float> x, Q2_K& block) {
    fit_with_minima<16>(x, block, 15, {.last = 3, .first = -0.5f, .tries = 16, .is_absolute = true},
                        [](std::span<const float> numbers, std::span<float> weight) {
                            for (std::size_t i = 0; i < numbers.size(); ++i) weight[i] = std::abs(numbers[i]);
                        });
}
void fit(std::span<const float> x, Q4_K& block) {
    fit_with_minima<32>(x, block, 63, {.last = 15, .first = -1, .tries = 21, .is_absolute = false}, weigh_with_average);
}
void fit(std::span<const float> x, Q5_K& block) {
    fit_with_minima<32>(x, block, 63, {.last = 31, .first = -0.5f, .tries = 16, .is_absolute = false},
                        weigh_with_average);
}

void fit(std::span<const float> x, Q3_K& block) {
    fit_without_minima(x, block, 4, 32, 0, scale_by_steps, [&](std::uint32_t part, int scale) {
        scale = std::clamp(scale, -32, 31);
        block.scales.set(part, scale);
        return scale;
    });
}
void fit(std::span<const float> x, Q6_K& block) {
    fit_without_minima(x, block, 32, 128, smallest_part, scale_by_tries, [&](std::uint32_t part, int scale) {
        return int(block.scales[part] = std::int8_t(std::min(scale, 127)));
    });
}

}  // namespace ikat::stdlib::stored
