// SPDX-License-Identifier: Apache-2.0
// Reductions of views of any rank and pitches, by one launch or by several for parts of the array.
#include <limits>
#include <string>

#include "runtime/exec/recorder.hpp"
#include "stdlib/reduction/dot.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {

/// Up to two dimensions of rows are one launch, more are several; rows of a block and of more.
const Extents all_extents[] = {{2, 3, 61}, {5, 1000},      {3, 16},          {2, 3, 2, 61},
                               {3, 2, 2},  {2, 3, 4, 700}, {2, 2, 3, 2, 16}, {2, 1, 3, 2, 9}};

/// The kernels of what f launches.
std::vector<std::string> kernels_of(const runtime::Recorder& recorder) {
    std::vector<std::string> out;
    for (const auto& launch : recorder.launches()) out.emplace_back(launch.kernel->name());
    return out;
}

TensorView view_of(const runtime::BufferPart& part, ir::Type type, const Extents& extents, const Extents& pitches) {
    return TensorView(type, part, extents, pitches);
}

}  // namespace

TEST_CASE("reductions of views") {
    const runtime::Device device = open_device();
    const auto check = [&]<class T>(T) {
        for (const Extents& extents : all_extents) {
            const Placed<T> x(device, Place::packed, extents, 1), y(device, Place::packed, extents, 2);
            for (const Place place : places) {
                INFO("place " << int(place) << ", rank " << extents.size() << ", " << extents.back() << " columns");
                const Placed<T> a(device, place, extents, 1), b(device, place, extents, 2);
                CHECK(stdlib::max(device, a) == stdlib::max(device, x));
                CHECK(stdlib::argmax(device, a) == stdlib::argmax(device, x));
                CHECK(same(stdlib::sum(device, a), stdlib::sum(device, x), 1e-4f));
                CHECK(same(stdlib::norm2(device, a), stdlib::norm2(device, x), 1e-5f));
                CHECK(same(stdlib::dot(device, a, b), stdlib::dot(device, x, y), 1e-4f));
                CHECK(same(stdlib::dot(device, x, b), stdlib::dot(device, x, y), 1e-4f));
                CHECK(same(stdlib::dot(device, a, y), stdlib::dot(device, x, y), 1e-4f));
            }
        }
    };
    check(float());
    check(half());
    check(bfloat16());
}

TEST_CASE("reductions of views without elements") {
    const runtime::Device device = open_device();
    for (const Extents& extents : {Extents{0, 3}, Extents{2, 0, 2, 2, 3}, Extents{2, 2, 2, 2, 0}}) {
        const Placed<float> none(device, Place::odd, extents, 1);
        CHECK(stdlib::sum(device, none) == 0);
        CHECK(stdlib::dot(device, none, none) == 0);
        CHECK(stdlib::max(device, none) == -std::numeric_limits<float>::infinity());
        CHECK(stdlib::argmax(device, none) == 0xffffffff);
    }
}

TEST_CASE("the largest element of a view of several parts, and its index") {
    const runtime::Device device = open_device();
    const Extents extents{3, 2, 2, 5};
    auto value = device.buffer<float>(1, "value");
    auto index = device.buffer<std::uint32_t>(1, "index");
    Placed<float> x(device, Place::odd, extents, 1);
    const auto check = [&](const std::vector<float>& numbers, float best, std::uint32_t at) {
        x.set(numbers);
        stdlib::argmax(device, x, value, index);
        CHECK(value.download()[0] == best);
        CHECK(index.download()[0] == at);
    };
    constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    std::vector<float> numbers(60, 1.5f);
    check(numbers, 1.5f, 0);
    numbers[59] = 2;
    check(numbers, 2, 59);
    numbers[33] = 2;
    check(numbers, 2, 33);
    for (std::size_t i = 20; i < 40; ++i) numbers[i] = nan;  // the part in the middle
    check(numbers, 2, 59);
    for (float& number : numbers) number = nan;
    check(numbers, -infinity, 0xffffffff);
    numbers[41] = -infinity;
    check(numbers, -infinity, 41);
}

TEST_CASE("the workspace of a view of several parts is for all of them") {
    const runtime::Device device = open_device();
    const runtime::Stream stream = device.stream();
    const Extents extents{5, 2, 2, 700};
    const Placed<float> x(device, Place::odd, extents, 1), packed(device, Place::packed, extents, 2);
    auto total = device.buffer<float>(1, "total");
    auto index = device.buffer<std::uint32_t>(1, "index");
    const std::uint64_t bytes = stdlib::reduction_workspace(x);
    CHECK(bytes == 5 * stdlib::reduction_workspace(2 * 2 * 700));
    CHECK(stdlib::reduction_workspace(packed) == stdlib::reduction_workspace(5 * 2 * 2 * 700));
    CHECK(stdlib::reduction_workspace(packed, x) == bytes);
    auto workspace = device.buffer<std::uint8_t>(bytes, "workspace");
    stdlib::sum(stream, x, total, workspace);
    stream.synchronize();
    CHECK(total.download()[0] == stdlib::sum(device, x));
    stdlib::dot(stream, packed, x, total, workspace);
    stream.synchronize();
    CHECK(total.download()[0] == stdlib::dot(device, packed, x));
    stdlib::argmax(stream, x, total, index, workspace);
    stream.synchronize();
    CHECK(total.download()[0] == stdlib::max(device, x));
    CHECK_THAT(tests::message_of([&] { stdlib::sum(stream, x, total, workspace.slice(0, bytes - 16)); }),
               Catch::Contains("sum: 'workspace' has 144 elements, 160 are needed"));
    stdlib::sum(stream, x, total);  // takes its own
    stream.synchronize();
    CHECK(total.download()[0] == stdlib::sum(device, x));
}

TEST_CASE("the launches of reductions of views") {
    const runtime::Device device = runtime::Device::open({.device = "emulator", .is_plan = true});
    auto total = device.buffer<float>(1, "total");
    auto index = device.buffer<std::uint32_t>(1, "index");
    const std::uint64_t n = (std::uint64_t{1} << 32) + 70;
    const auto large = device.buffer<half>(n, "large");
    using Names = std::vector<std::string>;
    {
        // More elements than a 32-bit index reaches are parts of 2^31.
        const runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
        stdlib::sum(recorder, large, total);
        CHECK(kernels_of(recorder) == Names{"sum_f16", "sum_f16", "sum_f16", "sum_f32"});
        const auto launches = recorder.launches();
        REQUIRE(launches.size() == 4);
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(launches[i].arguments[0].part.offset == (i << 32));
            CHECK(launches[i].arguments[1].part.offset == i * 4096);
            CHECK(launches[i].arguments[2].bits == (i < 2 ? 1u << 31 : 70));
        }
        CHECK(launches[3].arguments[2].bits == 1024 + 1024 + 1);
        CHECK(stdlib::reduction_workspace(large) == 2 * 8192 + 32);
        CHECK(stdlib::reduction_workspace(n) == stdlib::reduction_workspace(large));
    }
    {
        // Rows so far apart that a launch reaches one of them.
        const TensorView wide = view_of(large.memory().whole(), ir::Type::F16, {2, 64}, {0xfffffffe});
        const runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
        stdlib::dot(recorder, wide, wide.of_rank(2), total);
        CHECK(kernels_of(recorder) == Names{"dot_f16", "dot_pitched_f16", "sum_f32"});
        stdlib::argmax(recorder, wide, total, index);
        REQUIRE(recorder.launches().size() == 6);
        const auto second = recorder.launches()[4];
        CHECK(second.kernel->name() == std::string("argmax_part_pitched_f16"));
        CHECK(second.arguments[3].bits == 64);  // before
    }
    CHECK_THAT(tests::message_of([&] { stdlib::argmax(device, large, total, index); }),
               Catch::Contains("argmax: 'x' has 4294967366 elements, more than a 32-bit index reaches"));
}

}  // namespace ikat::test
