// SPDX-License-Identifier: Apache-2.0
// The gradients of functions of rows: by central differences, of views, in every order of the warps, of special values.
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "stdlib/backward/column_sums.hpp"
#include "stdlib/backward/norm_backward.hpp"
#include "stdlib/backward/softmax_backward.hpp"
#include "stdlib/reference/reference.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {
namespace backward {

using Numbers = std::vector<double>;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

/// What a function gives: dx, then sums of columns.
struct Results {
    std::vector<float> dx, dgamma, dbeta;

    bool operator==(const Results& other) const {
        const auto bits = [](const std::vector<float>& x) {
            std::vector<std::uint32_t> out;
            for (const float v : x) out.push_back(std::bit_cast<std::uint32_t>(v));
            return out;
        };
        return bits(dx) == bits(other.dx) && bits(dgamma) == bits(other.dgamma) && bits(dbeta) == bits(other.dbeta);
    }
};

enum class Function { softmax, log_softmax, rmsnorm, layernorm, column_sums };
constexpr Function functions[] = {Function::softmax, Function::log_softmax, Function::rmsnorm, Function::layernorm,
                                  Function::column_sums};
constexpr float epsilon_of_norm = 1e-3f;

/// Calls a function; x is y for the first two.
template <class T>
Results run(const runtime::Device& device, Function function, const TensorView& x, const TensorView& dy,
            const runtime::Buffer<T>& gamma, const Placed<T>& dx, const stdlib::WorkspaceSlice& workspace = {}) {
    const std::size_t columns = gamma.size();
    auto dgamma = device.buffer<float>(columns, "dgamma"), dbeta = device.buffer<float>(columns, "dbeta");
    switch (function) {
        case Function::softmax: stdlib::softmax_backward(device, x, dy, dx); return {dx.elements(), {}, {}};
        case Function::log_softmax: stdlib::log_softmax_backward(device, x, dy, dx); return {dx.elements(), {}, {}};
        case Function::rmsnorm:
            stdlib::rmsnorm_backward(device, x, dy, gamma, dx, dgamma, epsilon_of_norm, workspace);
            return {dx.elements(), dgamma.download(), {}};
        case Function::layernorm:
            stdlib::layernorm_backward(device, x, dy, gamma, dx, dgamma, dbeta, epsilon_of_norm, workspace);
            return {dx.elements(), dgamma.download(), dbeta.download()};
        case Function::column_sums:
            stdlib::column_sums(device, dy, dbeta, workspace);
            return {{}, {}, dbeta.download()};
    }
    return {};
}

/// The arrays of a call in some place, of numbers that depend on the extents alone.
template <class T>
struct Arrays {
    Placed<T> x, dy, dx;
    runtime::Buffer<T> gamma;

    Arrays(const runtime::Device& device, Place place, const Extents& extents)
        : x(device, place, extents, 1),
          dy(device, place, extents, 2),
          dx(device, place, extents, 3),
          gamma(device.upload(random_elements<T>(extents.back(), 4), "gamma")) {}
    Results run(const runtime::Device& device, Function function) const {
        return backward::run(device, function, x, dy, gamma, dx);
    }
};

void check_close(const std::vector<float>& got, const std::vector<float>& wanted, float bound) {
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        if (!same(got[i], wanted[i], bound)) FAIL_CHECK("element " << i << ": " << got[i] << " and " << wanted[i]);
}

template <class T>
void check_views(const runtime::Device& device, const Extents& extents) {
    const float bound = float(4 * rounding<T>) + 1e-4f;
    for (const Function function : functions) {
        const Results wanted = Arrays<T>(device, Place::packed, extents).run(device, function);
        for (const Place place : places) {
            INFO("function " << int(function) << ", place " << int(place) << ", rank " << extents.size() << ", "
                             << extents.back() << " columns");
            const Arrays<T> arrays(device, place, extents);
            const Results got = arrays.run(device, function);
            check_close(got.dx, wanted.dx, bound);
            check_close(got.dgamma, wanted.dgamma, 1e-4f);
            check_close(got.dbeta, wanted.dbeta, 1e-4f);
            CHECK(arrays.dx.changed_gaps() == 0);
        }
    }
}

/// The derivative of sum of f(x)[i] dy[i] by each element of x.
Numbers differences(const std::function<Numbers(const Numbers&)>& f, const Numbers& x, const Numbers& dy) {
    const auto weighted = [&](const Numbers& at) {
        const Numbers y = f(at);
        return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
    };
    constexpr double step = 1e-5;
    Numbers out;
    for (std::size_t i = 0; i < x.size(); ++i) {
        Numbers above = x, below = x;
        above[i] += step, below[i] -= step;
        out.push_back((weighted(above) - weighted(below)) / (2 * step));
    }
    return out;
}

Numbers softmax_of(const Numbers& x) {
    const double largest = *std::ranges::max_element(x);
    Numbers out;
    for (const double v : x) out.push_back(std::exp(v - largest));
    const double sum = std::accumulate(out.begin(), out.end(), 0.0);
    for (double& v : out) v /= sum;
    return out;
}
Numbers norm_of(const Numbers& x, const Numbers& gamma, const Numbers& beta, bool centred) {
    const auto n = double(x.size());
    const double mean = centred ? std::accumulate(x.begin(), x.end(), 0.0) / n : 0;
    double squares = 0;
    for (const double v : x) squares += (v - mean) * (v - mean);
    Numbers out;
    for (std::size_t i = 0; i < x.size(); ++i)
        out.push_back((x[i] - mean) / std::sqrt(squares / n + double(epsilon_of_norm)) * gamma[i] + beta[i]);
    return out;
}

std::vector<float> as_floats(const Numbers& x) { return {x.begin(), x.end()}; }
Numbers as_doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

/// A step of 1e-5 has errors of 1e-10 times the third derivative, and of 1e-16 / 1e-5 by rounding.
void check_differences(const std::vector<float>& got, const Numbers& wanted) {
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        INFO("element " << i << ": " << got[i] << " and " << wanted[i]);
        CHECK(std::abs(double(got[i]) - wanted[i]) <= 2e-6 * (1 + std::abs(wanted[i])));
    }
}

/// One row of these numbers: dx, dgamma and dbeta.
Results of_row(const runtime::Device& device, Function function, const std::vector<float>& x,
               const std::vector<float>& dy, const std::vector<float>& gamma) {
    const Placed<float> of_x(device, Place::packed, {1, x.size()}, 1), of_dy(device, Place::packed, {1, x.size()}, 1);
    const Placed<float> dx(device, Place::packed, {1, x.size()}, 1);
    const_cast<Placed<float>&>(of_x).set(x), const_cast<Placed<float>&>(of_dy).set(dy);
    return run(device, function, of_x, of_dy, device.upload(gamma, "gamma"), dx);
}

}  // namespace backward
using namespace backward;
}  // namespace

TEST_CASE("backward: gradients are central differences of the functions") {
    const runtime::Device device = open_device();
    for (const std::size_t columns : {1, 3, 8, 40}) {
        INFO(columns << " columns");
        const auto x = random_elements<float>(columns, 1, -2, 2), dy = random_elements<float>(columns, 2);
        const auto gamma = random_elements<float>(columns, 3), zeros = std::vector<float>(columns);
        const Numbers of_x = as_doubles(x), of_dy = as_doubles(dy);
        const Numbers y = softmax_of(of_x);
        check_differences(of_row(device, Function::softmax, as_floats(y), dy, gamma).dx,
                          differences(softmax_of, of_x, of_dy));
        const auto log_softmax_of = [](const Numbers& x) {
            Numbers out = softmax_of(x);
            for (double& v : out) v = std::log(v);
            return out;
        };
        check_differences(of_row(device, Function::log_softmax, as_floats(log_softmax_of(of_x)), dy, gamma).dx,
                          differences(log_softmax_of, of_x, of_dy));
        for (const Function function : {Function::rmsnorm, Function::layernorm}) {
            const bool centred = function == Function::layernorm;
            const Results got = of_row(device, function, x, dy, gamma);
            const auto by_x = [&](const Numbers& x) {
                return norm_of(x, as_doubles(gamma), as_doubles(zeros), centred);
            };
            const auto by_gamma = [&](const Numbers& g) { return norm_of(of_x, g, as_doubles(zeros), centred); };
            const auto by_beta = [&](const Numbers& b) { return norm_of(of_x, as_doubles(gamma), b, centred); };
            check_differences(got.dx, differences(by_x, of_x, of_dy));
            check_differences(got.dgamma, differences(by_gamma, as_doubles(gamma), of_dy));
            if (centred) check_differences(got.dbeta, differences(by_beta, as_doubles(zeros), of_dy));
        }
    }
}

TEMPLATE_TEST_CASE("backward: views of any rank and pitches", "", float, half, bfloat16) {
    const runtime::Device device = open_device();
    // Up to two dimensions of rows are one launch, more are several; rows of a warp, of a block and of more.
    for (const Extents& extents : {Extents{2, 3, 61}, Extents{70, 5}, Extents{3, 16}, Extents{2, 3, 2, 61},
                                   Extents{40, 1, 700}, Extents{2, 4160}, Extents{2, 2, 3, 2, 16}, Extents{97}})
        check_views<TestType>(device, extents);
}

TEST_CASE("backward: arrays without elements") {
    const runtime::Device device = open_device();
    for (const Function function : functions) {
        const Results none = Arrays<float>(device, Place::packed, {0, 5}).run(device, function);
        CHECK(none.dx.empty());
        for (const auto& sums : {none.dgamma, none.dbeta}) CHECK((sums.empty() || sums == std::vector<float>(5)));
        const Results no_columns = Arrays<float>(device, Place::packed, {5, 0}).run(device, function);
        CHECK((no_columns.dx.empty() && no_columns.dgamma.empty() && no_columns.dbeta.empty()));
    }
}

TEST_CASE("backward: the same bits in every order, by any number of threads, without a race") {
    for (const Extents& extents :
         {Extents{70, 40}, Extents{300, 36}, Extents{33, 1000}, Extents{35, 9}, Extents{17, 2052}})
        for (const Function function : functions) {
            INFO("function " << int(function) << ", " << extents[0] << " x " << extents[1]);
            const runtime::Device first = open_device({.threads = 1, .check = "strict,registers"});
            const Results wanted = Arrays<float>(first, Place::packed, extents).run(first, function);
            const runtime::Device others[] = {
                open_device({.threads = 1, .check = "strict,registers,races", .schedules = 4}),
                open_device({.threads = 2, .schedule = "1"}), open_device({.threads = 3, .schedule = "2"}),
                open_device({.threads = 4, .schedule = "7,lanes"})};
            for (const runtime::Device& device : others)
                CHECK(Arrays<float>(device, Place::packed, extents).run(device, function) == wanted);
        }
}

TEST_CASE("backward: rows of special values") {
    const runtime::Device device = open_device();
    constexpr std::size_t n = 40;
    const std::vector<float> dy = random_elements<float>(n, 2), ones(n, 1.0f);
    // All of the probability is one element's: nothing changes it.
    std::vector<float> y(n);
    y[7] = 1;
    CHECK(of_row(device, Function::softmax, y, dy, ones).dx == std::vector<float>(n));
    // log of 0 is -infinity: exp gives 0 again.
    std::vector<float> log_y(n, -infinity);
    log_y[7] = 0;
    const auto dx = of_row(device, Function::log_softmax, log_y, ones, ones).dx;
    CHECK(dx[0] == 1);
    CHECK(dx[7] == 1 - float(n));
    // Equal elements have no variance; of the largest, the squares overflow.
    const float root = 1 / std::sqrt(epsilon_of_norm);
    const float mean = std::accumulate(dy.begin(), dy.end(), 0.0f) / n;
    const Results equal = of_row(device, Function::layernorm, std::vector<float>(n, 3), dy, ones);
    for (std::size_t i = 0; i < n; ++i) CHECK(equal.dx[i] == Approx((dy[i] - mean) * root).margin(1e-4));
    CHECK(equal.dgamma == std::vector<float>(n));
    CHECK(equal.dbeta == dy);
    // The same where rows are not kept, of elements whose squares or whose sum overflow.
    for (const float x : {1e20f, 3e38f}) {
        std::vector<float> more = dy;
        more.push_back(0);
        const Results got =
            of_row(device, Function::layernorm, std::vector<float>(n + 1, x), more, std::vector<float>(n + 1, 1.0f));
        const float of_more = std::accumulate(dy.begin(), dy.end(), 0.0f) / (n + 1);
        for (std::size_t i = 0; i <= n; ++i) CHECK(got.dx[i] == Approx((more[i] - of_more) * root).margin(1e-4));
    }
    std::vector<float> large = random_elements<float>(n, 1);
    for (float& v : large) v *= 3e38f;
    for (const Function function : {Function::rmsnorm, Function::layernorm}) {
        const Results got = of_row(device, function, large, dy, ones);
        for (std::size_t i = 0; i < n; ++i) {
            CHECK(std::abs(got.dx[i]) < 1e-36f);
            CHECK(std::abs(got.dgamma[i]) < 4);
        }
        CHECK(*std::ranges::max_element(got.dgamma) > 0.1f);
    }
    // Subnormal elements are like zeros: epsilon is all that is under the root.
    const Results small = of_row(device, Function::rmsnorm, std::vector<float>(n, 1e-40f), dy, ones);
    for (std::size_t i = 0; i < n; ++i) CHECK(small.dx[i] == Approx(dy[i] * root).epsilon(1e-6));
}

TEST_CASE("backward: norms of gradients that are large before they are normed") {
    const runtime::Device device = open_device();
    for (const std::size_t n : {40, 41})
        for (const bool centred : {false, true}) {
            const float of_x = centred ? 1e15f : 1e3f, of_dy = centred ? 1e25f : 1e36f;
            std::vector<float> x = random_elements<float>(n, 1), dy = random_elements<float>(n, 2);
            for (float& v : x) v *= of_x;
            for (float& v : dy) v *= of_dy;
            const Results got =
                of_row(device, centred ? Function::layernorm : Function::rmsnorm, x, dy, std::vector<float>(n, 1.0f));
            double mean = 0, squares = 0, of_g = 0, of_gn = 0;
            for (const float v : x) mean += centred ? double(v) / double(n) : 0;
            for (const float v : x) squares += (double(v) - mean) * (double(v) - mean) / double(n);
            const double factor = 1 / std::sqrt(squares + double(epsilon_of_norm));
            const auto normed = [&](std::size_t i) { return (double(x[i]) - mean) * factor; };
            for (std::size_t i = 0; i < n; ++i) {
                of_g += centred ? double(dy[i]) / double(n) : 0;
                of_gn += double(dy[i]) * normed(i) / double(n);
            }
            for (std::size_t i = 0; i < n; ++i) {
                const double wanted = (double(dy[i]) - of_g - normed(i) * of_gn) * factor;
                CHECK(std::abs(double(got.dx[i]) - wanted) <= 1e-5 * double(of_dy) * factor);
            }
        }
}

TEST_CASE("backward: a NaN or an infinity stays in its row and in its column") {
    const runtime::Device device = open_device();
    const Extents extents{70, 40};
    for (const Function function : functions)
        for (const float special : {nan, infinity, -infinity}) {
            INFO("function " << int(function) << ", " << special);
            Arrays<float> arrays(device, Place::packed, extents);
            const Results before = arrays.run(device, function);
            std::vector<float> dy = arrays.dy.elements();
            dy[35 * 40 + 3] = special;
            arrays.dy.set(dy);
            const Results after = arrays.run(device, function);
            for (std::size_t i = 0; i < after.dx.size(); ++i)
                if (i / 40 == 35 ? std::isfinite(after.dx[i]) && i % 40 == 3 : after.dx[i] != before.dx[i])
                    FAIL_CHECK("element " << i << " is " << after.dx[i]);
            const auto check_sums = [](const std::vector<float>& now, const std::vector<float>& then) {
                for (std::size_t c = 0; c < now.size(); ++c)
                    CHECK((c == 3 ? !std::isfinite(now[c]) : now[c] == then[c]));
            };
            check_sums(after.dgamma, before.dgamma);
            check_sums(after.dbeta, before.dbeta);
        }
}

TEST_CASE("backward: sums over many rows are exact where every order is") {
    const runtime::Device device = open_device();
    const std::uint32_t rows = 5000, columns = 6;
    std::vector<float> x(rows * columns), wanted(columns);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = float(int(i * 7 % 11) - 4);
        wanted[i % columns] += x[i];
    }
    auto sums = device.buffer<float>(columns, "sums"), dgamma = device.buffer<float>(columns, "dgamma");
    auto dx = device.buffer<float>(rows * columns, "dx");
    const auto dy = device.upload(x), gamma = device.upload(std::vector<float>(columns, 1.0f));
    stdlib::column_sums(device, dy.view(rows, columns), sums);
    CHECK(sums.download() == wanted);
    // Each block has several tiles of rows here.
    stdlib::layernorm_backward(device, dy.view(rows, columns), dy.view(rows, columns), gamma, dx.view(rows, columns),
                               dgamma, sums, epsilon_of_norm);
    CHECK(sums.download() == wanted);
}

TEST_CASE("backward: what both launches move") {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .threads = 2, .traffic = &traffic});
    const auto check = [&](Function function, const Extents& extents, std::uint64_t arrays, std::size_t launches) {
        INFO("function " << int(function) << ", " << extents[0] << " x " << extents[1]);
        const Arrays<half> of(device, Place::packed, extents);
        traffic.clear();
        of.run(device, function);
        CHECK(traffic.size() == launches);
        std::uint64_t moved = 0;
        for (const emulator::LaunchTraffic& launch : traffic)
            for (const emulator::BufferTraffic& buffer : launch.buffers)
                moved += buffer.read.touched + buffer.written.touched;
        CHECK(double(moved) <= 1.05 * double(arrays * extents[0] * extents[1] * sizeof(half)));
    };
    check(Function::softmax, {64, 512}, 3, 1);
    check(Function::log_softmax, {16, 4096}, 3, 1);
    check(Function::rmsnorm, {2048, 64}, 3, 2);
    check(Function::layernorm, {4096, 64}, 3, 3);
    check(Function::column_sums, {1024, 256}, 1, 2);
}

TEST_CASE("backward: mistakes") {
    const runtime::Device device = open_device();
    const auto x = device.upload(std::vector<float>(600 * 8), "x"),
               gamma = device.upload(std::vector<float>(8), "gamma");
    auto dx = device.buffer<float>(600 * 8, "dx"), sums = device.buffer<float>(8, "sums");
    auto halves = device.buffer<half>(600 * 8, "halves");
    auto workspace = device.buffer<std::uint8_t>(32, "workspace");
    const auto a = x.view(600, 8);
    using Catch::Contains;
    using tests::message_of;
    CHECK_THAT(message_of([&] { stdlib::softmax_backward(device, a, x.view(8, 600), dx.view(600, 8)); }),
               Contains("softmax_backward: 'y' is 600 x 8, and 'dy' is 8 x 600"));
    CHECK_THAT(message_of([&] { stdlib::log_softmax_backward(device, a, a, halves.view(600, 8)); }),
               Contains("'dx' has elements of f16, and 'y' of f32"));
    CHECK_THAT(message_of([&] { stdlib::softmax_backward(device, dx.view(600, 8), a, dx.view(600, 8)); }),
               Contains("'y' (read) and 'dx' (written)"));
    CHECK_THAT(message_of([&] { stdlib::rmsnorm_backward(device, a, a, x.slice(0, 7), dx.view(600, 8), sums, 1e-5f); }),
               Contains("rmsnorm_backward: 'gamma' is 7"));
    CHECK_THAT(message_of([&] { stdlib::layernorm_backward(device, a, a, gamma, dx.view(600, 8), sums, sums, 1e-5f); }),
               Contains("'dgamma' (written) and 'dbeta' (written)"));
    CHECK_THAT(message_of([&] { stdlib::column_sums(device, a, halves.slice(0, 8)); }),
               Contains("column_sums: 'sums' has elements of f16"));
    CHECK_THAT(message_of([&] { stdlib::column_sums(device, a, sums, workspace); }), Contains("column_sums"));
    const std::uint64_t bytes = stdlib::norm_backward_workspace(a, a, dx.view(600, 8));
    auto enough = device.buffer<std::uint8_t>(bytes, "workspace");
    auto beta = device.buffer<float>(8, "beta");
    CHECK(message_of([&] {
              stdlib::layernorm_backward(device, a, a, gamma, dx.view(600, 8), sums, beta, 1e-5f, enough);
          }) == "");
    auto for_sums = device.buffer<std::uint8_t>(stdlib::column_sums_workspace(a), "workspace");
    CHECK(message_of([&] { stdlib::column_sums(device, a, sums, for_sums); }) == "");
}

}  // namespace ikat::test
