// SPDX-License-Identifier: Apache-2.0
// The gradients of norms from the statistics of the forward pass, and with another gradient that is added: against the
// gradients without these, of views, in every order of the warps, of special values; what they read.
#include <cmath>
#include <limits>
#include <optional>

#include "stdlib/backward/norm_backward.hpp"
#include "stdlib/norm/norm.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {
namespace norm_options {

constexpr float norm_epsilon = 1e-3f;

struct StepResults {
    std::vector<float> y, statistics, dx, dgamma, dbeta;
};

/// What is asked of a call.
struct Form {
    bool centred = false, saved = false, residual = false;
};
std::vector<Form> forms() {
    std::vector<Form> out;
    for (const bool centred : {false, true})
        for (const bool saved : {false, true})
            for (const bool residual : {false, true}) out.push_back({centred, saved, residual});
    return out;
}

/// The arrays of a training step in some place, of numbers that depend on the extents alone.
template <class T>
struct StepArrays {
    Placed<T> x, dy, residual, y, dx;
    Placed<float> statistics;
    runtime::Buffer<T> gamma, beta;

    static Extents of_statistics(Extents extents) {
        extents.back() = 2;
        return extents;
    }
    StepArrays(const runtime::Device& device, Place place, const Extents& extents, Place of_more)
        : x(device, place, extents, 1),
          dy(device, of_more, extents, 2),
          residual(device, of_more, extents, 3),
          y(device, place, extents, 4),
          dx(device, place, extents, 5),
          statistics(device, of_more, of_statistics(extents), 6),
          gamma(device.upload(random_elements<T>(extents.back(), 7), "gamma")),
          beta(device.upload(random_elements<T>(extents.back(), 8), "beta")) {}

    StepResults run(const runtime::Device& device, const Form& form) const {
        auto dgamma = device.buffer<float>(gamma.size(), "dgamma"), dbeta = device.buffer<float>(gamma.size(), "dbeta");
        const MutableTensorView stored = statistics;
        stdlib::NormBackwardOptions options;
        if (form.saved) options.statistics = stored;
        if (form.residual) options.residual = residual;
        // With statistics the gradients need no epsilon.
        const float epsilon = form.saved ? 100.0f : norm_epsilon;
        if (form.centred) {
            stdlib::layernorm(device, x, gamma, beta, y, norm_epsilon, stored);
            stdlib::layernorm_backward(device, x, dy, gamma, dx, dgamma, dbeta, epsilon, options);
        } else {
            stdlib::rmsnorm(device, x, gamma, y, norm_epsilon, stored);
            stdlib::rmsnorm_backward(device, x, dy, gamma, dx, dgamma, epsilon, options);
        }
        for (const Placed<T>* each : {&x, &dy, &residual, &y, &dx}) CHECK(each->changed_gaps() == 0);
        CHECK(statistics.changed_gaps() == 0);
        return {y.elements(), statistics.elements(), dx.elements(), dgamma.download(),
                form.centred ? dbeta.download() : std::vector<float>{}};
    }
};

void check_near(const std::vector<float>& got, const std::vector<float>& wanted, float bound) {
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        if (!same(got[i], wanted[i], bound)) FAIL_CHECK("element " << i << ": " << got[i] << " and " << wanted[i]);
}

/// All forms give what the plain gradient gives, and the residual.
template <class T>
void check_forms(const runtime::Device& device, const Extents& extents) {
    const float unit = sizeof(T) == 4 ? 0x1p-24f : std::is_same_v<T, half> ? 0x1p-11f : 0x1p-8f;
    const float bound = 8 * unit + 2e-5f;
    const auto plain_of = [&](bool centred) {
        return StepArrays<T>(device, Place::packed, extents, Place::packed).run(device, {centred, false, false});
    };
    const StepResults plain_results[] = {plain_of(false), plain_of(true)};
    static tests::Sample sample(3);
    for (const Form& form : forms()) {
        const StepResults& plain = plain_results[form.centred];
        for (const auto& [place, of_more] :
             {std::pair(Place::packed, Place::packed), std::pair(Place::aligned, Place::odd),
              std::pair(Place::odd, Place::permuted), std::pair(Place::permuted, Place::aligned)}) {
            if (!sample.next()) continue;
            INFO(extents.back() << " columns, rank " << extents.size() << ", place " << int(place) << ", form "
                                << form.centred << form.saved << form.residual);
            const StepArrays<T> arrays(device, place, extents, of_more);
            const StepResults got = arrays.run(device, form);
            std::vector<float> wanted = plain.dx;
            const std::vector<float> more = arrays.residual.elements();
            for (std::size_t i = 0; form.residual && i < wanted.size(); ++i) wanted[i] += more[i];
            check_near(got.y, plain.y, bound);
            check_near(got.statistics, plain.statistics, 2e-5f);
            check_near(got.dx, wanted, bound);
            check_near(got.dgamma, plain.dgamma, 1e-4f);
            check_near(got.dbeta, plain.dbeta, 1e-4f);
        }
    }
}

}  // namespace norm_options
using namespace norm_options;
}  // namespace

TEMPLATE_TEST_CASE("norms: statistics and residual, of views", "", float, half, bfloat16) {
    const runtime::Device device = open_device();
    for (const Extents& extents :
         {Extents{3, 16}, Extents{2, 3, 61}, Extents{2, 3, 2, 20}, Extents{3, 700}, Extents{1, 2}, Extents{0, 8}})
        check_forms<TestType>(device, extents);
    // Rows of a block of 512, and in shared memory.
    check_forms<TestType>(device, {1, sizeof(TestType) == 4 ? 8200u : 2100u});
    // Several launches of these.
    if (sizeof(TestType) == 4) check_forms<TestType>(device, {2, 1, 2, 2, 8260});
}

TEST_CASE("norms: statistics are the mean and the inverse of the deviation") {
    const runtime::Device device = open_device();
    const auto check = [&](const std::vector<float>& row, bool centred) {
        const std::size_t n = row.size();
        const auto x = device.upload(row), ones = device.upload(std::vector<float>(n, 1)),
                   zeros = device.upload(std::vector<float>(n));
        auto y = device.buffer<float>(n), statistics = device.buffer<float>(2);
        if (centred)
            stdlib::layernorm(device, x.view(1, n), ones, zeros, y.view(1, n), norm_epsilon, statistics.view(1, 2));
        else
            stdlib::rmsnorm(device, x.view(1, n), ones, y.view(1, n), norm_epsilon, statistics.view(1, 2));
        double mean = 0, squares = 0;
        for (const float v : row) mean += double(v) / double(n);
        if (!centred) mean = 0;
        for (const float v : row) squares += (double(v) - mean) * (double(v) - mean) / double(n);
        const auto got = statistics.download();
        const double root = 1 / std::sqrt(squares + double(norm_epsilon));
        INFO(n << " columns: " << got[0] << " " << got[1] << ", not " << mean << " " << root);
        CHECK(std::abs(double(got[0]) - mean) <= 1e-6 * (std::abs(mean) + 1));
        CHECK(std::abs(double(got[1]) - root) <= 1e-6 * root + 0x1p-149);
    };
    for (const bool centred : {false, true})
        for (const std::size_t n : {1, 7, 64, 1500}) {
            check(random_elements<float>(n, 3, -2, 5), centred);
            check(std::vector<float>(n, 3), centred);
            check(std::vector<float>(n, 1e-40f), centred);
        }
    // Equal elements whose squares, and whose sums, overflow, in rows that are not kept.
    for (const std::size_t n : {3, 7, 9})
        for (const float x : {1e20f, -3e38f}) check(std::vector<float>(n, x), true);
    // Squares that overflow: the deviation does not.
    std::vector<float> large = random_elements<float>(64, 5);
    for (float& v : large) v *= 1e30f;
    check(large, false);
    const auto x = device.upload(large), ones = device.upload(std::vector<float>(64, 1));
    auto y = device.buffer<float>(64), statistics = device.buffer<float>(2);
    stdlib::rmsnorm(device, x.view(1, 64), ones, y.view(1, 64), 1e-5f, statistics.view(1, 2));
    CHECK(std::isnormal(statistics.download()[1]));
}

TEST_CASE("norms: with statistics and residual the same bits in every order, without a race") {
    for (const Extents& extents : {Extents{35, 9}, Extents{9, 516}})
        for (const Form& form : forms()) {
            if (!form.residual) continue;
            std::optional<StepResults> first;
            for (const char* seed : {"0", "1", "2", "3"}) {
                const auto device = open_device({.threads = 2, .schedule = seed, .check = "strict,registers,races"});
                const StepResults got =
                    StepArrays<float>(device, Place::packed, extents, Place::packed).run(device, form);
                if (!first) first = got;
                CHECK((got.dx == first->dx && got.dgamma == first->dgamma && got.dbeta == first->dbeta &&
                       got.statistics == first->statistics));
            }
        }
}

TEST_CASE("norms: an infinity or a NaN of the residual is in its element alone") {
    const runtime::Device device = open_device();
    for (const float special : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        StepArrays<float> arrays(device, Place::packed, {20, 40}, Place::packed);
        const StepResults before = arrays.run(device, {true, true, true});
        std::vector<float> more = arrays.residual.elements();
        more[7 * 40 + 5] = special;
        arrays.residual.set(more);
        const StepResults after = arrays.run(device, {true, true, true});
        for (std::size_t i = 0; i < after.dx.size(); ++i)
            CHECK((i == 7 * 40 + 5 ? !std::isfinite(after.dx[i]) : after.dx[i] == before.dx[i]));
        CHECK(after.dgamma == before.dgamma);
    }
}

TEST_CASE("norms: rows that fit nowhere are read twice, others once") {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device =
        runtime::Device::open({.device = "emulator", .target = "sm_80", .threads = 2, .traffic = &traffic});
    const auto reads = [&](const Form& form, std::uint64_t columns) {
        const std::uint64_t bytes = 2 * columns * sizeof(float);
        const StepArrays<float> arrays(device, Place::packed, {2, columns}, Place::packed);
        traffic.clear();
        arrays.run(device, form);
        std::uint64_t all = 0;
        for (const emulator::BufferTraffic& buffer : traffic.at(1).buffers)
            if (buffer.address == TensorView(arrays.x).part.address()) all += buffer.read.moved;
        return double(all) / double(bytes);
    };
    for (const Form& form : forms()) {
        INFO("form " << form.centred << form.saved << form.residual);
        CHECK(reads(form, 10240) == 1);
        // A part of a row is still in a cache when it is read again.
        const double twice = reads(form, 16384);
        CHECK(twice <= 2);
        CHECK(twice > 1.5);
    }
}

TEST_CASE("norms: mistakes of statistics and residual") {
    const runtime::Device device = open_device();
    const auto x = device.upload(std::vector<float>(48), "x"), gamma = device.upload(std::vector<float>(8), "gamma");
    auto dx = device.buffer<float>(48, "dx"), sums = device.buffer<float>(8, "sums");
    auto statistics = device.upload(std::vector<float>(18), "statistics");
    const auto a = x.view(6, 8);
    using Catch::Contains;
    const auto message = [&](const stdlib::NormBackwardOptions& options) {
        return tests::message_of(
            [&] { stdlib::rmsnorm_backward(device, a, a, gamma, dx.view(6, 8), sums, 1e-5f, options); });
    };
    CHECK_THAT(message({.statistics = statistics.view(6, 3)}),
               Contains("rmsnorm_backward: 'statistics' has 3 numbers for each row"));
    CHECK_THAT(message({.statistics = statistics.view(9, 2)}), Contains("'statistics' is 9 x 2"));
    CHECK_THAT(message({.residual = x.view(8, 6)}), Contains("'residual' is 8 x 6"));
    CHECK_THAT(message({.residual = dx.view(6, 8)}), Contains("'residual' (read) and 'dx' (written)"));
    CHECK_THAT(
        tests::message_of([&] { stdlib::rmsnorm(device, a, gamma, dx.view(6, 8), 1e-5f, statistics.view(6, 3)); }),
        Contains("rmsnorm: 'statistics' has 3 numbers for each row"));
    // As much workspace as it says.
    const stdlib::NormBackwardOptions options{.residual = a, .statistics = statistics.slice(0, 12).view(6, 2)};
    auto workspace =
        device.buffer<std::uint8_t>(stdlib::norm_backward_workspace(a, a, dx.view(6, 8), options), "workspace");
    CHECK(message({.residual = a, .statistics = statistics.slice(0, 12).view(6, 2), .workspace = workspace}) == "");
}

}  // namespace ikat::test
