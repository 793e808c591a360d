// SPDX-License-Identifier: Apache-2.0
// Constant memory: tables of the host that kernels read at any index.
#include <ikat/ikat.hpp>

#include <array>

#include "codegen/ast/ast.hpp"
#include "codegen/pipeline/compile.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

TEST_CASE("constants: tables are read at any index of the device") {
    std::vector<float> table(300);
    for (int i = 0; i < 300; ++i) table[std::size_t(i)] = float(i) * 0.5f;
    const auto look_up = kernel("look_up", params("index", "y"), [&](In<std::uint32_t> index, Out<float> y) {
        Constant<float, 300> values(table);
        Constant<std::int8_t, 2, 2> signs{-1, 2, 127, -128};
        Constant<half, 2> halves{half(0.25f), half(-0.5f)};
        Constant<std::int64_t, 2> longs{-1, std::int64_t{1} << 62};
        Constant<double, 4> doubles(std::array{0.0, 1e300, 0.0, -1e300});
        u32 t = thread_id().x;
        u32 i = index[t];
        y[t] = values[i] + cast<f32>(signs[i % 2, 1]) * 1000 + cast<f32>(halves[t % 2]);
        check(longs[t / 2] == select(t < 2, i64(-1), i64(1ll << 62)), "longs");
        auto two = doubles.flat().vec<2>(t / 2);
        check(two[0] + two[1] == select(t < 2, f64(1e300), f64(-1e300)), "doubles");
        check(doubles.flat().load_if(t == 1, t, 7) == select(t == 1, f64(1e300), f64(7)), "masked");
    });
    const Device device = emulator();
    const Buffer<std::uint32_t> index = device.upload(std::vector<std::uint32_t>{0, 299, 7, 100});
    Buffer<float> y = device.buffer<float>(4);
    device.launch(look_up, Grid{{1}, {4}}, index, y);
    CHECK(y.download() == std::vector<float>{2000.25f, -128000 + 149.0f, -128000 + 3.75f, 2049.5f});
}

TEST_CASE("constants: a table is copied at capture, and equal tables are shared") {
    std::vector<std::uint32_t> table{1, 2, 3, 4};
    const auto sums = kernel("sums", params("y"), [&](InOut<std::uint32_t> y) {
        for (int round = 0; round < 3; ++round) {
            Constant<std::uint32_t, 4> values(table);
            y[0] += values[y[0] % 4];
        }
        Constant<std::int32_t, 4> others{1, 2, 3, 4};
        y[1] = cast<u32>(others[y[0] % 4]);
    });
    sums.check();
    table[0] = 100;
    CHECK(sums.ast().symbols.size() == 2);
    const Device device = emulator();
    Buffer<std::uint32_t> y = device.upload(std::vector<std::uint32_t>{0, 0});
    device.launch(sums, grid(1, 1), y);
    CHECK(y.download() == std::vector<std::uint32_t>{7, 4});
    CHECK_THAT(compile(sums.ast(), {}).ptx, contains(".const .align 16 .u32 const0[4] = {1, 2, 3, 4};"));
}

TEST_CASE("constants: an index beyond the table is caught") {
    const auto beyond = kernel("beyond", params("y", "i"), [](Out<float> y, u32 i) {
        Constant<float, 4> values{1, 2, 3, 4};
        y[0] = values[i];
    });
    const Device device = emulator();
    Buffer<float> y = device.buffer<float>(1);
    CHECK_NOTHROW(device.launch(beyond, grid(1, 1), y, 3));
    CHECK_THROWS_AS(device.launch(beyond, grid(1, 1), y, 4), KernelError);
}

}  // namespace
}  // namespace ikat::tests
