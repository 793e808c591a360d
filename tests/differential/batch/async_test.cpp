// SPDX-License-Identifier: Apache-2.0
// Functions of the library that return at once, and their futures.
#include <ikat/batch.hpp>
#include <ikat/stdlib.hpp>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {
namespace futures {

using Floats = std::vector<float>;

bool is_emulator(const Device& device) { return device.properties().kind == DeviceKind::Emulator; }

TEST_CASE("futures: a number, an array, several, or nothing") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats{1, 7, -3}, "x");
    auto y = device.upload(Floats{1, 1, 1}, "y");
    auto total = device.async().sum(x);
    auto scaled = device.async().scale(x, 2.0f);
    auto largest = device.async().argmax(x);
    auto product = device.async().gemm(x.view(1, 3), x.view(3, 1));
    auto changed = device.async().residual_add(x, y);
    static_assert(std::is_same_v<decltype(total), Future<float>>);
    static_assert(std::is_same_v<decltype(scaled), Future<Buffer<float>>>);
    static_assert(std::is_same_v<decltype(largest), Future<std::tuple<float, std::uint32_t>>>);
    static_assert(std::is_same_v<decltype(changed), Future<void>>);
    CHECK(total.get() == 5);
    const Buffer<float> buffer = scaled.get();
    CHECK(buffer.download() == Floats{2, 14, -6});
    CHECK(largest.get() == std::tuple{7.0f, 1u});
    CHECK(product.shape() == std::vector<std::uint64_t>{1, 1});
    CHECK(product.get().download() == Floats{59});
    changed.get();
    CHECK(device.download(y) == Floats{2, 8, -2});
}

TEST_CASE("futures: by name, of another type, and in the order of one stream") {
    const Device device = test::open_device();
    auto x = device.upload(Floats{1, 2}, "x");
    const Async later = device.async();
    auto rounded = later.cast<half>(x);
    auto sum = later.call<float>("sum", x);
    auto half_sum = later.call<float>("scale", x, arg("factor", 0.5));
    later.residual_add(half_sum.get(), x).wait();
    CHECK(rounded.get().download() == std::vector<half>{half(1.0f), half(2.0f)});
    CHECK(sum.get().download() == Floats{3});  // by its name, a number is an array
    CHECK(device.download(x) == Floats{1.5f, 3});
}

TEST_CASE("futures: the call returns at once, and ready() tells when it is done") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats(1000, 1.0f), "x");
    Future<float> sum = device.async().sum(x);
    int asked = 0;
    while (!sum.ready()) ++asked;
    if (is_emulator(device)) CHECK(asked > 0);
    CHECK(sum.ready());
    CHECK(sum.get() == 1000);
    CHECK(sum.ready());
}

TEST_CASE("futures: get() waits for its own work, and gives the value once") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats(1000, 1.0f), "x");
    auto other = device.upload(Floats(1000, 1.0f), "other");
    const Stream slow = device.stream();
    Future<float> sum = device.async().sum(x);
    for (int i = 0; i < 200; ++i) stdlib::elementwise(slow, stdlib::Unary::relu, x, other);
    CHECK(sum.get() == 1000);
    if (is_emulator(device)) CHECK_FALSE(slow.query());
    const std::string said = message_of([&] { static_cast<void>(sum.get()); });
    CHECK(said.contains("async_test.cpp:" + std::to_string(__LINE__ - 1)));
    CHECK(said.contains("get() of a future whose value has been taken"));
    slow.synchronize();
}

TEST_CASE("futures: mistakes in a call are errors of its line, and nothing is enqueued") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats(12, 1.0f), "x");
    const std::string said = message_of([&] { device.async().gemm(x.view(3, 4), x.view(3, 4)); });
    CHECK(said.contains("async_test.cpp:" + std::to_string(__LINE__ - 1)));
    CHECK(said.contains("its k is 3, and that of 'A' is 4"));
    CHECK(message_of([&] {
              device.async().bias_activation(x.view(3, 4), x.slice(0, 4), "relo");
          }).contains("'activation' is 'relo'"));
    CHECK(device.pool().report().used == 0);
}

/// A stream writes x, and a sum reads it: nothing orders the two.
struct Unordered {
    Device device = test::open_device({.check = "streams"});
    Buffer<float> x = device.upload(Floats(1000, 1.0f), "x"), y = device.upload(Floats(1000, 1.0f), "y");
    Stream writer = device.stream();

    Future<float> begin() {
        for (int i = 0; i < 20; ++i) stdlib::elementwise(writer, stdlib::Unary::relu, y, x);
        return device.async().sum(x);
    }
};

TEST_CASE("futures: what nothing orders is found, whoever waits") {
    if (!is_emulator(test::open_device())) return;
    for (int way = 0; way < 3; ++way) {
        Unordered its;
        std::string said;
        {
            Future<float> sum = its.begin();
            if (way == 1) said = message_of([&] { sum.wait(); });
            if (way == 2)
                said = message_of([&] {
                    while (!sum.ready()) {}
                });
        }  // unread: waits for nothing
        if (way == 0) CHECK_FALSE(its.writer.query());
        said += message_of([&] { its.device.synchronize(); });
        INFO(way << said);
        CHECK(said.contains("nothing orders the two"));
        CHECK(said.contains("buffer 'x'"));
    }
}

TEST_CASE("futures: an event orders them with other streams") {
    Unordered its;
    const Async later = its.device.async();
    stdlib::elementwise(its.writer, stdlib::Unary::relu, its.y, its.x);
    later.stream().wait(its.writer.record());
    Future<float> sum = later.sum(its.x);
    its.writer.wait(sum.event());
    its.writer.fill(its.x, 0.0f);
    CHECK(sum.get() == 1000);
    its.device.synchronize();
    CHECK(its.device.download(its.x)[0] == 0);
}

TEST_CASE("futures: unread ones give their memory back, however many") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats(1000, 1.0f), "x");
    for (int i = 0; i < 300; ++i) {
        const auto unread = device.async().relu(x);
        const auto number = device.async().sum(x);
    }
    device.synchronize();
    CHECK(device.pool().report().used == 0);
}

}  // namespace futures
}  // namespace
}  // namespace ikat::tests
