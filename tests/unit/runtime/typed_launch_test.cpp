// SPDX-License-Identifier: Apache-2.0
// Launches of captured kernels: how host numbers adapt, what is compiled once, what is rejected where.
#include <ikat/ikat.hpp>

#include <limits>
#include <numeric>
#include <thread>

#include "codegen/pipeline/compile.hpp"
#include "runtime/cache.hpp"
#include "tests/catch.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

const auto saxpy = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
});

TEST_CASE("a kernel runs on vectors") {
    const Device device = emulator();
    std::vector<float> host_x(1000), host_y(1000, 1.0f);
    std::iota(host_x.begin(), host_x.end(), 0.0f);
    const Buffer<float> x = device.upload(host_x);
    Buffer<float> y = device.upload(host_y);
    device.launch(saxpy, grid(1000, 256), 2.0f, x, y, 1000);
    const std::vector<float> result = device.download(y);
    for (int i = 0; i < 1000; ++i) CHECK(result[i] == 2.0f * float(i) + 1.0f);
}

TEST_CASE("print takes device values and host numbers") {
    std::string printed;
    const Device device = Device::open({.device = "emulator", .threads = 1, .printed = &printed});
    const auto prints = kernel("prints", params("n"), [](u32 n) {
        for (short k = -1; k < 1; ++k) print("{} {} {} {}\n", k, n, 0.5f, true);
    });
    device.launch(prints, grid(1, 1), 7);
    CHECK(printed == "-1 7 0.5 1\n0 7 0.5 1\n");
}

TEST_CASE("a kernel runs on a stream, and between events") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(std::vector<float>{1, 2});
    Buffer<float> y = device.upload(std::vector<float>{0, 0});
    const Stream stream = device.stream();
    const Event start = stream.record();
    stream.launch(saxpy, grid(2, 32), 3, x, y, 2u);
    stream.launch(saxpy, grid(2, 32), 3, x, y, 2u);
    const Event stop = stream.record();
    stop.synchronize();
    CHECK(y.download() == std::vector<float>{6, 12});
    CHECK(elapsed_milliseconds(start, stop) >= 0);
}

TEST_CASE("an empty grid runs nothing, but is checked") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(std::vector<float>{});
    Buffer<float> y = device.upload(std::vector<float>{});
    CHECK_NOTHROW(device.launch(saxpy, grid(0, 256), 1.0f, x, y, 0));
    CHECK_THROWS_AS(device.launch(saxpy, grid(0, 2048), 1.0f, x, y, 0), Error);
}

TEST_CASE("an access out of bounds names the kernel's parameter") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(std::vector<float>{1, 2});
    Buffer<float> y = device.upload(std::vector<float>{0, 0, 0});
    const auto run = [&] { device.launch(saxpy, grid(3, 32), 1.0f, x, y, 3); };
    CHECK_THROWS_AS(run(), KernelError);
    CHECK_THAT(message_of(run), contains("'x'"));
}

TEST_CASE("errors of a launch name the line of the launch") {
    const Device device = emulator();
    Buffer<float> y = device.upload(std::vector<float>{1, 2});
    const std::string message = message_of([&] { device.launch(saxpy, grid(2, 32), 1.0f, y, y, 2); });
    CHECK_THAT(message, contains("typed_launch_test.cpp:"));
    CHECK_THAT(message, contains("'x' (in f32[]) and 'y' (inout f32[]) are the same memory"));
}

/// Writes its scalars, to show how host numbers were adapted.
const auto scalars = kernel("scalars", params("a", "b", "c", "d", "e", "ints", "floats"),
                            [](i32 a, u64 b, f16 c, f32 d, f64 e, Out<std::int64_t> ints, Out<double> floats) {
                                ints[0u] = cast<i64>(a);
                                ints[1u] = cast<i64>(b);
                                floats[0u] = cast<f64>(c);
                                floats[1u] = cast<f64>(d);
                                floats[2u] = e;
                            });

struct Scalars {
    Device device = emulator();
    Buffer<std::int64_t> ints = device.buffer<std::int64_t>(2);
    Buffer<double> floats = device.buffer<double>(3);

    void run(auto a, auto b, auto c, auto d, auto e) {
        device.launch(scalars, Grid{{1}, {1}}, a, b, c, d, e, ints, floats);
    }
    std::string refused(auto... arguments) {
        return message_of([&] { run(arguments...); });
    }
};

TEST_CASE("host numbers adapt to the parameters that can hold them") {
    Scalars test;
    test.run(7ull, 8, 1.5, 0.1, 3);
    CHECK(test.ints.download() == std::vector<std::int64_t>{7, 8});
    CHECK(test.floats.download() == std::vector<double>{1.5, double(0.1f), 3});
    test.run(short(-5), std::numeric_limits<std::int64_t>::max(), 2048, 1 << 24, half(0.5));
    CHECK(test.ints.download() == std::vector<std::int64_t>{-5, std::numeric_limits<std::int64_t>::max()});
    CHECK(test.floats.download() == std::vector<double>{2048, 1 << 24, 0.5});
    test.run('a', std::uint8_t(255), 0.1f, std::numeric_limits<double>::infinity(), 1e300);
    CHECK(test.floats.download()[0] == double(float(half(0.1f))));
    CHECK(test.floats.download()[1] == std::numeric_limits<double>::infinity());
}

TEST_CASE("host numbers that do not fit are refused, by name") {
    Scalars test;
    CHECK_THAT(test.refused(1ll << 31, 0, 0, 0, 0),
               contains("launch of 'scalars': 2147483648 does not fit parameter 'a', which is i32"));
    CHECK_THAT(test.refused(0, -1, 0, 0, 0), contains("-1 does not fit parameter 'b', which is u64"));
    CHECK_THAT(test.refused(0, 0, 2049, 0, 0), contains("2049 does not fit parameter 'c', which is f16"));
    CHECK_THAT(test.refused(0, 0, 65520.0, 0, 0), contains("65520 does not fit parameter 'c'"));
    CHECK_THAT(test.refused(0, 0, 0, (1 << 24) + 1, 0), contains("16777217 does not fit parameter 'd', which is f32"));
    CHECK_THAT(test.refused(0, 0, 0, 1e39, 0), contains("1e+39 does not fit parameter 'd'"));
    CHECK_THAT(test.refused(0, 0, 0, 0, (1ll << 53) + 1), contains("does not fit parameter 'e', which is f64"));
}

TEST_CASE("a contract of the kernel is checked at each launch") {
    const auto aligned_kernel = kernel("contract", params("n", "y"), [](u32 n, Out<float> y) { y[n] = 1.0f; })
                                    .require(multiple_of<4>("n"))
                                    .launch_bounds(64);
    const Device device = emulator();
    Buffer<float> y = device.upload(std::vector<float>(9));
    CHECK_NOTHROW(device.launch(aligned_kernel, grid(1, 64), 8, y));
    CHECK_THAT(message_of([&] { device.launch(aligned_kernel, grid(1, 64), 7, y); }),
               contains("'n' is 7, which is not a multiple of 4"));
    CHECK_THAT(message_of([&] { device.launch(aligned_kernel, grid(1, 65), 8, y); }),
               contains("launch bounds say at most 64"));
}

TEST_CASE("a buffer that is shorter than a contract says is refused, with the lines of the launch and the kernel") {
    constexpr int line = __LINE__ + 1;
    const auto k = kernel("rows_of", params("x", "gamma", "rows", "columns"),
                          [](InOut<float> x, In<float> gamma, i32 rows, u32 columns) {
                              if_(rows > 0, [&] { x[columns] = gamma[columns]; });
                          })
                       .require(at_least("x", "rows", "columns"), at_least<9, 4>("gamma", 3));
    const Device device = emulator();
    Buffer<float> x = device.upload(std::vector<float>(24)), gamma = device.upload(std::vector<float>(18));
    const auto said = [&](auto&& first, std::int64_t rows, std::uint32_t columns) {
        return message_of([&] { device.launch(k, grid(1, 1), first, gamma, rows, columns); });
    };
    CHECK(said(x, 3, 8) == "");
    CHECK(said(x.slice(0, 0), 0, 8) == "");
    CHECK(said(x.slice(0, 0), -3, 8) == "");
    CHECK(said(x, 2, 11) == "");  // two whole fours
    const std::string x_short = said(x.slice(1, 23), 3, 8);
    // Compilers count columns differently.
    CHECK_THAT(x_short, contains("typed_launch_test.cpp:" + std::to_string(line + 8) + ":"));
    CHECK_THAT(x_short,
               contains(": error: launch of 'rows_of': buffer 'x' has 23 elements, fewer than rows * columns = 24"));
    CHECK_THAT(x_short, contains("typed_launch_test.cpp:" + std::to_string(line) + ":"));
    CHECK_THAT(x_short, contains(": note: the kernel is here"));
    CHECK_THAT(said(x, 2, 12), contains("buffer 'gamma' has 18 elements, fewer than columns / 4 * 9 = 27"));
    CHECK_THAT(said(x, 2147483647, 4294967295), contains("buffer 'x' has 24 elements, fewer than"));
}

TEST_CASE("contracts about one parameter add up") {
    const auto k = kernel("k", params("n", "y"), [](u32 n, Out<float> y) { y[n] = 1.0f; })
                       .require(multiple_of<4>("n"), aligned<256>("y"))
                       .require(multiple_of<6>("n"), aligned<16>("y"));
    CHECK(k.ast().parameters[0].multiple == 12);
    CHECK(k.ast().parameters[1].alignment == 256);
}

/// How often the fake driver was given PTX to load.
std::size_t loads(const std::string& log) {
    std::size_t count = 0;
    for (auto at = log.find("cuModuleLoadDataEx"); at != std::string::npos; at = log.find("cuModuleLoadDataEx", at + 1))
        ++count;
    return count;
}

TEST_CASE("cache: one kernel with one set of options is loaded once") {
    const FakeCuda fake;
    const auto device = fake.open();
    runtime::ModuleCache cache;
    const trace::KernelHandle& captured = saxpy;
    const auto first = cache.get(captured, {}, device);
    CHECK(first->compiled.info.name == "saxpy");
    CHECK(cache.get(captured, {}, device) == first);
    CHECK(loads(fake.log()) == 1);
    CompileOptions options;
    options.target = "sm_90";
    CHECK(cache.get(captured, options, device) != first);
    options.optimise = false;
    cache.get(captured, options, device);
    options.keep_stages = true;
    cache.get(captured, options, device);
    CHECK(loads(fake.log()) == 2);
    CHECK(cache.size() == 3);
}

TEST_CASE("cache: equal kernels are one") {
    const FakeCuda fake;
    const auto device = fake.open();
    runtime::ModuleCache cache;
    const auto made = [](float value) {
        return kernel("equal", params("y"), [value](Out<float> y) { y[0u] = value; });
    };
    const auto first = cache.get(made(1), {}, device);
    CHECK(cache.get(made(1), {}, device) == first);
    CHECK(cache.get(made(2), {}, device) != first);
    CHECK(loads(fake.log()) == 2);
}

TEST_CASE("cache: a destroyed kernel's entry is not used for another kernel") {
    const FakeCuda fake;
    const auto device = fake.open();
    runtime::ModuleCache cache;
    for (int i = 0; i < 20; ++i) {
        const std::string name = "kernel_" + std::to_string(i);
        const auto made = kernel(name.c_str(), params("y"), [](Out<float> y) { y[0u] = 1.0f; });
        CHECK(cache.get(made, {}, device)->compiled.info.name == name);
    }
    CHECK(loads(fake.log()) == 20);
}

TEST_CASE("cache: the most recently used kernels are kept") {
    const FakeCuda fake;
    const auto device = fake.open();
    runtime::ModuleCache cache;
    constexpr std::size_t max = runtime::ModuleCache::max_kernels;
    const trace::KernelHandle& captured = saxpy;
    std::vector<CompileOptions> options(max + 10);
    for (std::size_t i = 0; i < options.size(); ++i) {
        options[i].optimise = false;
        options[i].passes = "cfg";
        for (std::size_t bit = 0; bit < 11; ++bit) options[i].passes += i >> bit & 1 ? ",cfg" : ",dce";
        cache.get(captured, options[i], device);
        cache.get(captured, options[0], device);
    }
    CHECK(cache.size() == max);
    CHECK_THAT(fake.log(), contains("cuCtxSynchronize\ncuModuleUnload\n"));
    cache.get(captured, options[0], device);  // in use all the time
    cache.get(captured, options.back(), device);
    CHECK(loads(fake.log()) == 0);
    cache.get(captured, options[1], device);
    CHECK(loads(fake.log()) == 1);
}

TEST_CASE("cache: a failed load is tried again") {
    const FakeCuda fake;
    const auto device = fake.open();
    runtime::ModuleCache cache;
    const trace::KernelHandle& captured = saxpy;
    fake.fail("cuModuleLoadDataEx", 218);
    CHECK_THROWS_AS(cache.get(captured, {}, device), Error);
    fake.log();
    CHECK_NOTHROW(cache.get(captured, {}, device));
}

TEST_CASE("launches from several threads at once") {
    const Device device = emulator();
    std::vector<std::jthread> threads;
    std::array<std::vector<float>, 4> results;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            const Buffer<float> x = device.upload(std::vector<float>(100, float(t)));
            Buffer<float> y = device.upload(std::vector<float>(100));
            for (int i = 0; i < 5; ++i) device.launch(saxpy, grid(100, 32), 1, x, y, 100);
            results[std::size_t(t)] = y.download();
        });
    threads.clear();
    for (int t = 0; t < 4; ++t) CHECK(results[std::size_t(t)] == std::vector<float>(100, float(5 * t)));
}

}  // namespace
}  // namespace ikat::tests
