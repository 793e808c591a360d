// SPDX-License-Identifier: Apache-2.0
// Kernels as Triton compiles them for sm_80 and sm_90a, on the emulator with several orders of warps and arrivals,
// against results that the host computes in double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <regex>

#include "codegen/support/half.hpp"
#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/foreign/reprint.hpp"
#include "tests/foreign/triton.hpp"
#include "tests/foreign/values.hpp"

using namespace ikat;
using emulator::MapType;
using tests::made;
using tests::TritonKernel;
using tests::TritonRun;

namespace {

/// Runs the body for each target and seed of the kernels with a prefix in their names.
void each(const std::string& prefix, const std::function<void(const TritonKernel&, TritonRun&)>& body) {
    int found = 0;
    for (const TritonKernel& kernel : tests::triton_kernels()) {
        if (!kernel.name.starts_with(prefix)) continue;
        ++found;
        for (const std::uint32_t seed : {0u, 1u, 2u, 3u, 4u, 5u}) {
            INFO(kernel.name << " for " << kernel.target << ", seed " << seed);
            TritonRun run(kernel, seed);
            try {
                body(kernel, run);
            } catch (const Error& error) {
                FAIL_CHECK(error.what());
                break;
            }
        }
    }
    CHECK(found > 0);
}

std::uint32_t blocks(int length, std::uint32_t tile) { return (std::uint32_t(length) + tile - 1) / tile; }

/// A small integer that depends on the place.
int small(int i, int seed) { return (i * 37 + seed * 11 + i / 7 + i / 89) % 9 - 4; }

/// A buffer of the values, rounded to T.
template <class T>
std::uint64_t buffer(TritonRun& run, const char* name, const std::vector<double>& values) {
    std::vector<T> rounded;
    for (const double value : values) rounded.push_back(T(float(value)));
    return run.machine.buffer(name, rounded);
}

std::uint64_t buffer_of(TritonRun& run, const std::string& type, const char* name, const std::vector<double>& values) {
    if (type.starts_with("f16")) return buffer<half>(run, name, values);
    if (type.starts_with("bf16")) return buffer<bfloat16>(run, name, values);
    if (type.starts_with("s8")) return buffer<std::int8_t>(run, name, values);
    if (type.starts_with("e5")) return buffer<e5m2>(run, name, values);
    if (type.starts_with("e4")) return buffer<e4m3>(run, name, values);
    return buffer<float>(run, name, values);
}

struct Near {
    double value, within;
};

/// The first place that is not as near as it must be, or "".
std::string far(const std::vector<float>& result, const std::vector<Near>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (!(std::abs(double(result[i]) - expected[i].value) <= expected[i].within))
            return "[" + std::to_string(i) + "] = " + std::to_string(result[i]) + ", not " +
                   std::to_string(expected[i].value);
    return "";
}

/// a b with exact sums; b by columns if `columns`.
std::vector<Near> product(const std::vector<double>& a, const std::vector<double>& b, int m, int n, int k, int a_pitch,
                          int b_pitch, bool columns, double precision) {
    return made<Near>(std::size_t(m * n), [&](int i) {
        double sum = 0, magnitude = 0;
        for (int l = 0; l < k; ++l) {
            const int column = i % n;
            const double each = a[std::size_t(i / n * a_pitch + l)] *
                                b[std::size_t(columns ? column * b_pitch + l : l * b_pitch + column)];
            sum += each, magnitude += std::abs(each);
        }
        return Near{sum, precision * magnitude};
    });
}

/// Runs a product; what is wrong, or "".
std::string product_by(const TritonKernel& kernel, TritonRun& run) {
    const bool odd = kernel.name == "product_f16_odd", columns = kernel["T"];
    const int m = 150, n = odd ? 75 : 144, k = odd ? 93 : 176, a_pitch = 192, b_pitch = columns ? 208 : 160;
    const std::string type = kernel.name.substr(8);
    // Products and sums of small integers are exact. Those with all bits of a float have errors: of the parts
    // that three products of tf32 leave out, and of a sum of k.
    const bool fractions = type == "f32" || type == "tf32x3";
    const auto value = [&](int i, int seed) {
        return fractions ? float((i * 7919 + seed) % 20011 - 10005) / 7 : float(small(i, seed));
    };
    const auto filled = [&](int pitch, int used, int rows, int seed) {
        return made<double>(std::size_t(rows * pitch), [&](int i) { return i % pitch < used ? value(i, seed) : 99; });
    };
    const auto a = filled(a_pitch, k, m, 1);
    const auto b = columns ? filled(b_pitch, k, n, 2) : filled(b_pitch, n, k, 2);
    const auto at_a = buffer_of(run, type, "a", a), at_b = buffer_of(run, type, "b", b);
    const auto c = run.machine.empty<float>("c", std::size_t(m * n));
    run({blocks(m, kernel["M"]), blocks(n, kernel["N"]), 1}, at_a, at_b, c, m, n, k, a_pitch, b_pitch);
    const auto expected =
        product(a, b, m, n, k, a_pitch, b_pitch, columns, fractions ? (k + 16) * std::ldexp(1., -23) : 0);
    std::vector<float> result = run.machine.get<float>(c, std::size_t(m * n));
    if (type.starts_with("s8"))
        for (float& each : result) each = float(std::bit_cast<std::int32_t>(each));
    return far(result, expected);
}

/// The same of boxes.
std::string boxes_by(const TritonKernel& kernel, TritonRun& run) {
    const bool persistent = kernel.name.starts_with("persistent"), makes = kernel.name == "made_boxes";
    const int m = 200, n = makes ? 144 : 152, k = makes ? 272 : 264;
    const auto a = made<double>(std::size_t(m * k), [](int i) { return small(i, 1); });
    const auto b = made<double>(std::size_t(n * k), [](int i) { return small(i, 2); });
    const auto at_a = buffer<half>(run, "a", a), at_b = buffer<half>(run, "b", b);
    const auto c = run.machine.empty<float>("c", std::size_t(m * n));
    if (makes) {
        run({blocks(m, kernel["M"]), blocks(n, kernel["N"]), 1}, at_a, at_b, c, m, n, k);
        return far(run.machine.get<float>(c, std::size_t(m * n)), product(a, b, m, n, k, k, k, true, 0));
    }
    const auto map_a = run.descriptor(0, MapType::F16, at_a, m, k), map_b = run.descriptor(1, MapType::F16, at_b, n, k);
    const auto map_c = run.descriptor(2, MapType::F32, c, m, n);
    if (persistent)
        run({2, 1, 1}, map_a, map_b, map_c, m, n, k, 2);
    else
        run({blocks(m, kernel["M"]), blocks(n, kernel["N"]), 1}, map_a, map_b, map_c, m, n, k);
    return far(run.machine.get<float>(c, std::size_t(m * n)), product(a, b, m, n, k, k, k, true, 0));
}

/// What the first of 8 seeds finds, by the checks for kernels of the language, in one in whose text all `what` are
/// replaced.
std::string found(const std::string& name, const std::string& target, const std::string& what, const std::string& by,
                  std::string (*run_by)(const TritonKernel&, TritonRun&)) {
    for (const TritonKernel& each : tests::triton_kernels()) {
        if (each.name != name || each.target != target) continue;
        TritonKernel kernel = each;
        kernel.ptx = std::regex_replace(kernel.ptx, std::regex(what), by);
        REQUIRE(kernel.ptx != each.ptx);
        for (std::uint32_t seed = 0; seed < 8; ++seed) {
            TritonRun run(kernel, seed);
            run.machine.options.checks = emulator::Checks::strict();
            run.machine.options.checks.set(emulator::Check::BarrierFences, emulator::Action::Off);  // Triton has none
            try {
                if (const std::string wrong = run_by(kernel, run); !wrong.empty()) return wrong;
            } catch (const Error& error) { return error.what(); }
        }
        return "nothing";
    }
    return "no such kernel";
}

}  // namespace

TEST_CASE("products of matrices by Triton") {
    each("product_", [](const TritonKernel& kernel, TritonRun& run) { CHECK(product_by(kernel, run) == ""); });
}

TEST_CASE("products of boxes by Triton") {
    const auto check = [](const TritonKernel& kernel, TritonRun& run) { CHECK(boxes_by(kernel, run) == ""); };
    each("boxes", check);
    each("persistent", check);
    each("made_boxes", check);
}

TEST_CASE("boxes added to memory by Triton") {
    each("box_sums", [](const TritonKernel& kernel, TritonRun& run) {
        const int rows = 70, columns = 52;
        const auto x =
            run.machine.buffer("x", made<float>(std::size_t(rows * columns), [](int i) { return float(small(i, 1)); }));
        const auto y =
            run.machine.buffer("y", made<float>(std::size_t(rows * columns), [](int i) { return float(i); }));
        run({blocks(rows, kernel["M"]), blocks(columns, kernel["N"]), 1},
            run.descriptor(0, MapType::F32, x, rows, columns), run.descriptor(1, MapType::F32, y, rows, columns));
        CHECK(run.machine.get<float>(y, std::size_t(rows * columns)) ==
              made<float>(std::size_t(rows * columns), [](int i) { return float(i + small(i, 1)); }));
    });
}

TEST_CASE("attention by Triton") {
    each("causal", [](const TritonKernel& kernel, TritonRun& run) {
        const bool by_boxes = kernel.name == "causal_boxes";
        const int d = int(kernel["D"]), length = 200, heads = by_boxes ? 1 : 2, count = heads * length * d;
        const float scale = 0.0625f;
        const auto filled = [&](int seed) {
            return made<double>(std::size_t(count), [&](int i) { return small(i, seed) / 2.; });
        };
        const auto q = filled(1), k = filled(2), v = filled(3);
        const auto at_q = buffer<half>(run, "q", q), at_k = buffer<half>(run, "k", k), at_v = buffer<half>(run, "v", v);
        const auto o = run.machine.empty<float>("o", std::size_t(count));
        const std::uint32_t tiles = blocks(length, kernel["M"]);
        const auto map = [&](int number, MapType type, std::uint64_t at) {
            return run.descriptor(number, type, at, length, d);
        };
        if (by_boxes)
            run({tiles, 1, 1}, map(0, MapType::F16, at_q), map(1, MapType::F16, at_k), map(2, MapType::F16, at_v),
                map(3, MapType::F32, o), length, scale);
        else
            run({tiles, std::uint32_t(heads), 1}, at_q, at_k, at_v, o, length, scale);
        // Scores are exact. A weight is rounded to f16, also to one below its least normal number.
        static std::map<int, std::vector<Near>> known;
        std::vector<Near>& expected = known[heads];
        for (int row = 0; expected.size() < std::size_t(count) && row < heads * length; ++row) {
            const int first = row / length * length;
            std::vector<double> weights;
            double norm = 0, top = -1e30;
            for (int other = first; other <= row; ++other) {
                double score = 0;
                for (int l = 0; l < d; ++l) score += q[std::size_t(row * d + l)] * k[std::size_t(other * d + l)];
                weights.push_back(scale * score);
                top = std::max(top, scale * score);
            }
            for (double& weight : weights) norm += weight = std::exp2(weight - top);
            for (int l = 0; l < d; ++l) {
                double sum = 0, magnitude = 0;
                for (int other = first; other <= row; ++other) {
                    const double each = weights[std::size_t(other - first)] / norm * v[std::size_t(other * d + l)];
                    sum += each, magnitude += std::abs(each);
                }
                expected.push_back({sum, std::ldexp(magnitude, -10) + std::ldexp(2. * length, -25) + 1e-6});
            }
        }
        CHECK(far(run.machine.get<float>(o, std::size_t(count)), expected) == "");
    });
}

TEST_CASE("softmax and layer norm by Triton") {
    each("row_softmax", [](const TritonKernel& kernel, TritonRun& run) {
        const int rows = 7, columns = 500;
        const auto value = [](int i) { return float(i * 37 % 1024) / 128 - 4; };
        const auto x = run.machine.buffer("x", made<float>(rows * columns, value));
        const auto y = run.machine.empty<float>("y", rows * columns);
        run({blocks(rows, kernel["R"]), 1, 1}, x, y, rows, columns);
        CHECK(far(run.machine.get<float>(y, rows * columns), made<Near>(rows * columns, [&](int i) {
                      double sum = 0;
                      for (int j = 0; j < columns; ++j) sum += std::exp(double(value(i / columns * columns + j)));
                      const double expected = std::exp(double(value(i))) / sum;
                      return Near{expected, 1e-5 * expected};
                  })) == "");
    });
    each("norm", [](const TritonKernel&, TritonRun& run) {
        const int rows = 3, columns = 1000;
        const auto x = made<double>(rows * columns, [](int i) { return small(i, 1) + i / columns; });
        const auto scale = made<float>(columns, [](int i) { return float(i % 5); });
        const auto shift = made<float>(columns, [](int i) { return float(i % 3 - 1); });
        const auto at_x = buffer<bfloat16>(run, "x", x);
        const auto y = run.machine.empty<float>("y", rows * columns);
        run({rows, 1, 1}, at_x, y, run.machine.buffer("scale", scale), run.machine.buffer("shift", shift), columns,
            0.001f);
        std::vector<Near> expected;
        for (int row = 0; row < rows; ++row) {
            double sum = 0, squares = 0;
            for (int i = 0; i < columns; ++i) sum += x[std::size_t(row * columns + i)];
            const double mean = sum / columns;
            for (int i = 0; i < columns; ++i) squares += std::pow(x[std::size_t(row * columns + i)] - mean, 2);
            const double factor = 1 / std::sqrt(squares / columns + 0.001);
            for (int i = 0; i < columns; ++i)
                expected.push_back(
                    {(x[std::size_t(row * columns + i)] - mean) * factor * double(scale[std::size_t(i)]) +
                         double(shift[std::size_t(i)]),
                     1e-5});
        }
        CHECK(far(run.machine.get<float>(y, rows * columns), expected) == "");
    });
}

TEST_CASE("sums of several blocks by Triton") {
    const int n = 3000;
    const auto value = [](int i) { return i * 7919 % 2003 - 1000; };
    const auto values = made<int>(n, value);
    int total = 0;
    for (const int each : values) total += each;
    each("totals", [&](const TritonKernel& kernel, TritonRun& run) {
        const auto sum = run.machine.buffer("sum", std::vector<int>(9));
        const auto most = run.machine.buffer("most", std::vector<int>{-5000}),
                   least = run.machine.buffer("least", std::vector<int>{5000});
        run({blocks(n, kernel["C"]), 1, 1}, run.machine.buffer("x", values), sum, most, least, n);
        std::vector<int> expected(9);
        for (int i = 0; i < n; ++i) expected[std::size_t(1 + i % 8)] += value(i);
        expected[0] = total;
        CHECK(run.machine.get<int>(sum, 9) == expected);
        CHECK(run.machine.get<int>(most, 1)[0] == *std::max_element(values.begin(), values.end()));
        CHECK(run.machine.get<int>(least, 1)[0] == *std::min_element(values.begin(), values.end()));
    });
    each("last_block", [&](const TritonKernel& kernel, TritonRun& run) {
        const std::uint32_t count = blocks(n, kernel["C"]);
        const auto parts = run.machine.empty<int>("parts", 16), sum = run.machine.empty<int>("sum", 1);
        const auto arrived = run.machine.buffer("count", std::vector<int>(1));
        run({count, 1, 1}, run.machine.buffer("x", values), parts, arrived, sum, n, std::int32_t(count));
        CHECK(run.machine.get<int>(sum, 1)[0] == total);
    });
    each("locked", [&](const TritonKernel&, TritonRun& run) {
        const auto lock = run.machine.buffer("lock", std::vector<int>(1)),
                   counter = run.machine.buffer("value", std::vector<int>(1));
        run({6, 1, 1}, lock, counter, 3);
        CHECK(run.machine.get<int>(counter, 1)[0] == 18);
    });
    each("bins", [&](const TritonKernel& kernel, TritonRun& run) {
        const int bins = int(kernel["B"]);
        const auto y = run.machine.buffer("y", std::vector<int>(std::size_t(bins)));
        run({blocks(n, kernel["C"]), 1, 1}, run.machine.buffer("x", made<int>(n, [&](int i) { return i * i % bins; })),
            y, n);
        std::vector<int> expected(static_cast<std::size_t>(bins));
        for (int i = 0; i < n; ++i) ++expected[std::size_t(i * i % bins)];
        CHECK(run.machine.get<int>(y, std::size_t(bins)) == expected);
    });
}

TEST_CASE("recurrences by Triton") {
    each("recurrence", [](const TritonKernel& kernel, TritonRun& run) {
        const int rows = int(kernel["R"]), columns = int(kernel["C"]), count = rows * columns;
        // The products wrap around.
        const auto slopes = made<std::uint32_t>(std::size_t(count), [](int i) { return std::uint32_t(i * 37 % 11); });
        const auto shifts = made<std::uint32_t>(std::size_t(count), [](int i) { return std::uint32_t(i % 101); });
        const auto y = run.machine.empty<std::uint32_t>("y", std::size_t(count));
        run({1, 1, 1}, run.machine.buffer("slopes", slopes), run.machine.buffer("shifts", shifts), y, rows);
        std::vector<std::uint32_t> expected(static_cast<std::size_t>(count));
        for (int row = 0; row < rows; ++row) {
            std::uint32_t last = 0;
            for (int i = 0; i < columns; ++i) {
                const auto at = std::size_t(row * columns + (kernel["BACK"] ? columns - 1 - i : i));
                expected[at] = last = slopes[at] * last + shifts[at];
            }
        }
        CHECK(run.machine.get<std::uint32_t>(y, std::size_t(count)) == expected);
    });
}

TEST_CASE("sorted and moved by Triton") {
    each("sorted", [](const TritonKernel& kernel, TritonRun& run) {
        const int rows = int(kernel["R"]), columns = int(kernel["C"]), count = rows * columns;
        const bool halves = kernel.name == "sorted_halves";
        auto values = made<double>(std::size_t(count), [](int i) { return i * 7919 % 2003 - 1000; });
        const auto x = halves ? buffer<half>(run, "x", values) : buffer<int>(run, "x", values);
        const auto y = run.machine.empty<int>("y", std::size_t(count));
        run({1, 1, 1}, x, y);
        for (int row = 0; row < rows; ++row) {
            const auto first = values.begin() + row * columns;
            if (kernel["DOWN"])
                std::sort(first, first + columns, std::greater<>());
            else
                std::sort(first, first + columns);
        }
        std::vector<double> result;
        if (halves)
            for (const half each : run.machine.get<half>(y, std::size_t(count))) result.push_back(double(float(each)));
        else
            for (const int each : run.machine.get<int>(y, std::size_t(count))) result.push_back(each);
        CHECK(result == values);
    });
    each("moved", [](const TritonKernel& kernel, TritonRun& run) {
        const int rows = int(kernel["R"]), columns = int(kernel["C"]), count = rows * columns;
        const auto x = made<float>(std::size_t(count), [](int i) { return float(i); });
        const auto index = [&](int i) { return (i * 37 + i / 5) % rows; };
        const auto y = run.machine.empty<float>("y", std::size_t(count)),
                   z = run.machine.empty<float>("z", std::size_t(count));
        run({1, 1, 1}, run.machine.buffer("x", x), run.machine.buffer("index", made<int>(std::size_t(count), index)), y,
            z);
        CHECK(run.machine.get<float>(y, std::size_t(count)) ==
              made<float>(std::size_t(count), [&](int i) { return float(index(i) * columns + i % columns); }));
        CHECK(run.machine.get<float>(z, std::size_t(count)) ==
              made<float>(std::size_t(count), [&](int i) { return float(i % rows * columns + i / rows); }));
    });
}

TEST_CASE("what is taken out of Triton's kernels is missed") {
    CHECK(found("product_f16", "sm_80", "cp\\.async\\.wait_group[^;]*;", "", product_by) != "nothing");
    CHECK(found("product_f16", "sm_80", "bar\\.sync[^;]*;", "", product_by) != "nothing");
    CHECK(found("product_f16", "sm_90a", "wgmma\\.wait_group[^;]*;", "", product_by) != "nothing");
    CHECK_THAT(found("product_f16", "sm_90a", "fence\\.proxy\\.async[^;]*;", "", product_by),
               tests::contains("without fence.proxy.async"));
    CHECK_THAT(found("boxes", "sm_90a", "fence\\.proxy\\.async[^;]*;", "", boxes_by),
               tests::contains("without fence.proxy.async"));
    CHECK_THAT(found("made_boxes", "sm_90a", "fence\\.proxy\\.tensormap[^;]*;", "fence.acq_rel.gpu;", boxes_by),
               tests::contains("without fence.proxy.tensormap::generic.acquire"));
    // Shared memory as Triton declares it: where the launch places it, a pattern of wgmma need not begin.
    CHECK_THAT(
        found("product_f16", "sm_90a", "\\.align 1024 \\.b8 global_smem", ".align 16 .b8 global_smem", product_by),
        tests::contains("a swizzled tile begins at a multiple of 128 bytes"));
}

TEST_CASE("the PTX of these kernels, printed again") {
    for (const TritonKernel& kernel : tests::triton_kernels()) {
        INFO(kernel.name << " for " << kernel.target);
        tests::check_machine_code(kernel.ptx, kernel.target);
    }
}
