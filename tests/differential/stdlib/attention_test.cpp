// SPDX-License-Identifier: Apache-2.0
// flash_attention() against sums in double, with a bound for each element that follows from the roundings; all sizes of
// heads, on shapes around the edges of tiles, with heads that begin and go on anywhere. What is between rows is NaN.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "stdlib/attention/attention.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/targets.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using Catch::Matchers::Contains;
using runtime::Device;

struct Shape {
    std::uint32_t queries, keys, heads = 1, kv_heads = 1, batch = 1;
    std::uint32_t gap = 0;       // elements between rows
    std::uint32_t first = 0;     // element of the buffer at which the first row begins
    bool heads_in_rows = false;  // a row has all heads
    std::uint32_t block = 0;     // queries of one, by mma.sync
};

/// A device for each order of threads, and the same of sm_90a.
struct Devices {
    std::vector<Device> any, hopper;
};

/// Sequences of heads of rows of numbers.
template <class T>
struct Rows {
    std::uint32_t batch, heads, length, elements;
    Shape shape;
    std::vector<T> stored;

    Rows(const Shape& shape, std::uint32_t heads, std::uint32_t length, std::uint32_t elements, auto&& number)
        : batch(shape.batch), heads(heads), length(length), elements(elements), shape(shape) {
        stored.assign(shape.first + std::size_t(batch) * heads * length * (elements + shape.gap), T(NAN));
        std::size_t n = 0;
        for (std::uint32_t b = 0; b < batch; ++b)
            for (std::uint32_t h = 0; h < heads; ++h)
                for (std::uint32_t i = 0; i < length; ++i)
                    for (std::uint32_t e = 0; e < elements; ++e) stored[at(b, h, i, e)] = T(float(number(n++)));
    }
    std::size_t at(std::uint32_t b, std::uint32_t h, std::uint32_t i, std::uint32_t e) const {
        const std::size_t row =
            shape.heads_in_rows ? (std::size_t(b) * length + i) * heads + h : (std::size_t(b) * heads + h) * length + i;
        return shape.first + row * (elements + shape.gap) + e;
    }
    double operator()(std::uint32_t b, std::uint32_t h, std::uint32_t i, std::uint32_t e) const {
        return double(float(stored[at(b, h, i, e)]));
    }
    template <class B>
    auto view(B& buffer) const {
        using View = std::conditional_t<std::is_const_v<B>, TensorView, MutableTensorView>;
        const auto part = buffer.slice(shape.first, buffer.size() - shape.first);
        const std::uint64_t row = elements + shape.gap;
        if (shape.heads_in_rows)
            return View(heads_in_rows(
                part.view(batch, length, heads, elements).pitched(length * heads * row, heads * row, row)));
        return View(part.view(batch, heads, length, elements).pitched(heads * length * row, length * row, row));
    }
};

/// Numbers between -1 and 1, many of them equal.
double small(std::size_t i) { return double((i * 2654435761u >> 7) % 129) / 64 - 1; }

struct Expected {
    double value, error;
};

struct Extra {
    AttentionOptions options{};
    double magnitude = 1;                          // of Q
    std::uint32_t bias_batch = 0, bias_heads = 0;  // 0: no bias
    bool hides = false;                            // some of the bias is -infinity
    bool log_sum = false;
};

template <class T>
struct Problem {
    Shape shape;
    std::uint32_t d;
    Extra extra;
    Rows<T> Q, K, V, O, bias;

    Problem(const Shape& shape, std::uint32_t d, const Extra& extra = {})
        : shape(shape),
          d(d),
          extra(extra),
          Q(shape, shape.heads, shape.queries, d, [&](std::size_t i) { return small(i) * extra.magnitude; }),
          K(shape, shape.kv_heads, shape.keys, d, [](std::size_t i) { return small(i + 1000003); }),
          V(shape, shape.kv_heads, shape.keys, d, [](std::size_t i) { return small(3 * i + 77); }),
          O(shape, shape.heads, shape.queries, d, [](std::size_t) { return NAN; }),
          bias({.queries = 0, .keys = 0, .batch = extra.bias_batch, .gap = shape.gap}, extra.bias_heads, shape.queries,
               shape.keys, [&](std::size_t i) { return extra.hides && i % 7 < 3 ? -INFINITY : 2 * small(i + 5); }) {}

    double scale() const { return double(extra.options.scale.value_or(float(1 / std::sqrt(double(d))))); }
    bool sees(std::uint32_t i, std::uint32_t j) const {
        const std::int64_t own = std::int64_t(i) + shape.keys - shape.queries, key = j;
        const AttentionOptions& options = extra.options;
        if ((options.causal && key > own) || (options.behind && key > own + std::int64_t(*options.behind)))
            return false;
        return !options.before || key >= own - std::int64_t(*options.before);
    }

    /// The row of O and, last, the logarithm of the sum of a query.
    std::vector<Expected> row(std::uint32_t b, std::uint32_t h, std::uint32_t i) const {
        const std::uint32_t kv = h / (shape.heads / shape.kv_heads);
        // What one rounding of a product, a sum or an exponent in f32 may cost, with room for a GPU's own order.
        constexpr double f32_step = 0x1p-22;
        constexpr double step = std::is_same_v<T, half> ? 0x1p-11 : std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-24;
        std::vector<double> scores(shape.keys, -INFINITY);
        double most = -INFINITY, off = 0;  // by how much a score may be off
        for (std::uint32_t j = 0; j < shape.keys; ++j) {
            if (!sees(i, j)) continue;
            double sum = 0, size = 0;
            for (std::uint32_t e = 0; e < d; ++e) {
                const double product = Q(b, h, i, e) * K(b, kv, j, e);
                sum += product, size += std::abs(product);
            }
            double score = sum * scale();
            double score_off = (d + 4) * f32_step * size * scale();
            if (const double cap = double(extra.options.soft_cap); cap > 0 && std::isfinite(cap)) {
                score = cap * std::tanh(score / cap);
                score_off += cap <= 64 ? 0x1p-21 * cap : 0x1p-19 * std::abs(score);
            }
            if (extra.bias_heads) {
                score += bias(extra.bias_batch == 1 ? 0 : b, extra.bias_heads == 1 ? 0 : h, i, j);
                score_off += 4 * f32_step;
            }
            scores[j] = score;
            if (score == -INFINITY) continue;
            most = std::max(most, score);
            off = std::max(off, score_off + 4 * f32_step * std::abs(score));
        }
        std::vector<Expected> out(d + 1, {0, 0});
        out[d] = {-INFINITY, 0};
        if (most == -INFINITY) return out;
        double total = 0;
        std::vector<double> weights;
        for (const double score : scores) total += weights.emplace_back(std::exp(score - most));
        for (double& weight : weights) weight /= total;
        // Exponentials, their sum, sums of products with V in f32; the exponentials rounded once; those that are
        // subnormal.
        const double relative = 2 * std::expm1(2 * off) + (2 * shape.keys + 16) * f32_step + step;
        for (std::uint32_t e = 0; e < d; ++e) {
            double sum = 0, size = 0, all = 0;
            for (std::uint32_t j = 0; j < shape.keys; ++j) {
                const double weight = weights[j], v = V(b, kv, j, e);
                sum += weight * v, size += weight * std::abs(v);
                if (scores[j] > -INFINITY) all += std::abs(v);
            }
            const double error = relative * size + 0x1p-25 * all / total;
            out[e] = {sum, error + step * (std::abs(sum) + error) + 0x1p-25};
        }
        const double log_sum = most + std::log(total);
        out[d] = {log_sum, 2 * off + (2 * shape.keys + 16) * f32_step + 4 * f32_step * std::abs(log_sum)};
        return out;
    }

    std::vector<std::vector<Expected>> rows() const {
        std::vector<std::vector<Expected>> out;
        for (std::uint32_t b = 0; b < shape.batch; ++b)
            for (std::uint32_t h = 0; h < shape.heads; ++h)
                for (std::uint32_t i = 0; i < shape.queries; ++i) out.push_back(row(b, h, i));
        return out;
    }

    /// Whether wgmma can do it: elements of 16 bits, rows that begin at multiples of 16 bytes.
    bool has_maps() const { return sizeof(T) == 2 && (shape.first | shape.gap) * sizeof(T) % 16 == 0; }

    void check(const Devices& devices) const {
        INFO("queries " << shape.queries << ", keys " << shape.keys << ", heads " << shape.heads << "/"
                        << shape.kv_heads << ", batch " << shape.batch << ", gap " << shape.gap << ", first "
                        << shape.first << ", heads in rows " << shape.heads_in_rows << ", block " << shape.block
                        << ", d " << d << ", causal " << extra.options.causal);
        const auto rows = this->rows();
        static std::size_t number = 0;  // of the case
        for (std::size_t seed = 0; seed < devices.any.size(); ++seed) {
            if (!tests::is_for_seed(number, seed, devices.any.size())) continue;
            compare(devices.any[seed], rows, {.path = AttentionPath::mma_sync, .queries_of_block = shape.block});
            if (has_maps()) compare(devices.hopper[seed], rows, {.path = AttentionPath::wgmma});
        }
        ++number;
    }

    /// What the device makes: O and the logarithms. `how`: the path, and the queries of a block.
    std::pair<std::vector<T>, std::vector<float>> run(const Device& device, const AttentionOptions& how = {}) const {
        const auto q = device.upload(Q.stored, "Q"), k = device.upload(K.stored, "K"), v = device.upload(V.stored, "V");
        const auto added = device.upload(bias.stored, "bias");
        auto o = device.upload(O.stored, "O");
        auto log_sum = device.buffer<float>(std::size_t(shape.batch) * shape.heads * shape.queries, "log_sum");
        AttentionOptions options = extra.options;
        options.path = how.path, options.queries_of_block = how.queries_of_block;
        if (extra.bias_heads) options.bias = bias.view(added);
        if (extra.log_sum) options.log_sum = log_sum.view(shape.batch, shape.heads, shape.queries);
        flash_attention(device, Q.view(q), K.view(k), V.view(v), O.view(o), options);
        return {o.download(), extra.log_sum ? log_sum.download() : std::vector<float>{}};
    }

    void compare(const Device& device, const std::vector<std::vector<Expected>>& rows,
                 const AttentionOptions& how) const {
        INFO("path " << int(how.path) << ", blocks of " << how.queries_of_block << " queries");
        const auto [got, log_sums] = run(device, how);
        std::size_t wrong = 0, row = 0, written = 0;
        std::string first;
        const auto expect = [&](double is, const Expected& expected, const std::string& what) {
            const bool right = is == expected.value || std::abs(is - expected.value) <= expected.error;
            if (!right && wrong++ == 0)
                first = what + ": " + std::to_string(is) + ", not " + std::to_string(expected.value) + " within " +
                        std::to_string(expected.error);
        };
        for (std::uint32_t b = 0; b < shape.batch; ++b)
            for (std::uint32_t h = 0; h < shape.heads; ++h)
                for (std::uint32_t i = 0; i < shape.queries; ++i, ++row) {
                    const std::string place = std::to_string(b) + ", " + std::to_string(h) + ", " + std::to_string(i);
                    for (std::uint32_t e = 0; e < d; ++e)
                        expect(double(float(got[O.at(b, h, i, e)])), rows[row][e], place + ", " + std::to_string(e));
                    if (extra.log_sum) expect(double(log_sums[row]), rows[row][d], "log_sum of " + place);
                }
        for (const T& element : got) written += !std::isnan(float(element));
        INFO("the first: " << first);
        CHECK(wrong == 0);
        CHECK(written == row * d);  // nothing between rows
    }
};

/// `threads` of the host: the emulator has as many multiprocessors; 0: as usual.
Devices devices_of_seeds(int count = 4, std::uint32_t threads = 0) {
    Devices out;
    for (int seed = 0; seed < count; ++seed) {
        const std::string schedule = std::to_string(seed);
        out.any.push_back(test::open_device({.threads = threads, .schedule = schedule}));
        out.hopper.push_back(test::open_device({.target = "sm_90a", .threads = threads, .schedule = schedule}));
    }
    return out;
}

const Shape shapes[] = {
    {.queries = 1, .keys = 1},
    {.queries = 3, .keys = 0},
    {.queries = 64, .keys = 64, .block = 64},
    {.queries = 63, .keys = 65, .heads = 2, .kv_heads = 2},
    {.queries = 129, .keys = 127, .gap = 8},
    {.queries = 1, .keys = 200, .heads = 4, .kv_heads = 1},
    {.queries = 130, .keys = 20, .heads = 2, .kv_heads = 2, .block = 64},
    {.queries = 20, .keys = 130, .batch = 2, .heads_in_rows = true},
    {.queries = 66, .keys = 129, .heads = 8, .kv_heads = 1, .heads_in_rows = true},
    {.queries = 65, .keys = 64, .gap = 4, .first = 4},
    {.queries = 70, .keys = 66, .gap = 2, .first = 2},
    {.queries = 9, .keys = 70, .first = 1},
    {.queries = 40, .keys = 33, .heads = 2, .kv_heads = 1, .batch = 3, .gap = 5, .heads_in_rows = true},
};

template <class T>
void check_shapes(std::uint32_t d) {
    const auto devices = devices_of_seeds();
    std::size_t number = 0;
    for (const bool causal : {false, true})
        for (const Shape& shape : shapes)
            // The emulator takes long for products of f32: each shape is for one of both.
            if (sizeof(T) == 2 || number++ % 2 == 0)
                Problem<T>(shape, d, {.options = {.causal = causal}}).check(devices);
    Shape large{.queries = 200, .keys = 190};
    large.block = d < 128 ? 128 : 64;
    for (const bool causal : {false, true}) Problem<T>(large, d, {.options = {.causal = causal}}).check(devices);
}

}  // namespace

TEMPLATE_TEST_CASE("attention: heads of 64", "", half, bfloat16, float) { check_shapes<TestType>(64); }
TEMPLATE_TEST_CASE("attention: heads of 80", "", half, bfloat16, float) { check_shapes<TestType>(80); }
TEMPLATE_TEST_CASE("attention: heads of 96", "", half, bfloat16, float) { check_shapes<TestType>(96); }
TEMPLATE_TEST_CASE("attention: heads of 128", "", half, bfloat16, float) { check_shapes<TestType>(128); }
TEMPLATE_TEST_CASE("attention: heads of 256", "", half, bfloat16, float) { check_shapes<TestType>(256); }

namespace {

template <class T>
void check_extra(const Extra& extra, std::initializer_list<Shape> more = {}, std::uint32_t d = 64) {
    const auto devices = devices_of_seeds();
    std::vector<Shape> all{{.queries = 1, .keys = 1},
                           {.queries = 5, .keys = 0},
                           {.queries = 65, .keys = 130, .heads = 2, .kv_heads = 1, .batch = 2},
                           {.queries = 200, .keys = 70, .block = 64},
                           {.queries = 70, .keys = 200, .gap = 1, .heads_in_rows = true},
                           {.queries = 130, .keys = 300, .gap = 8, .heads_in_rows = true}};
    all.insert(all.end(), more);
    for (Shape shape : all) {
        Extra of_shape = extra;
        if (of_shape.bias_batch > 1) of_shape.bias_batch = shape.batch;
        if (of_shape.bias_heads > 1) of_shape.bias_heads = shape.heads;
        Problem<T>(shape, d, of_shape).check(devices);
    }
}

}  // namespace

TEMPLATE_TEST_CASE("attention: windows", "", half, bfloat16, float) {
    const Shape large{.queries = 150, .keys = 300, .block = 128};
    check_extra<TestType>({.options = {.before = 10}}, {large});
    check_extra<TestType>({.options = {.causal = true, .before = 0}}, {large});
    check_extra<TestType>({.options = {.before = 70, .behind = 3}}, {large});
    check_extra<TestType>({.options = {.behind = 100}}, {large});
    check_extra<TestType>({.options = {.before = ~0u, .behind = ~0u}}, {large});
}

TEMPLATE_TEST_CASE("attention: scales and caps", "", half, bfloat16, float) {
    check_extra<TestType>({.options = {.scale = 1.5f}}, {{.queries = 150, .keys = 80, .block = 128}});
    check_extra<TestType>({.options = {.soft_cap = 2}}, {{.queries = 150, .keys = 80, .block = 128}});
    check_extra<TestType>({.options = {.causal = true, .scale = 3.0f, .soft_cap = 30}, .log_sum = true}, {}, 128);
    check_extra<TestType>({.options = {.scale = 40.0f, .soft_cap = 65}, .log_sum = true});
    check_extra<TestType>({.options = {.soft_cap = 1e8f}, .log_sum = true});
    check_extra<TestType>({.options = {.soft_cap = INFINITY}, .log_sum = true});
}

TEST_CASE("attention: numbers at the edge of f32 give no NaN") {
    const Device device = test::open_device({.target = "sm_90a"});
    constexpr float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
    for (const AttentionPath path : {AttentionPath::mma_sync, AttentionPath::wgmma})
        for (const float cap : {0.0f, least, 1e-30f, 1.0f, 64.0f, 1e30f, most})
            for (const float scale : {least, 1e-30f, 1.0f, 1e30f, most})
                for (const bool is_zero : {true, false}) {
                    INFO("path " << int(path) << ", cap " << cap << ", scale " << scale << ", zero " << is_zero);
                    // Without a cap, scores that overflow are the caller's.
                    if (cap == 0 && !is_zero && scale > 1) continue;
                    Problem<half> problem({.queries = 3, .keys = 5}, 64,
                                          {.options = {.scale = scale, .soft_cap = cap}});
                    for (auto& q : problem.Q.stored) q = half(is_zero ? 0.0f : 0x1p-6f);
                    for (auto& k : problem.K.stored) k = half(0x1p-6f);
                    for (auto& v : problem.V.stored) v = half(2.0f);
                    // All keys have the same score: O is the mean of V.
                    const auto got = problem.run(device, {.path = path}).first;
                    CHECK(std::ranges::all_of(std::span(got).first(3 * 64), [](half v) { return float(v) == 2; }));
                }
}

TEMPLATE_TEST_CASE("attention: large scores", "", half, bfloat16, float) {
    // Exponents of thousands: all but the largest of a row are far from it.
    check_extra<TestType>({.options = {.scale = 1.0f}, .magnitude = 100, .log_sum = true});
    check_extra<TestType>({.options = {.causal = true, .scale = 8.0f}, .magnitude = 1000, .log_sum = true}, {}, 80);
}

TEMPLATE_TEST_CASE("attention: biases", "", half, bfloat16, float) {
    check_extra<TestType>({.bias_batch = 2, .bias_heads = 2});
    check_extra<TestType>({.bias_batch = 1, .bias_heads = 1, .hides = true, .log_sum = true});
    check_extra<TestType>({.options = {.causal = true, .soft_cap = 4}, .bias_batch = 2, .bias_heads = 1, .hides = true},
                          {}, 256);
}

TEMPLATE_TEST_CASE("attention: logarithms of sums", "", half, bfloat16, float) {
    check_extra<TestType>({.log_sum = true}, {{.queries = 150, .keys = 80, .block = 128}});
    check_extra<TestType>({.options = {.causal = true}, .log_sum = true}, {}, 128);
}

TEST_CASE("attention: heads that share keys give what heads with copies of them give") {
    const Device device = test::open_device();
    for (const std::uint32_t group : {1u, 4u, 8u}) {
        const Shape shared{.queries = 70, .keys = 90, .heads = 8, .kv_heads = 8 / group};
        const Shape apart{.queries = 70, .keys = 90, .heads = 8, .kv_heads = 8};
        const Problem<bfloat16> grouped(shared, 128, {.options = {.causal = true}});
        Problem<bfloat16> copied(apart, 128, {.options = {.causal = true}});
        for (std::uint32_t h = 0; h < 8; ++h)
            for (std::uint32_t j = 0; j < 90; ++j)
                for (std::uint32_t e = 0; e < 128; ++e) {
                    copied.K.stored[copied.K.at(0, h, j, e)] = grouped.K.stored[grouped.K.at(0, h / group, j, e)];
                    copied.V.stored[copied.V.at(0, h, j, e)] = grouped.V.stored[grouped.V.at(0, h / group, j, e)];
                }
        CHECK(grouped.run(device).first == copied.run(device).first);
    }
}

TEST_CASE("attention: wgmma with blocks of all sizes, which take one tile of queries after the other") {
    const auto check = [](std::uint32_t d, const Extra& extra, std::initializer_list<std::uint32_t> blocks) {
        const Problem<half> problem({.queries = 330, .keys = 400, .heads = 3, .kv_heads = 1, .batch = 2}, d, extra);
        const auto rows = problem.rows();
        const Devices one = devices_of_seeds(2), three = devices_of_seeds(2, 3);
        for (const std::uint32_t block : blocks)
            for (const Devices* devices : {&one, &three})
                for (const Device& device : devices->hopper)
                    problem.compare(device, rows, {.path = AttentionPath::wgmma, .queries_of_block = block});
    };
    check(64, {.options = {.causal = true}, .log_sum = true}, {64, 128, 192});
    check(64, {.options = {.before = 40, .behind = 150}}, {192});
    check(128, {.options = {.causal = true}}, {64, 128});
}

/// On a GPU, the other shapes have at most one tile of queries for each block.
TEST_CASE("attention: several tiles of queries for each block that the device runs at once") {
    const Device device = test::open_device({.target = "sm_90a", .threads = 2, .schedule = "1"});
    const std::uint32_t heads = device.properties().multiprocessors;
    const Shape shape{.queries = 130, .keys = 200, .heads = heads, .kv_heads = heads};
    for (const bool causal : {false, true}) {
        const Problem<bfloat16> problem(shape, 64, {.options = {.causal = causal}});
        problem.compare(device, problem.rows(), {.path = AttentionPath::wgmma, .queries_of_block = 64});
    }
}

TEST_CASE("attention: by which products") {
    const auto entry = [](const Shape& shape, const char* target, const AttentionOptions& how,
                          std::uint32_t biases = 0) {
        std::vector<emulator::LaunchTraffic> traffic;
        const Device device = Device::open({.device = "emulator", .target = target, .traffic = &traffic});
        Problem<half>(shape, 64, {.bias_batch = biases, .bias_heads = biases}).run(device, how);
        return traffic.at(0).entry;
    };
    const std::string by_warps = "flash_attention_f16_d64", by_warpgroups = by_warps + "_wgmma";
    const Shape large{.queries = 65, .keys = 9};
    CHECK(entry(large, "sm_90a", {}) == by_warpgroups);
    CHECK(entry(large, "sm_90", {}) == by_warps);
    CHECK(entry(large, "sm_90a", {.path = AttentionPath::mma_sync}) == by_warps);
    CHECK(entry({.queries = 64, .keys = 9}, "sm_90a", {}) == by_warps);
    CHECK(entry({.queries = 64, .keys = 9}, "sm_90a", {.path = AttentionPath::wgmma}) == by_warpgroups);
    CHECK(entry({.queries = 65, .keys = 9, .gap = 4}, "sm_90a", {}) == by_warps);
    CHECK(entry(large, "sm_90a", {.queries_of_block = 192}) == by_warpgroups);
    CHECK(entry(large, "sm_90a", {}, 1) == by_warpgroups + "_bias");
}

TEST_CASE("attention: tiles of keys that no query of a block sees are not read") {
    const auto path = GENERATE(AttentionPath::mma_sync, AttentionPath::wgmma);
    Problem<half> problem({.queries = 64, .keys = 512}, 64, {.options = {.causal = true, .before = 10}});
    const auto rows = problem.rows();
    for (auto* of : {&problem.K, &problem.V})
        std::fill_n(of->stored.begin(), 384 * 64, half(NAN));  // the first query sees keys from 438 on
    problem.compare(test::open_device({.target = "sm_90a"}), rows, {.path = path});
}

TEST_CASE("attention: infinities and NaNs") {
    const auto path = GENERATE(AttentionPath::mma_sync, AttentionPath::wgmma);
    const Device device = test::open_device({.target = "sm_90a"});
    Problem<half> problem({.queries = 4, .keys = 3}, 64);
    const auto set = [&](auto& rows, std::uint32_t i, float v) {
        for (std::uint32_t e = 0; e < 64; ++e) rows.stored[rows.at(0, 0, i, e)] = half(v);
    };
    set(problem.Q, 0, NAN), set(problem.Q, 1, INFINITY), set(problem.Q, 2, 1);
    for (std::uint32_t j = 0; j < 3; ++j) set(problem.K, j, 1), set(problem.V, j, j == 1 ? INFINITY : 1);
    const auto got = problem.run(device, {.path = path}).first;
    CHECK(std::isnan(float(got[0])));    // scores of NaN
    CHECK(std::isnan(float(got[64])));   // infinite scores: inf - inf
    CHECK(float(got[128]) == INFINITY);  // an infinite element of V
}

TEST_CASE("attention: a NaN or an infinity in V reaches the blocks of queries that read its tile, and no others") {
    const Device device = test::open_device({.target = "sm_90a"});
    const auto check = [&]<class T>(T, std::uint32_t d, AttentionPath path, std::uint32_t of_block,
                                    std::uint32_t of_tile, const AttentionOptions& options) {
        const Shape shape{.queries = 200, .keys = 300};
        for (const std::uint32_t key : {0u, 127u, 128u, 299u})
            for (const float poison : {NAN, -INFINITY}) {
                INFO("d " << d << ", path " << int(path) << ", blocks of " << of_block << ", key " << key);
                Problem<T> problem(shape, d, {.options = options});
                std::fill_n(problem.V.stored.begin() + problem.V.at(0, 0, key, 0), d, T(poison));
                std::fill_n(problem.K.stored.begin() + problem.K.at(0, 0, key, 0), d, T(NAN));
                const auto got = problem.run(device, {.path = path, .queries_of_block = of_block}).first;
                for (std::uint32_t i = 0; i < shape.queries; ++i) {
                    const std::uint32_t first = i / of_block * of_block,
                                        last = std::min(first + of_block, shape.queries);
                    std::uint32_t from = shape.keys, to = 0;  // what the block sees
                    for (std::uint32_t j = 0; j < shape.keys; ++j)
                        for (std::uint32_t query = first; query < last; ++query)
                            if (problem.sees(query, j)) from = std::min(from, j), to = std::max(to, j + 1);
                    const bool reads = from / of_tile <= key / of_tile && key < (to + of_tile - 1) / of_tile * of_tile;
                    CHECK(std::isnan(float(got[problem.O.at(0, 0, i, 0)])) == reads);
                }
            }
    };
    const AttentionOptions causal{.causal = true}, window{.before = 20, .behind = 5};
    for (const AttentionOptions& options : {causal, window}) {
        check(half{}, 64, AttentionPath::mma_sync, 64, 64, options);
        check(half{}, 64, AttentionPath::mma_sync, 128, 64, options);
        check(half{}, 64, AttentionPath::wgmma, 192, 128, options);
        check(half{}, 256, AttentionPath::wgmma, 64, 64, options);
        check(float{}, 256, AttentionPath::mma_sync, 64, 16, options);
    }
}

TEST_CASE("attention: no elements, no launch") {
    const Device device = test::open_device();
    Problem<half>({.queries = 0, .keys = 5}, 64).check(devices_of_seeds(1));
    Problem<half>({.queries = 3, .keys = 5, .heads = 0, .kv_heads = 1}, 64).check(devices_of_seeds(1));
    Problem<half>({.queries = 3, .keys = 5, .batch = 0}, 64).check(devices_of_seeds(1));
}

TEST_CASE("attention: calls that do not fit together") {
    const Device device = test::open_device();
    auto x = device.buffer<half>(4096, "x"), y = device.buffer<half>(4096, "y");
    auto other = device.buffer<bfloat16>(4096, "other");
    auto sums = device.buffer<float>(64, "sums");
    auto to = device.buffer<float>(64, "to");
    const auto words = device.buffer<std::uint32_t>(64, "words");
    const auto message = [](const Device& on, const TensorView& Q, const TensorView& K, const TensorView& V,
                            const MutableTensorView& O, const AttentionOptions& options) {
        try {
            flash_attention(on, Q, K, V, O, options);
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    const auto run = [&](const TensorView& Q, const TensorView& K, const TensorView& V, const MutableTensorView& O,
                         const AttentionOptions& options = {}) { return message(device, Q, K, V, O, options); };
    const auto q = x.view(2, 4, 64), k = x.view(1, 5, 64);
    const auto o = y.view(2, 4, 64);
    CHECK_THAT(run(words.view(1, 64), k, k, o), Contains("flash_attention: Q has elements of u32"));
    CHECK_THAT(run(q, other.view(1, 5, 64), k, o), Contains("Q has elements of f16, K of bf16"));
    CHECK_THAT(run(q, k, k, other.view(2, 4, 64)), Contains("Q has elements of f16, O of bf16"));
    CHECK_THAT(run(q, k, k, x.view(2, 4, 64)), Contains("are the same memory"));
    CHECK_THAT(run(x, k, k, o), Contains("Q has 1 dimension") && Contains("sequences of heads of rows"));
    CHECK_THAT(run(q, k, k, y.view(1, 1, 2, 4, 64)), Contains("O has 5 dimensions"));
    CHECK_THAT(run(q, TensorView(k).permuted({0, 2, 1}), k, o), Contains("the elements of a row of K are 64 apart"));
    CHECK_THAT(run(x.view(2, 4, 72), k, k, o), Contains("rows of Q have 72 elements"));
    CHECK_THAT(run(q, x.view(1, 5, 80), k, o), Contains("K is 1 x 1 x 5 x 80, not 1 x 1 x 5 x 64"));
    CHECK_THAT(run(q, x.view(2, 1, 5, 64), k, o), Contains("K is 2 x 1 x 5 x 64, not 1 x 1 x 5 x 64"));
    CHECK_THAT(run(q, k, x.view(1, 6, 64), o), Contains("V is 1 x 1 x 6 x 64, not 1 x 1 x 5 x 64"));
    CHECK_THAT(run(q, k, k, y.view(2, 5, 64)), Contains("O is 1 x 2 x 5 x 64, not 1 x 2 x 4 x 64"));
    CHECK_THAT(run(q, x.view(3, 5, 64), x.view(3, 5, 64), o), Contains("Q has 2 heads, K and V have 3"));
    CHECK_THAT(run(q, k, k, o, {.bias = other.view(4, 5)}), Contains("Q has elements of f16, the bias of bf16"));
    CHECK_THAT(run(q, k, k, o, {.bias = x.view(4, 6)}), Contains("the bias is 1 x 1 x 4 x 6, not 1 x 1 x 4 x 5"));
    CHECK_THAT(run(q, k, k, o, {.log_sum = x.view(2, 4)}), Contains("log_sum has elements of f16"));
    CHECK_THAT(run(q, k, k, o, {.log_sum = sums.view(2, 5)}), Contains("log_sum is 1 x 1 x 2 x 5, not 1 x 1 x 2 x 4"));
    CHECK_THAT(run(q, k, k, o, {.scale = -1.0f}), Contains("a scale of -1"));
    CHECK_THAT(run(q, k, k, o, {.scale = NAN}), Contains("a scale of nan"));
    CHECK_THAT(run(q, k, k, o, {.soft_cap = -1}), Contains("a soft cap of -1"));
    CHECK_THAT(run(q, k, k, o, {.causal = true, .behind = 2}), Contains("causal, and a window to 2 keys behind"));
    CHECK_THAT(run(q, k, k, o, {.queries_of_block = 32}), Contains("32 queries of a block"));
    const AttentionPath wgmma = AttentionPath::wgmma;
    CHECK_THAT(message(test::open_device({.target = "sm_80"}), q, k, k, o, {.path = wgmma}),
               Contains("wgmma: the device is opened for sm_80, not sm_90a"));
    const Device hopper = test::open_device({.target = "sm_90a"});
    const auto on_hopper = [&](const TensorView& Q, const TensorView& K, AttentionOptions options = {}) {
        options.path = wgmma;
        return message(hopper, Q, K, K, o, options);
    };
    CHECK_THAT(on_hopper(x.slice(1, 512).view(2, 4, 64), k), Contains("do not begin at multiples of 16 bytes"));
    CHECK_THAT(on_hopper(q, x.view(1, 5, 64).pitched(330, 66)), Contains("do not begin at multiples of 16 bytes"));
    CHECK_THAT(message(hopper, sums.view(1, 64), sums.view(1, 64), sums.view(1, 64), to.view(1, 64), {.path = wgmma}),
               Contains("wgmma: elements are f32"));
    CHECK_THAT(run(sums.view(1, 64), sums.view(1, 64), sums.view(1, 64), to.view(1, 64),
                   {.bias = sums.view(1, 1), .queries_of_block = 128}),
               Contains("128 queries of a block"));
    CHECK_THAT(on_hopper(q, k, {.queries_of_block = 256}), Contains("wgmma: there are no blocks of 256 queries"));
    CHECK_THAT(on_hopper(q, k, {.queries_of_block = 96}), Contains("wgmma: there are no blocks of 96 queries"));
    TensorView far = TensorView(k).of_rank(4);
    far.extents[1] = 2, far.strides[1] = std::uint64_t{1} << 32;
    CHECK_THAT(run(q, far, far, o), Contains("a pitch of 4294967296 elements in K"));
    auto freed = std::optional(device.buffer<half>(4096, "freed"));
    const auto view = freed->view(2, 4, 64);
    freed.reset();
    CHECK_THAT(run(view, k, k, o), Contains("has been freed"));
}
