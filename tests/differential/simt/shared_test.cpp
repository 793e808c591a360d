// SPDX-License-Identifier: Apache-2.0
// Shared arrays beyond 48 KiB, and what a launch gives after them.
#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

/// 64 KiB and 8 KiB of its own.
const auto large = kernel("large", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 64, 256> a;
    Shared<double, 1024> b;
    auto more = dynamic_shared<float>(n);
    u32 t = thread_id().x;
    for (auto k : range(64)) a[k, t] = x[k * 256 + t];
    for (int i = 0; i < 4; ++i) b[t + 256 * i] = cast<double>(t + 256 * i);
    if_(t < n, [&] { more[t] = -cast<f32>(t); });
    sync_block();
    for (auto k : range(64)) y[k * 256 + t] = a[63 - k, 255 - t];
    y[64 * 256 + t] = cast<f32>(b[1023 - t]);
    if_(t < n, [&] { y[65 * 256 + t] = more[n - 1 - t]; });
    y[66 * 256] = cast<f32>(dynamic_shared_bytes());
});

/// Writes element `at` of the first of two arrays.
constexpr int line_of_array = __LINE__ + 2;
const auto overrun = kernel("overrun", params("y", "at"), [](Out<float> y, u32 at) {
    Shared<float, 16384> a;
    Shared<float, 1024> b;
    u32 t = thread_id().x;
    b[t] = 1.0f;
    a[at + t] = 2.0f;
    sync_block();
    y[t] = a[at + t] + b[t];
});

}  // namespace

TEST_CASE("shared arrays beyond 48 KiB") {
    std::vector<float> values(64 * 256);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i);
    const bool emulates = simt_device().properties().kind == runtime::DeviceKind::Emulator;
    for (const char* target : {"sm_80", "sm_90"}) {
        INFO(target);
        runtime::Device device = emulates ? open_device({.target = target}) : open_device();
        auto y = device.buffer<float>(66 * 256 + 1, "y");
        y.fill(0);
        device.launch(large, runtime::Grid{{1}, {256}, 400}, device.upload(values, "x"), y, 100u);
        const auto found = y.download();
        for (std::size_t i = 0; i < values.size(); ++i) CHECK(found[i] == values[values.size() - 1 - i]);
        for (int t = 0; t < 256; ++t) CHECK(found[64 * 256 + t] == float(1023 - t));
        for (int t = 0; t < 100; ++t) CHECK(found[65 * 256 + t] == -float(99 - t));
        CHECK(found[66 * 256] == 400);
    }
    check_assembled(large, 80);
    CHECK(compile(large.ast(), {.target = "sm_80"}).info.own_dynamic_shared_bytes == 72 * 1024);
    CHECK_THROWS_WITH(compile(large.ast(), {.target = "sm_75"}), Catch::Matchers::Contains("at most 65536"));
}

TEST_CASE("an index beyond one of several arrays beyond 48 KiB is found, with its name") {
    if (simt_device().properties().kind != runtime::DeviceKind::Emulator) return;
    for (const char* target : {"sm_80", "sm_90a"}) {
        INFO(target);
        runtime::Device device = open_device({.target = target});
        auto y = device.buffer<float>(32, "y");
        device.launch(overrun, runtime::Grid{{1}, {32}}, y, 16352u);
        CHECK(y.download() == std::vector<float>(32, 3.0f));
        CHECK_THROWS_WITH(
            device.launch(overrun, runtime::Grid{{1}, {32}}, y, 16384u - 31),
            Catch::Matchers::Contains("shared store of 4 bytes, right past the end of 'shared0' in shared "
                                      "memory (65536 bytes), by block (0,0,0) thread (31,0,0)"));
        CHECK_THROWS_WITH(device.launch(overrun, runtime::Grid{{1}, {32}}, y, ~0u),
                          Catch::Matchers::Contains("4 bytes before the start of 'shared0'") &&
                              Catch::Matchers::Contains("shared_test.cpp:" + std::to_string(line_of_array) + ":") &&
                              Catch::Matchers::Contains("the array is declared here"));
    }
}

}  // namespace ikat::test
