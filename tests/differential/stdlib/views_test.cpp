// SPDX-License-Identifier: Apache-2.0
// Functions of the library on views: whatever the pitches and wherever rows begin, the result is that of arrays without
// gaps, and gaps keep what they have.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/recorder.hpp"
#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/elementwise/saxpy.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/layout/layout.hpp"
#include "stdlib/norm/norm.hpp"
#include "stdlib/reduction/reduction.hpp"
#include "stdlib/softmax/softmax.hpp"
#include "stdlib/spec/view_call.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {

/// f(x, second, y) with arrays in all places gives what it gives without gaps; up to the bound, since sums may be in
/// another order where rows begin elsewhere.
template <class T>
void check_rows(const runtime::Device& device, const Extents& extents, float bound, auto&& f) {
    Placed<T> x(device, Place::packed, extents, 1), second(device, Place::packed, extents, 2),
        y(device, Place::packed, extents, 3);
    f(x.view(), second.view(), y.view());
    const auto want = y.elements(), want_second = second.elements();
    static tests::Sample sample(5);
    for (const Place of_x : {Place::packed, Place::aligned, Place::odd, Place::permuted})
        for (const Place of_y : places) {
            if (!sample.next()) continue;
            INFO("places " << int(of_x) << " and " << int(of_y));
            Placed<T> a(device, of_x, extents, 1), b(device, of_y, extents, 2), c(device, of_y, extents, 3);
            f(a.view(), b.view(), c.view());
            const auto differ = [&](const std::vector<float>& got, const std::vector<float>& wanted) {
                std::size_t out = 0;
                for (std::size_t i = 0; i < got.size(); ++i) out += !same(got[i], wanted[i], bound);
                return out;
            };
            CHECK(differ(c.elements(), want) == 0);
            CHECK(differ(b.elements(), want_second) == 0);
            CHECK(a.changed_gaps() + b.changed_gaps() + c.changed_gaps() == 0);
        }
}

/// Rows in two dimensions; in more, of which some have one index; and one row.
std::vector<Extents> shapes(std::uint64_t columns) { return {{2, 3, columns}, {2, 1, 3, 2, columns}, {1, columns}}; }

template <class T>
void check_row_functions(const runtime::Device& device, std::uint64_t columns) {
    const runtime::Queue queue(device);
    const float bound = sizeof(T) == 4 ? 0x1p-19f : std::is_same_v<T, half> ? 0x1p-10f : 0x1p-7f;
    const auto gamma = Placed<T>(device, Place::packed, {columns}, 5),
               beta = Placed<T>(device, Place::odd, {columns}, 6);
    for (const Extents& extents : shapes(columns)) {
        INFO(columns << " columns, rank " << extents.size());
        using View = const MutableTensorView&;
        check_rows<T>(device, extents, bound, [&](View x, View, View y) { stdlib::softmax(queue, x, y); });
        check_rows<T>(device, extents, bound, [&](View x, View, View y) { stdlib::log_softmax(queue, x, y); });
        check_rows<T>(device, extents, bound,
                      [&](View x, View, View y) { stdlib::layernorm(queue, x, gamma, gamma, y, 1e-3f); });
        check_rows<T>(device, extents, bound, [&](View x, View, View y) { stdlib::layernorm(queue, x, y, 1e-3f); });
        check_rows<T>(device, extents, bound,
                      [&](View x, View, View y) { stdlib::rmsnorm(queue, x, gamma, y, 1e-3f); });
        check_rows<T>(device, extents, bound, [&](View x, View second, View y) {
            stdlib::fused_residual_rmsnorm(queue, x, second, gamma, y, 1e-3f);
        });
        check_rows<T>(device, extents, 0, [&](View x, View, View y) {
            stdlib::bias_activation(queue, stdlib::Activation::silu, x, beta, y);
        });
    }
}

}  // namespace

TEST_CASE("rows of views: softmax, norms and biases") {
    const runtime::Device device = open_device();
    for (const std::uint64_t columns : {1u, 8u, 9u, 100u, 264u, 1100u}) {
        check_row_functions<float>(device, columns);
        if (columns != 1100) check_row_functions<half>(device, columns);
        if (columns < 100) check_row_functions<bfloat16>(device, columns);
    }
    check_row_functions<bfloat16>(device, 1032);
    check_rows<half>(device, {2, 3, 8200}, 0x1p-10f,
                     [&](const auto& x, const auto&, const auto& y) { stdlib::softmax(device, x, y); });
}

TEST_CASE("elements of views, one by one") {
    const runtime::Device device = open_device();
    const runtime::Queue queue(device);
    using View = const MutableTensorView&;
    const auto check = [&]<class T>(T) {
        for (const std::uint64_t columns : {1u, 16u, 61u})
            for (const Extents& extents : shapes(columns)) {
                INFO(columns << " columns, rank " << extents.size());
                check_rows<T>(device, extents, 0,
                              [&](View x, View, View y) { stdlib::elementwise(queue, stdlib::Unary::gelu, x, y); });
                check_rows<T>(device, extents, 0, [&](View x, View, View y) {
                    stdlib::elementwise(queue, stdlib::Unary1::leaky_relu, x, y, 0.25f);
                });
                check_rows<T>(device, extents, 0, [&](View x, View, View y) {
                    stdlib::elementwise(queue, stdlib::Unary2::clip, x, y, -1.0f, 0.5f);
                });
                check_rows<T>(device, extents, 0, [&](View x, View second, View y) {
                    stdlib::elementwise(queue, stdlib::Binary::fused_swiglu, x, second, y);
                });
                check_rows<T>(device, extents, 0, [&](View x, View, View y) { stdlib::residual_add(queue, x, y); });
            }
    };
    check(float());
    check(half());
    check(bfloat16());
    check_rows<float>(device, {2, 3, 61}, 0, [&](View x, View, View y) { stdlib::saxpy(queue, 3, x, y); });
    for (const Place place : places) {
        const Placed<float> x(device, place, {3, 2, 20}, 1), back(device, place, {3, 2, 20}, 2);
        const Placed<half> y(device, place, {3, 2, 20}, 3);
        stdlib::cast(queue, x, y);
        stdlib::cast(queue, y, back);
        std::vector<float> want = x.elements();
        for (float& v : want) v = float(half(v));
        CHECK(back.elements() == want);
        CHECK(y.changed_gaps() + back.changed_gaps() == 0);
    }
}

TEST_CASE("matrices and heads of views") {
    const runtime::Device device = open_device();
    const runtime::Queue queue(device);
    const auto check = [&]<class T>(T) {
        for (const std::uint64_t columns : {5u, 32u, 96u}) {
            INFO(columns << " columns");
            const Placed<T> A(device, Place::packed, {7, columns}, 1), x(device, Place::packed, {columns}, 2),
                y(device, Place::packed, {7}, 3), z(device, Place::packed, {columns}, 4);
            stdlib::gemv(queue, A, x, y);
            stdlib::gemv_transposed(queue, A, y, z);
            const Placed<T> rows(device, Place::packed, {2, 3, 4, columns}, 5),
                turned(device, Place::packed, {2, 3, columns, 4}, 6);
            stdlib::transpose(queue, rows, turned);
            const auto slots = device.upload(std::vector<std::uint32_t>{2, 9, 0});
            const Placed<T> tokens(device, Place::packed, {3, 2 * columns}, 7),
                cache(device, Place::packed, {4, 2 * columns}, 8);
            stdlib::kv_scatter(queue, tokens, slots, cache);
            for (const Place place : places) {
                INFO("place " << int(place));
                const Placed<T> of_A(device, place, {7, columns}, 1), of_x(device, place, {columns}, 2),
                    of_y(device, place, {7}, 3), of_z(device, place, {columns}, 4);
                stdlib::gemv(queue, of_A, of_x, of_y);
                stdlib::gemv_transposed(queue, of_A, of_y, of_z);
                const auto got = of_y.elements(), want = y.elements();
                for (std::size_t i = 0; i < 7; ++i) CHECK(same(got[i], want[i], sizeof(T) == 4 ? 1e-5f : 1e-2f));
                if (place != Place::odd) CHECK(of_z.elements() == z.elements());
                const Placed<T> of_rows(device, place, {2, 3, 4, columns}, 5),
                    of_turned(device, place, {2, 3, columns, 4}, 6);
                stdlib::transpose(queue, of_rows, of_turned);
                CHECK(of_turned.elements() == turned.elements());
                const Placed<T> of_tokens(device, place, {3, 2 * columns}, 7),
                    of_cache(device, place, {4, 2 * columns}, 8), between(device, place, {4, 2 * columns}, 8);
                stdlib::kv_scatter(queue, of_tokens, slots, of_cache);
                CHECK(of_cache.elements() == cache.elements());
                stdlib::kv_scatter(queue, tokens, slots, between);
                CHECK(between.elements() == cache.elements());
                CHECK(of_y.changed_gaps() + of_z.changed_gaps() + of_turned.changed_gaps() + of_cache.changed_gaps() ==
                      0);
            }
        }
        for (const stdlib::Rope form : {stdlib::Rope::Interleaved, stdlib::Rope::Neox}) {
            const auto positions = device.upload(std::vector<std::uint32_t>{0, 7, 300});
            const Placed<T> want(device, Place::packed, {3, 2, 20}, 9);
            stdlib::rope(queue, form, want, positions, 16, 1e4f);
            for (const Place place : places) {
                INFO("rope, place " << int(place));
                const Placed<T> got(device, place, {3, 2, 20}, 9);
                stdlib::rope(queue, form, got, positions, 16, 1e4f);
                CHECK(got.elements() == want.elements());
                CHECK(got.changed_gaps() == 0);
            }
        }
    };
    check(float());
    check(half());
    check(bfloat16());
    const Placed<float> A(device, Place::packed, {70, 20}, 1), B(device, Place::packed, {20, 75}, 2),
        C(device, Place::packed, {70, 75}, 3);
    stdlib::gemm(queue, A, B, C);
    for (const Place place : places) {
        const Placed<float> a(device, place, {70, 20}, 1), b(device, place, {20, 75}, 2), c(device, place, {70, 75}, 3);
        stdlib::gemm(queue, a, b, c);
        CHECK(c.elements() == C.elements());
        CHECK(c.changed_gaps() == 0);
    }
}

TEST_CASE("views without gaps are one launch of the kernel for such arrays, whatever their rank") {
    std::vector<emulator::LaunchTraffic> traffic;
    const runtime::Device device = runtime::Device::open({.device = "emulator", .traffic = &traffic});
    const Placed<float> x(device, Place::packed, {2, 1, 3, 2, 64}, 1), y(device, Place::packed, {2, 1, 3, 2, 64}, 2),
        aligned(device, Place::aligned, {2, 1, 3, 2, 64}, 3);
    stdlib::softmax(device, x, y);
    stdlib::elementwise(device, stdlib::Unary::relu, x, y);
    stdlib::sum(device, x);
    const std::size_t packed = traffic.size();
    stdlib::softmax(device, aligned, y);
    std::vector<std::string> names;
    for (const auto& launch : traffic) names.push_back(launch.entry);
    REQUIRE(packed == 3);
    CHECK(std::vector(names.begin(), names.begin() + 3) == std::vector<std::string>{"softmax_warp", "relu", "sum_f32"});
    CHECK(names.size() == 5);  // rows in three dimensions with gaps
    CHECK(names.back() == "softmax_warp_pitched");
}

TEST_CASE("elements that a 32-bit index does not reach are several launches") {
    const runtime::Device device = runtime::Device::open({.device = "emulator", .is_plan = true});
    const std::uint64_t n = (std::uint64_t{1} << 32) + 16;
    const auto x = device.buffer<half>(n, "x");
    auto y = device.buffer<half>(n, "y");
    const runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
    stdlib::elementwise(recorder, stdlib::Unary::relu, x, y);
    const auto launches = recorder.launches();
    REQUIRE(launches.size() == 3);
    for (std::uint64_t i = 0; i < 3; ++i) {
        CHECK(launches[i].kernel->name() == std::string("relu_f16"));
        CHECK(launches[i].arguments[0].part.offset == i << 32);
        CHECK(launches[i].arguments[1].part.offset == i << 32);
        CHECK(launches[i].arguments[2].bits == (i < 2 ? 1u << 31 : 16));
    }
    // Rows that matter are not cut.
    CHECK_THAT(tests::message_of([&] { stdlib::softmax(device, x, y); }),
               Catch::Contains("softmax: 'x' has 4294967312 elements, more than a 32-bit index reaches"));
}

TEST_CASE("a layout of rows is parts that 32 bits reach") {
    const auto view = [](Extents extents, Extents strides) {
        TensorView out;
        out.rank = std::uint32_t(extents.size());
        std::ranges::copy(extents, out.extents.begin());
        std::ranges::copy(strides, out.strides.begin());
        return out;
    };
    const auto parts_of = [](const stdlib::RowLayout& layout) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> out;  // of the first array: the first element, and rows
        layout.each_launch([&](const stdlib::RowLayout& part) {
            CHECK(part.rows.size() <= 2);
            out.emplace_back(part.first[0], part.number_of_rows());
        });
        return out;
    };
    using Parts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    const std::uint64_t large = std::uint64_t{1} << 32;
    const TensorView tall = view({1u << 20, 1u << 14}, {1u << 14, 1});
    const stdlib::RowLayout of_tall({&tall, nullptr, &tall}, true);
    CHECK(of_tall.is_packed());
    const Parts parts = parts_of(of_tall);
    std::uint64_t rows = 0;
    for (const auto& [first, count] : parts) {
        CHECK(first == rows << 14);
        CHECK(count << 14 < large);
        rows += count;
    }
    CHECK(rows == 1u << 20);
    CHECK(parts.size() == 8);
    // Gaps count: rows so far apart that each is a launch.
    const TensorView wide = view({3, 4}, {large - 2, 1});
    CHECK(parts_of(stdlib::RowLayout({&wide, nullptr, nullptr}, true)) ==
          Parts{{0, 1}, {large - 2, 1}, {2 * large - 4, 1}});
    // Dimensions that follow each other are one, those of one index none.
    const TensorView merged = view({2, 3, 1, 4, 5}, {300, 100, 7, 20, 1});
    CHECK(stdlib::RowLayout({&merged, nullptr, nullptr}, true).rows.size() == 2);
    CHECK(stdlib::RowLayout({&merged, nullptr, nullptr}, false).columns == 5);
    const TensorView plain = view({2, 3, 4}, {12, 4, 1});
    CHECK(stdlib::RowLayout({&plain, nullptr, nullptr}, false).columns == 24);
    CHECK_FALSE(stdlib::RowLayout({&plain, nullptr, &merged}, false).is_packed());
}

TEST_CASE("views that do not fit a function") {
    const runtime::Device device = open_device();
    auto x = device.buffer<float>(64, "x"), y = device.buffer<float>(64, "y");
    auto halves = device.buffer<half>(64, "halves");
    auto words = device.buffer<std::uint32_t>(64, "words");
    const auto check = [](const std::string& wanted, auto&& call) {
        const std::string message = tests::message_of(call);
        CHECK_THAT(message, Catch::Contains(wanted) && Catch::Contains("views_test.cpp:"));
    };
    check("softmax: 'y' has elements of f16, and 'x' of f32",
          [&] { stdlib::softmax(device, x.view(8, 8), halves.view(8, 8)); });
    check("softmax: 'x' has elements of u32", [&] { stdlib::softmax(device, words, y); });
    check("rope: 'positions' has elements of f32",
          [&] { stdlib::rope(device, stdlib::Rope::Neox, x.view(8, 1, 8), y, 8, 1e4f); });
    check("cast: 'x' has elements of f32, and 'y' of f32", [&] { stdlib::cast(device, x, y); });
    check("gemv: 'A' is 64", [&] { stdlib::gemv(device, x, x, y); });
    check("layernorm: 'gamma' is 64: its columns is 64, and that of 'x' is 8",
          [&] { stdlib::layernorm(device, x.view(8, 8), y, y, y.view(8, 8), 1.0f); });
    const TensorView columns = TensorView(x.view(8, 8)).permuted({1, 0});
    check("softmax: the elements of a row of 'x' are 8 apart", [&] { stdlib::softmax(device, columns, y.view(8, 8)); });
    check("kv_scatter: the elements of a row of 'x' have gaps",
          [&] { stdlib::kv_scatter(device, x.view(2, 2, 4).pitched(16, 8), words.slice(0, 2), y.view(2, 2, 4)); });
}

}  // namespace ikat::test
