// SPDX-License-Identifier: Apache-2.0
// Functions of the library on a device and on a stream: what they wait for, what they allocate, where errors come.
#include <string>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "runtime/exec/recorder.hpp"
#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/elementwise/saxpy.hpp"
#include "stdlib/reduction/dot.hpp"
#include "stdlib/softmax/softmax.hpp"
#include "tests/catch.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;

std::size_t count(const std::string& log, std::string_view call) {
    std::size_t out = 0;
    for (std::size_t at = log.find(call); at != log.npos; at = log.find(call, at + 1)) ++out;
    return out;
}

Device fake_device() {
    setenv("IKAT_CUDA_DRIVER", FAKE_CUDA, 1);
    const Device device = Device::open({.device = "cuda"});
    unsetenv("IKAT_CUDA_DRIVER");
    return device;
}

constexpr std::size_t n = 5000;  // three blocks of a reduction

TEST_CASE("on a stream, a function of the library only enqueues; on a device it waits for its end") {
    const FakeCuda fake;
    const Device device = fake_device();
    const Buffer<float> x = device.buffer<float>(n);
    auto y = device.buffer<float>(n), total = device.buffer<float>(1);
    auto workspace = device.buffer<std::uint8_t>(stdlib::reduction_workspace(n));
    const Stream stream = device.stream();
    fake.log();
    stdlib::saxpy(stream, 2, x, y);
    stdlib::sum(stream, x, total, workspace);
    stdlib::dot(stream, x, y, total, workspace);
    std::string log = fake.log();
    CHECK(count(log, "cuLaunchKernel") == 5);
    CHECK(count(log, "cuMemAlloc") == 0);
    CHECK(count(log, "Synchronize") == 0);
    CHECK(count(log, "256 1 1 0 0 ") == 0);  // on the default stream

    stdlib::saxpy(device, 2, x, y);
    log = fake.log();
    CHECK(count(log, "cuLaunchKernel") == 1);
    CHECK(log.ends_with("cuCtxSynchronize\n"));
    stdlib::sum(device, x, total);
    log = fake.log();
    CHECK(count(log, "cuLaunchKernel") == 2);
    CHECK(count(log, "cuMemAlloc") == 1);
    CHECK(log.ends_with("cuCtxSynchronize\ncuEventCreate 0\ncuEventRecord 0\n"));
    for (int i = 0; i < 2; ++i) stdlib::sum(stream, x, total);  // its workspace is what the device has left
    log = fake.log();
    CHECK(count(log, "cuLaunchKernel") == 4);
    CHECK(count(log, "cuMemAlloc") == 0);
    CHECK(count(log, "Synchronize") == 0);
}

TEST_CASE("what goes wrong comes on a stream with its synchronisation, on a device from the function") {
    const FakeCuda fake;
    const Device device = fake_device();
    const Buffer<float> x = device.buffer<float>(n);
    auto y = device.buffer<float>(n);
    const Stream stream = device.stream();
    fake.fail("cuStreamSynchronize", 700);
    fake.fail("cuCtxSynchronize", 700);
    CHECK_NOTHROW(stdlib::saxpy(stream, 2, x, y));
    CHECK_THROWS_AS(stream.synchronize(), KernelError);
    CHECK_THROWS_AS(stdlib::saxpy(device, 2, x, y), KernelError);
    // What is wrong with the arguments comes at once.
    auto small = device.buffer<float>(1);
    const std::string message = message_of([&] { stdlib::saxpy(stream, 2, x, small); });
    CHECK_THAT(message, contains("queue_test.cpp:"));
    CHECK_THAT(message, contains("saxpy: 'x' is 5000, and 'y' is 1"));
    const std::string of_launch = message_of([&] { stdlib::elementwise(stream, stdlib::Unary::relu, y, y); });
    CHECK_THAT(of_launch, contains("queue_test.cpp:"));
    CHECK_THAT(of_launch, contains("elementwise: 'x' (read) and 'y' (written) are the same memory"));
    fake.fail("cuStreamSynchronize", 0);
    fake.fail("cuCtxSynchronize", 0);
}

TEST_CASE("a workspace that is given is large enough; without one the queue gives it") {
    const Device device = emulator();
    const Stream stream = device.stream();
    const Buffer<float> x = device.upload(std::vector<float>(n, 1.0f));
    auto total = device.buffer<float>(3), value = device.buffer<float>(1);
    auto index = device.buffer<std::uint32_t>(1);
    auto workspace = device.buffer<std::uint8_t>(stdlib::reduction_workspace(n));
    const std::string message = message_of([&] { stdlib::sum(stream, x, total, workspace.slice(0, 16)); });
    CHECK_THAT(message, contains("sum: 'workspace' has 16 elements, 32 are needed"));
    CHECK_THAT(message, contains("queue_test.cpp:"));
    stdlib::argmax(stream, x, value, index);
    CHECK(device.pool().report().peak_used >= 32);
    stream.synchronize();
    CHECK(value.download()[0] == 1);
    CHECK(device.pool().report().used == 0);
    value.fill(0);
    auto larger = device.buffer<std::uint8_t>(stdlib::reduction_workspace(n) + 16);
    CHECK_THAT(message_of([&] { stdlib::sum(stream, x, total, larger.slice(4, stdlib::reduction_workspace(n))); }),
               contains("sum: 'workspace' begins at byte 4 of its buffer"));
    stdlib::sum(stream, x, total, larger.slice(16, stdlib::reduction_workspace(n)));
    CHECK_THAT(message_of([&] { stdlib::dot(device, x, x, total.slice(0, 0)); }),
               contains("dot: 'total' has 0 elements, 1 are needed"));
    // One block needs none.
    const Buffer<float> few = device.upload(std::vector<float>(2048, 1.0f));
    stdlib::sum(stream, few, total.slice(1, 1));
    stdlib::norm2(stream, x, total.slice(2, 1), workspace);
    stdlib::dot(stream, x, x, total, workspace);
    stdlib::argmax(stream, x, value, index, workspace);
    stream.synchronize();
    CHECK(total.download() == std::vector<float>{5000, 2048, 5000});
    CHECK(index.download()[0] == 0);
    CHECK(value.download()[0] == 1);
}

TEST_CASE("functions give on a stream what they give on a device") {
    const Device device = emulator();
    const Stream stream = device.stream();
    std::vector<float> host(n);
    for (std::size_t i = 0; i < n; ++i) host[i] = float(i % 37) - 18;
    const Buffer<float> x = device.upload(host);
    auto y = device.buffer<float>(n), z = device.buffer<float>(n);
    stdlib::softmax(device, x.view(50, 100), y.view(50, 100));
    stdlib::elementwise(device, stdlib::Unary::relu, y, z);
    const std::vector<float> want = z.download();
    z.fill(0);
    stdlib::softmax(stream, x.view(50, 100), y.view(50, 100));
    stdlib::elementwise(stream, stdlib::Unary::relu, y, z);
    stream.synchronize();
    CHECK(z.download() == want);
    auto total = device.buffer<float>(1);
    stdlib::max(stream, x, total, device.buffer<std::uint8_t>(stdlib::reduction_workspace(n)));
    CHECK(total.download()[0] == stdlib::max(device, x));
}

TEST_CASE("a program's own functions take a Queue, too") {
    const auto twice = kernel("twice", params("x", "n"), [](InOut<float> x, u32 n) {
        const u32 i = global_id().x;
        if_(i < n, [&] { x[i] = 2.0f * x[i]; });
    });
    const auto run = [&](const Queue& queue, Buffer<float>& x) {
        queue.launch(twice, grid(x.size(), 32), x, x.size());
    };
    const Device device = emulator();
    auto x = device.upload(std::vector<float>{1, 2, 3});
    run(device, x);
    const Stream stream = device.stream();
    run(stream, x);
    stream.synchronize();
    CHECK(x.download() == std::vector<float>{4, 8, 12});
}

TEST_CASE("launches are recorded, and run or only checked") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(std::vector<float>{1, 2});
    auto y = device.upload(std::vector<float>{1, 1});
    const Recorder all(device, Recorder::Runs::Yes), none(device, Recorder::Runs::No);
    stdlib::saxpy(all, 2, x, y);
    stdlib::saxpy(none, 2, x, y);
    CHECK_THROWS_AS(stdlib::saxpy(none, 2, y, y), Error);
    REQUIRE(none.launches().size() == 1);
    CHECK(none.launches()[0].kernel->name() == std::string("saxpy"));
    CHECK(none.launches()[0].grid.blocks.count() == 1);
    CHECK(y.download() == std::vector<float>{3, 5});
    stdlib::saxpy(all, 2, x, y);
    CHECK(y.download() == std::vector<float>{5, 9});
    CHECK(all.launches().size() == 2);
}

}  // namespace
}  // namespace ikat::tests
