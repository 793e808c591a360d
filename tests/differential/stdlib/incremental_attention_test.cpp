// SPDX-License-Identifier: Apache-2.0
// incremental_attention() against sums in double, with a bound for each element that follows from the roundings. What
// no query sees, the rows of K and V behind a sequence's length and before its window, is NaN, and so are pages that
// no sequence has.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "stdlib/attention/decode.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/targets.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using Catch::Matchers::Contains;
using runtime::Device;

struct Case {
    std::vector<std::uint32_t> lengths{40};  // of each sequence
    std::uint32_t heads = 1, kv_heads = 1, queries = 1;
    std::uint32_t d = 64;
    std::uint32_t parts = 1;
    std::uint32_t page_rows = 0;  // 0: no pages
    bool causal = false;
    std::optional<std::uint32_t> before{};
    float soft_cap = 0;
    std::optional<float> scale{};
    double magnitude = 1;       // of Q
    std::uint32_t gap = 0;      // elements between rows
    bool heads_in_rows = true;  // a row of K has all heads; the rows of pages, too
    std::uint32_t room = 0;     // for so many more keys than the longest sequence has
    // At which elements of their buffers Q, K, V and O begin.
    std::array<std::uint32_t, 4> first{};
    std::uint32_t query_gap = 0;  // elements between rows of Q and O

    std::uint32_t sequences() const { return std::uint32_t(lengths.size()); }
    std::uint32_t capacity() const { return *std::max_element(lengths.begin(), lengths.end()) + room; }
    std::uint32_t pages_of_sequence() const { return (capacity() + page_rows - 1) / page_rows; }
    /// One of them belongs to nobody.
    std::uint32_t pages() const { return sequences() * pages_of_sequence() + 1; }
    /// The page of a sequence's key: the last ones first.
    std::uint32_t page(std::uint32_t s, std::uint32_t key) const {
        return pages() - 1 - (s * pages_of_sequence() + key / page_rows);
    }
    bool sees(std::uint32_t s, std::uint32_t i, std::uint32_t key) const {
        const std::int64_t own = std::int64_t(i) + lengths[s] - queries;
        return key < lengths[s] && (!causal || key <= own) && (!before || key >= own - std::int64_t(*before));
    }
    bool is_seen(std::uint32_t s, std::uint32_t key) const {
        for (std::uint32_t i = 0; i < queries; ++i)
            if (sees(s, i, key)) return true;
        return false;
    }
};

/// Numbers between -1 and 1, many of them equal.
double small(std::size_t i) { return double((i * 2654435761u >> 7) % 129) / 64 - 1; }

struct Expected {
    double value, error;
};

template <class T>
struct Output {
    std::vector<T> o;
    std::vector<float> log_sums;
    bool operator==(const Output&) const = default;
};

template <class T>
struct Problem {
    Case is;
    std::vector<T> q, k, v;  // rows of heads of sequences; k and v without pages

    explicit Problem(const Case& is) : is(is) {
        for (std::size_t n = 0; n < std::size_t(is.sequences()) * is.heads * is.queries * is.d; ++n)
            q.push_back(T(float(small(n) * is.magnitude)));
        for (std::uint32_t s = 0; s < is.sequences(); ++s)
            for (std::uint32_t h = 0; h < is.kv_heads; ++h)
                for (std::uint32_t j = 0; j < is.capacity(); ++j)
                    for (std::uint32_t e = 0; e < is.d; ++e) {
                        const bool seen = is.is_seen(s, j);
                        k.push_back(T(seen ? float(small(k.size() + 1000003)) : NAN));
                        v.push_back(T(seen ? float(small(3 * v.size() + 77)) : e % 2 ? NAN : INFINITY));
                    }
    }
    std::size_t key_at(std::uint32_t s, std::uint32_t h, std::uint32_t j) const {
        return ((std::size_t(s) * is.kv_heads + h) * is.capacity() + j) * is.d;
    }
    std::size_t row_at(std::uint32_t s, std::uint32_t h, std::uint32_t i) const {
        return (std::size_t(s) * is.heads + h) * is.queries + i;
    }

    /// The row of O and, last, the logarithm of the sum of a query.
    std::vector<Expected> row(std::uint32_t s, std::uint32_t h, std::uint32_t i) const {
        const std::uint32_t kv = h / (is.heads / is.kv_heads), length = is.lengths[s];
        // What one rounding of a product, a sum or an exponent in f32 may cost, with room for a GPU's own order; and of
        // an element.
        constexpr double f32_step = 0x1p-22;
        constexpr double step = std::is_same_v<T, half> ? 0x1p-11 : std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-24;
        const double scale = is.scale ? double(*is.scale) : 1 / std::sqrt(double(is.d));
        const auto number = [](const T& x) { return double(float(x)); };
        std::vector<double> scores(length, -INFINITY);
        double most = -INFINITY, off = 0;  // by how much a score may be off
        for (std::uint32_t j = 0; j < length; ++j) {
            if (!is.sees(s, i, j)) continue;
            double sum = 0, size = 0;
            for (std::uint32_t e = 0; e < is.d; ++e) {
                const double product = number(q[row_at(s, h, i) * is.d + e]) * number(k[key_at(s, kv, j) + e]);
                sum += product, size += std::abs(product);
            }
            double score_off = (is.d + 4) * f32_step * size * scale;
            scores[j] = sum * scale;
            if (const double cap = double(is.soft_cap); cap > 0) {
                scores[j] = cap * std::tanh(scores[j] / cap);
                score_off += cap <= 64 ? 0x1p-21 * cap : 0x1p-19 * std::abs(scores[j]);
            }
            most = std::max(most, scores[j]);
            off = std::max(off, score_off + 4 * f32_step * std::abs(scores[j]));
        }
        std::vector<Expected> out(is.d + 1, {0, 0});
        out[is.d] = {-INFINITY, 0};
        if (most == -INFINITY) return out;
        double total = 0;
        std::vector<double> weights;
        for (const double score : scores) total += weights.emplace_back(std::exp(score - most));
        for (double& weight : weights) weight /= total;
        // Exponentials, their sum, sums of products with V in f32, what warps and parts have put together; the
        // exponentials rounded once; those that are subnormal.
        const double relative = 2 * std::expm1(2 * off) + (2 * length + 8 * is.parts + 48) * f32_step + step;
        for (std::uint32_t e = 0; e < is.d; ++e) {
            double sum = 0, size = 0, all = 0;
            for (std::uint32_t j = 0; j < length; ++j) {
                if (scores[j] == -INFINITY) continue;
                const double weight = weights[j], x = number(v[key_at(s, kv, j) + e]);
                sum += weight * x, size += weight * std::abs(x), all += std::abs(x);
            }
            const double error = relative * size + 0x1p-25 * all / total;
            out[e] = {sum, error + step * (std::abs(sum) + error) + 0x1p-25};
        }
        const double log_sum = most + std::log(total);
        out[is.d] = {log_sum, 2 * off + (2 * length + 8 * is.parts + 48) * f32_step + 4 * f32_step * std::abs(log_sum)};
        return out;
    }

    /// Rows of Q or O that begin at element `first`, with gaps; NaN around them.
    std::vector<T> spread(const std::vector<T>& from, std::uint32_t first) const {
        const std::size_t pitch = is.d + is.query_gap;
        std::vector<T> out(first + from.size() / is.d * pitch, T(NAN));
        for (std::size_t i = 0; i < from.size(); ++i) out[first + i / is.d * pitch + i % is.d] = from[i];
        return out;
    }
    /// The other way round. Nothing has been written around them.
    std::vector<T> gathered(const std::vector<T>& from, std::uint32_t first) const {
        std::vector<T> out;
        std::size_t written = 0;
        for (std::size_t i = 0; i < from.size(); ++i)
            if (i >= first && (i - first) % (is.d + is.query_gap) < is.d)
                out.push_back(from[i]);
            else
                written += !std::isnan(float(from[i]));
        CHECK(written == 0);
        return out;
    }
    /// K or V, where the kernel finds them: rows `gap` apart, NaN between them; in pages, if there are any.
    std::vector<T> stored(const std::vector<T>& from, std::uint32_t first) const {
        const std::uint32_t rows = is.page_rows ? is.page_rows : is.capacity();
        const std::uint32_t planes = is.page_rows ? is.pages() : is.sequences();
        const std::size_t pitch = is.d + is.gap;
        std::vector<T> out(first + std::size_t(planes) * is.kv_heads * rows * pitch, T(NAN));
        for (std::uint32_t s = 0; s < is.sequences(); ++s)
            for (std::uint32_t h = 0; h < is.kv_heads; ++h)
                for (std::uint32_t j = 0; j < is.capacity(); ++j) {
                    const std::size_t plane = is.page_rows ? is.page(s, j) : s, row = j % rows;
                    const std::size_t at = is.heads_in_rows ? (plane * rows + row) * is.kv_heads + h
                                                            : (plane * is.kv_heads + h) * rows + row;
                    std::copy_n(from.begin() + std::ptrdiff_t(key_at(s, h, j)), is.d,
                                out.begin() + std::ptrdiff_t(first + at * pitch));
                }
        return out;
    }
    TensorView view(const auto& all, std::uint32_t first) const {
        const auto buffer = all.slice(first, all.size() - first);
        const std::uint64_t rows = is.page_rows ? is.page_rows : is.capacity(), pitch = is.d + is.gap;
        const std::uint64_t planes = is.page_rows ? is.pages() : is.sequences(), heads = is.kv_heads;
        if (is.heads_in_rows)
            return heads_in_rows(
                buffer.view(planes, rows, heads, is.d).pitched(rows * heads * pitch, heads * pitch, pitch));
        return buffer.view(planes, heads, rows, is.d).pitched(heads * rows * pitch, rows * pitch, pitch);
    }

    Output<T> run(const Device& device, bool gives_lengths = true) const {
        const auto queries = device.upload(spread(q, is.first[0]), "Q"),
                   keys = device.upload(stored(k, is.first[1]), "K"),
                   values = device.upload(stored(v, is.first[2]), "V");
        const auto lengths = device.upload(is.lengths, "lengths");
        std::vector<std::uint32_t> numbers(1);
        if (is.page_rows) {
            numbers.assign(std::size_t(is.sequences()) * is.pages_of_sequence(), 0xfffffff0);  // behind its length
            for (std::uint32_t s = 0; s < is.sequences(); ++s)
                for (std::uint32_t j = 0; j < is.lengths[s]; ++j)
                    numbers[s * is.pages_of_sequence() + j / is.page_rows] = is.page(s, j);
        }
        const auto table = device.upload(numbers, "pages");
        auto o = device.upload(spread(std::vector<T>(q.size(), T(NAN)), is.first[3]), "O");
        auto log_sum = device.upload(std::vector<float>(q.size() / is.d, NAN), "log_sum");
        const auto rows = [&](auto& buffer, std::uint32_t first) {
            const std::uint64_t pitch = is.d + is.query_gap, of_head = is.queries * pitch;
            return buffer.slice(first, buffer.size() - first)
                .view(is.sequences(), is.heads, is.queries, is.d)
                .pitched(is.heads * of_head, of_head, pitch);
        };
        IncrementalOptions options{.causal = is.causal, .before = is.before, .scale = is.scale};
        options.soft_cap = is.soft_cap;
        options.parts = is.parts;
        options.log_sum = log_sum.view(is.sequences(), is.heads, is.queries);
        if (gives_lengths) options.lengths = lengths;
        if (is.page_rows) options.pages = table.view(is.sequences(), is.pages_of_sequence());
        incremental_attention(device, rows(queries, is.first[0]), view(keys, is.first[1]), view(values, is.first[2]),
                              rows(o, is.first[3]), options);
        return {gathered(o.download(), is.first[3]), log_sum.download()};
    }

    void check(const std::vector<Device>& devices) const {
        INFO("first length " << is.lengths[0] << ", sequences " << is.sequences() << ", heads " << is.heads << "/"
                             << is.kv_heads << ", queries " << is.queries << ", d " << is.d << ", parts " << is.parts
                             << ", page " << is.page_rows << ", gaps " << is.gap << " and " << is.query_gap
                             << ", causal " << is.causal << ", cap " << is.soft_cap);
        static std::size_t number = 0;
        for (std::size_t seed = 0; seed < devices.size(); ++seed)
            if (tests::is_for_seed(number, seed, devices.size())) compare(run(devices[seed]));
        ++number;
    }
    void compare(const Output<T>& got) const {
        std::size_t wrong = 0;
        std::string first;
        for (std::uint32_t s = 0; s < is.sequences(); ++s)
            for (std::uint32_t h = 0; h < is.heads; ++h)
                for (std::uint32_t i = 0; i < is.queries; ++i) {
                    const auto expected = row(s, h, i);
                    for (std::uint32_t e = 0; e <= is.d; ++e) {
                        const std::size_t at = row_at(s, h, i);
                        const double x = e < is.d ? double(float(got.o[at * is.d + e])) : double(got.log_sums[at]);
                        const auto [right, error] = expected[e];
                        if (x == right || std::abs(x - right) <= error || wrong++ > 0) continue;
                        first = std::to_string(s) + ", " + std::to_string(h) + ", " + std::to_string(i) + ", " +
                                std::to_string(e) + ": " + std::to_string(x) + ", not " + std::to_string(right) +
                                " within " + std::to_string(error);
                    }
                }
        INFO("the first: " << first);
        CHECK(wrong == 0);
    }
};

std::vector<Device> devices_of_seeds(int count = 4) {
    std::vector<Device> out;
    for (int seed = 0; seed < count; ++seed) out.push_back(test::open_device({.schedule = std::to_string(seed)}));
    return out;
}

template <class T>
void check_sizes(std::uint32_t d) {
    const auto devices = devices_of_seeds();
    const Case cases[] = {
        {.lengths = {1}},
        {.lengths = {0, 1, 17}, .heads = 2},
        {.lengths = {64}, .heads = 4, .gap = 16},
        {.lengths = {130, 3, 65}, .heads = 8, .kv_heads = 2, .heads_in_rows = false, .room = 5},
        {.lengths = {300}, .heads = 8, .parts = 2},
        {.lengths = {333, 0, 90}, .heads = 4, .kv_heads = 2, .queries = 3, .parts = 3, .causal = true, .room = 100},
        {.lengths = {200}, .heads = 20, .queries = 1, .parts = 1, .page_rows = 16},
        {.lengths = {257, 31}, .heads = 8, .kv_heads = 8, .queries = 2, .parts = 2, .page_rows = 64},
    };
    for (Case is : cases) {
        is.d = d;
        Problem<T>(is).check(devices);
    }
}

}  // namespace

TEMPLATE_TEST_CASE("incremental attention: heads of 64", "", half, bfloat16, float) { check_sizes<TestType>(64); }
TEMPLATE_TEST_CASE("incremental attention: heads of 80", "", half, bfloat16, float) { check_sizes<TestType>(80); }
TEMPLATE_TEST_CASE("incremental attention: heads of 96", "", half, bfloat16, float) { check_sizes<TestType>(96); }
TEMPLATE_TEST_CASE("incremental attention: heads of 128", "", half, bfloat16, float) { check_sizes<TestType>(128); }
TEMPLATE_TEST_CASE("incremental attention: heads of 256", "", half, bfloat16, float) { check_sizes<TestType>(256); }

TEMPLATE_TEST_CASE("incremental attention: rows that begin anywhere", "", half, bfloat16, float) {
    const auto devices = devices_of_seeds();
    constexpr std::uint32_t dims[] = {64, 80, 96, 128, 256};
    for (std::uint32_t gap = 1; gap < 16; ++gap) {
        Case is{.lengths = {75, 3}, .heads = 2, .queries = 2, .d = dims[gap % 5], .causal = true, .gap = gap};
        is.query_gap = gap;
        Problem<TestType>(is).check(devices);
        is = {.lengths = {280, 40}, .heads = 4, .kv_heads = 2, .d = dims[(gap + 2) % 5], .parts = 2, .gap = gap};
        is.before = 250, is.query_gap = 16 - gap, is.page_rows = gap % 2 ? 16 : 32, is.heads_in_rows = gap % 4 < 2;
        Problem<TestType>(is).check(devices);
    }
}

TEMPLATE_TEST_CASE("incremental attention: Q, K, V and O that begin anywhere", "", half, bfloat16, float) {
    const auto devices = devices_of_seeds();
    for (const std::uint32_t first : {1u, 2u, 4u, 7u})
        for (std::uint32_t which = 0; which < 4; ++which) {
            Case is{.lengths = {41, 150}, .heads = 2, .d = which % 2 ? 128u : 80u, .parts = which / 2 + 1};
            is.first[which] = first, is.page_rows = first == 2 ? 16 : 0;
            Problem<TestType>(is).check(devices);
        }
}

TEMPLATE_TEST_CASE("incremental attention: windows, scales and caps", "", half, bfloat16, float) {
    const auto devices = devices_of_seeds();
    const Case cases[] = {
        {.lengths = {100, 7}, .heads = 2, .before = 10},
        {.lengths = {100, 40, 3}, .queries = 4, .causal = true, .before = 0},
        {.lengths = {300, 70}, .heads = 4, .queries = 5, .parts = 2, .before = 150},
        {.lengths = {90}, .parts = 1, .before = ~0u, .scale = 1.5f},
        {.lengths = {90, 20}, .heads = 4, .queries = 2, .causal = true, .soft_cap = 2},
        {.lengths = {200}, .parts = 2, .page_rows = 32, .before = 60, .soft_cap = 30, .scale = 3.0f},
        {.lengths = {90, 20}, .heads = 4, .queries = 2, .soft_cap = 1e8f},
        {.lengths = {200}, .parts = 2, .soft_cap = 65, .scale = 40.0f},
        {.lengths = {200, 77}, .parts = 3, .scale = 1.0f, .magnitude = 100},  // exponents of thousands
        {.lengths = {2, 1, 5}, .heads = 2, .queries = 4, .causal = true},     // queries before the first key
    };
    for (Case is : cases)
        for (const std::uint32_t d : {64u, 128u}) {
            is.d = d;
            Problem<TestType>(is).check(devices);
        }
}

TEMPLATE_TEST_CASE("incremental attention: pages give the bits of keys that follow each other", "", half, bfloat16,
                   float) {
    const auto devices = devices_of_seeds(2);
    for (const std::uint32_t parts : {1u, 3u})
        for (const std::uint32_t page_rows : {16u, 32u, 128u}) {
            Case is{.lengths = {210, 0, 33, 128}, .heads = 4, .kv_heads = 2, .queries = 2, .parts = parts};
            is.causal = true, is.d = 96, is.room = page_rows * ((210 + page_rows - 1) / page_rows) - 210;
            const auto contiguous = Problem<TestType>(is).run(devices[0]);
            is.page_rows = page_rows;
            CHECK((Problem<TestType>(is).run(devices[1]) == contiguous));
        }
}

TEMPLATE_TEST_CASE("incremental attention: heads that share keys give the bits of heads with copies of them", "", half,
                   float) {
    const auto devices = devices_of_seeds(1);
    for (const std::uint32_t group : {1u, 4u, 8u}) {
        Case is{.lengths = {77, 200}, .heads = 8, .kv_heads = 8 / group, .d = 128, .parts = 2};
        const Problem<TestType> grouped(is);
        is.kv_heads = 8;
        Problem<TestType> copied(is);
        for (std::uint32_t s = 0; s < 2; ++s)
            for (std::uint32_t h = 0; h < 8; ++h)
                for (std::uint32_t n = 0; n < is.capacity() * is.d; ++n) {
                    copied.k[copied.key_at(s, h, 0) + n] = grouped.k[grouped.key_at(s, h / group, 0) + n];
                    copied.v[copied.key_at(s, h, 0) + n] = grouped.v[grouped.key_at(s, h / group, 0) + n];
                }
        CHECK((grouped.run(devices[0]) == copied.run(devices[0])));
    }
}

TEMPLATE_TEST_CASE("incremental attention: queries together give the bits of queries one by one", "", half, float) {
    const auto devices = devices_of_seeds(1);
    // Of f32, nine rows have other teams of lanes than one.
    const std::uint32_t queries = sizeof(TestType) == 4 ? 4 : 5;
    const Case is{.lengths = {150}, .heads = 2, .queries = queries, .causal = true};
    const Problem<TestType> together(is);
    const auto all = together.run(devices[0]);
    for (std::uint32_t i = 0; i < is.queries; ++i) {
        Case one = is;
        one.queries = 1, one.lengths = {150 - is.queries + i + 1};
        Problem<TestType> single(one);
        for (std::uint32_t h = 0; h < 2; ++h)
            std::copy_n(together.q.begin() + std::ptrdiff_t(together.row_at(0, h, i) * is.d), is.d,
                        single.q.begin() + std::ptrdiff_t(h * is.d));
        for (std::uint32_t j = 0; j < one.lengths[0]; ++j)
            for (std::uint32_t e = 0; e < is.d; ++e) {
                single.k[single.key_at(0, 0, j) + e] = together.k[together.key_at(0, 0, j) + e];
                single.v[single.key_at(0, 0, j) + e] = together.v[together.key_at(0, 0, j) + e];
            }
        const auto got = single.run(devices[0]);
        for (std::uint32_t h = 0; h < 2; ++h) {
            CHECK(got.log_sums[h] == all.log_sums[together.row_at(0, h, i)]);
            CHECK(std::equal(got.o.begin() + std::ptrdiff_t(h * is.d), got.o.begin() + std::ptrdiff_t((h + 1) * is.d),
                             all.o.begin() + std::ptrdiff_t(together.row_at(0, h, i) * is.d)));
        }
    }
}

TEMPLATE_TEST_CASE("incremental attention: the bits are the same in every run", "", half, float) {
    const auto devices = devices_of_seeds();
    for (const std::uint32_t parts : {1u, 2u, 5u, 0u}) {
        const Problem<TestType> problem({.lengths = {400, 90}, .heads = 4, .kv_heads = 2, .parts = parts});
        const auto first = problem.run(devices[0]);
        problem.compare(first);
        for (const Device& device : devices) CHECK((problem.run(device) == first));
    }
}

TEST_CASE("incremental attention: without lengths all keys are seen") {
    const auto devices = devices_of_seeds(1);
    const Problem<half> problem({.lengths = {70, 70}, .heads = 2});
    CHECK((problem.run(devices[0], false) == problem.run(devices[0])));
    const Problem<half> paged({.lengths = {96, 96}, .page_rows = 32});
    CHECK((paged.run(devices[0], false) == paged.run(devices[0])));
}

TEST_CASE("incremental attention: a length that is too large makes its sequence NaN") {
    const auto devices = devices_of_seeds(1);
    for (const std::uint32_t parts : {1u, 2u}) {
        Problem<half> problem({.lengths = {200, 200}, .parts = parts});
        const auto right = problem.run(devices[0]);
        const auto q = devices[0].upload(problem.q, "Q"), k = devices[0].upload(problem.k, "K"),
                   v = devices[0].upload(problem.v, "V");
        const auto lengths = devices[0].upload(std::vector<std::uint32_t>{201, 200}, "lengths");
        auto o = devices[0].buffer<half>(128, "O");
        auto log_sum = devices[0].buffer<float>(2, "log_sum");
        IncrementalOptions options{.lengths = lengths};
        options.log_sum = log_sum.view(2, 1, 1);
        options.parts = parts;
        incremental_attention(devices[0], q.view(2, 1, 1, 64), k.view(2, 1, 200, 64), v.view(2, 1, 200, 64),
                              o.view(2, 1, 1, 64), options);
        const auto got = o.download();
        for (std::size_t e = 0; e < 64; ++e) {
            CHECK(std::isnan(float(got[e])));
            CHECK(got[64 + e] == right.o[64 + e]);
        }
        CHECK(std::isnan(log_sum.download()[0]));
    }
}

TEST_CASE("incremental attention: infinities and NaNs") {
    const auto devices = devices_of_seeds(1);
    for (const std::uint32_t parts : {1u, 2u}) {
        Problem<half> problem({.lengths = {200}, .heads = 3, .parts = parts});
        const auto fill = [](std::vector<half>& rows, std::size_t first, float x) {
            std::fill_n(rows.begin() + std::ptrdiff_t(first * 64), 64, half(x));
        };
        fill(problem.q, 0, NAN), fill(problem.q, 1, INFINITY), fill(problem.q, 2, 1);
        for (std::size_t j = 0; j < 200; ++j) fill(problem.k, j, 1), fill(problem.v, j, j == 150 ? INFINITY : 1);
        const auto got = problem.run(devices[0]).o;
        CHECK(std::isnan(float(got[0])));    // scores of NaN
        CHECK(std::isnan(float(got[64])));   // infinite scores: inf - inf
        CHECK(float(got[128]) == INFINITY);  // an infinite element of V
    }
}

TEST_CASE("incremental attention: a NaN in V reaches the queries of its sequence from the first window on") {
    const auto devices = devices_of_seeds(1);
    const auto check = [&]<class T>(T) {
        for (const std::uint32_t key : {49u, 50u, 99u, 100u}) {
            INFO("key " << key);
            Problem<T> problem({.lengths = {100}, .queries = 4, .causal = true, .before = 46});
            std::fill_n(problem.v.begin() + key * 64, 64, T(NAN));
            // The first query is at key 96, and sees those from 50 on.
            const auto got = problem.run(devices[0]).o;
            for (std::uint32_t i = 0; i < 4; ++i) CHECK(std::isnan(float(got[i * 64])) == (key >= 50 && key < 100));
        }
    };
    check(half{}), check(float{});
}

TEST_CASE("incremental attention: a page that does not exist is found") {
    const auto device = Device::open({.device = "emulator"});
    const auto q = device.upload(std::vector<half>(64, half(1.0f)), "Q"),
               cache = device.upload(std::vector<half>(4 * 16 * 64, half(1.0f)), "cache");
    auto o = device.buffer<half>(64, "O");
    const auto run = [&](std::uint32_t last) {
        const auto pages = device.upload(std::vector<std::uint32_t>{3, 0, last}, "pages");
        IncrementalOptions options{};
        options.pages = pages.view(1, 3);
        try {
            incremental_attention(device, q.view(1, 1, 1, 64), cache.view(4, 1, 16, 64), cache.view(4, 1, 16, 64),
                                  o.view(1, 1, 1, 64), options);
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    CHECK(run(2) == "no error");
    CHECK_THAT(run(4), Contains("past the end of buffer 'cache'"));
}

TEST_CASE("incremental attention: workspace") {
    const auto devices = devices_of_seeds(1);
    const Device& device = devices[0];
    const Problem<half> problem({.lengths = {300}, .heads = 2, .parts = 3});
    const auto q = device.upload(problem.q, "Q"), k = device.upload(problem.k, "K"), v = device.upload(problem.v, "V");
    auto o = device.buffer<half>(128, "O");
    IncrementalOptions options{};
    options.parts = 3;
    const auto run = [&](auto&& function) {
        return function(device, q.view(2, 1, 64), k.view(1, 300, 64), v.view(1, 300, 64), o.view(2, 1, 64), options);
    };
    const auto bytes = run([](auto&&... x) { return incremental_attention_workspace(x...); });
    CHECK(bytes == 2 * 3 * (64 + 2) * 4);
    auto workspace = device.buffer<std::uint8_t>(bytes, "workspace");
    options.workspace = workspace;
    run([](auto&&... x) { incremental_attention(x...); });
    CHECK(o.download() == problem.run(device).o);
    options.workspace = workspace.slice(0, bytes - 16);
    CHECK_THROWS_WITH(run([](auto&&... x) { incremental_attention(x...); }), Contains("workspace"));
    options.parts = 1;
    CHECK(run([](auto&&... x) { return incremental_attention_workspace(x...); }) == 0);
}
