// SPDX-License-Identifier: Apache-2.0
// The memory of queues on a CUDA device: which of the driver's functions a program's buffers call.
#include <optional>

#include "runtime/device.hpp"
#include "runtime/graph/graph.hpp"
#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"

namespace ikat::tests {
namespace {
namespace cuda_pool {

using namespace runtime;
using runtime::Stream;  // not the driver's

constexpr std::size_t segment = 2 << 20;
constexpr unsigned not_ready = 600, out_of_memory = 2;

struct Opened {
    explicit Opened(std::string_view pool = {})
        : device(Device::open({.device = "cuda", .pool = pool})), stream(device.stream()), other(device.stream()) {
        fake.log();
    }
    Buffer<std::uint8_t> get(const Stream& on, std::size_t bytes = segment) const {
        return Queue(on).buffer<std::uint8_t>(bytes, "x");
    }

    const FakeCuda fake{};
    const Environment driver{"IKAT_CUDA_DRIVER", FAKE_CUDA};
    const Device device;
    const Stream stream, other;
};

TEST_CASE("cuda pool: a stream has its memory again without the driver") {
    const Opened its;
    const std::uint64_t first = its.get(its.stream).address();
    CHECK_THAT(its.fake.log(), contains("cuMemAlloc 2097152\n") && contains("cuEventRecord"));
    its.fake.fail("cuEventQuery", not_ready);
    for (int i = 0; i < 3; ++i) CHECK(its.get(its.stream).address() == first);
    CHECK_THAT(its.fake.log(), !contains("cuMemAlloc") && !contains("cuMemFree") && !contains("Synchronize"));
}

TEST_CASE("cuda pool: another stream has it when the event behind its last use has passed") {
    const Opened its;
    const std::uint64_t first = its.get(its.stream).address();
    its.fake.log();
    its.fake.fail("cuEventQuery", not_ready);
    std::optional<Buffer<std::uint8_t>> waits = its.get(its.other);
    CHECK(waits->address() != first);
    CHECK(its.fake.log() == "cuEventQuery\ncuMemAlloc 2097152\n");  // from now on an event has passed
    const Buffer<std::uint8_t> second = its.get(its.other);
    CHECK(second.address() == first);
    CHECK(its.fake.log() == "cuEventQuery\n");
}

TEST_CASE("cuda pool: buffers of a graph share memory if one ends before the other begins") {
    const Opened its;
    std::uint64_t first = 0, branch = 0, main = 0, last = 0;
    const Graph graph = Graph::record(its.device, [&](const Queue& q) {
        const auto address = [](const Queue& of, std::size_t bytes = segment) {
            return of.buffer<std::uint8_t>(bytes, "x").address();
        };
        first = address(q);
        CHECK(address(q) == first);
        CHECK(address(q, 100) != first);
        its.other.wait(q.record());
        main = address(q);
        branch = address(Queue(its.other));
        CHECK(address(Queue(its.other)) == branch);
        q.wait(its.other.record());
        const auto kept = q.buffer<std::uint8_t>(segment, "kept");
        CHECK((kept.address() == main || kept.address() == branch));
        last = address(q);
        CHECK(last != kept.address());
    });
    CHECK(main == first);
    CHECK(branch != first);
    CHECK((last == main || last == branch));
}

TEST_CASE("cuda pool: a number that would have buffers of a graph share other memory is refused") {
    const Opened its;
    const auto record = [&](const Queue& q, GraphParameters& parameters) {
        const auto get = [&](std::size_t bytes) { return q.buffer<std::uint8_t>(bytes, "x"); };
        get(100);
        get(200);
        const auto third = get(parameters.number("n", 200u)), fourth = get(100);
    };
    const runtime::GraphExec exec = Graph::record(its.device, record).instantiate();
    CHECK_NOTHROW(exec.update());
    exec.set("n", 100u);  // the third one would have the memory of the first, which the fourth has
    CHECK_THAT(message_of([&] { exec.update(); }), contains("allocates other memory than before"));
}

TEST_CASE("cuda pool: trim frees segments that nothing uses") {
    const Opened its;
    const auto kept = its.get(its.stream, 100);
    its.get(its.stream);
    its.fake.log();
    CHECK(its.device.pool().trim() == segment);
    CHECK(its.fake.log() == "cuEventQuery\ncuMemFree\n");
    CHECK(its.device.pool().report().reserved == segment);
    CHECK(its.device.pool().trim() == 0);
    CHECK(its.fake.log().empty());
}

TEST_CASE("cuda pool: when the driver has no memory, segments are freed, then the program is asked") {
    const Opened its;
    std::optional<Buffer<std::uint8_t>> cache = its.get(its.stream, 100);
    its.get(its.stream);
    int asked = 0;
    its.device.pool().on_out_of_memory([&](std::uint64_t bytes) {
        CHECK(bytes == 3 * segment);
        cache.reset();
        return ++asked == 1;
    });
    its.fake.log();
    its.fake.fail("cuMemAlloc", out_of_memory);
    const std::string message = message_of([&] { its.get(its.stream, 3 * segment); });
    CHECK_THAT(message, contains("no memory for the 6291456 bytes of buffer 'x': the pool uses 0 of 0 bytes") &&
                            contains("no device memory for the 6291456 bytes of buffer 'memory pool'"));
    CHECK(asked == 2);
    CHECK_THAT(its.fake.log(), contains("cuMemAlloc 6291456\ncuCtxSynchronize\ncuMemAlloc 6291456\ncuMemFree\n"
                                        "cuMemAlloc 6291456\n"));
    its.fake.fail("cuMemAlloc", 700);
    CHECK_THROWS_AS(its.get(its.stream), KernelError);
    its.fake.fail("cuMemAlloc", 0);
    its.get(its.stream);
}

TEST_CASE("cuda pool: the driver's pool, and none") {
    {
        const Opened its("driver");
        its.get(its.stream, 100);
        CHECK_THAT(its.fake.log(), contains("cuMemAllocAsync 100 ") && contains("cuMemFreeAsync "));
        CHECK(its.device.pool().report().peak_used == 100);
    }
    const Opened its("off");
    its.get(its.stream, 100);
    CHECK(its.fake.log() == "cuMemAlloc 100\ncuMemFree\n");
    CHECK(its.device.pool().trim() == 0);
}

TEST_CASE("cuda pool: buffers of a device are no part of it") {
    const Opened its;
    static_cast<void>(its.device.buffer<float>(10, "x"));
    CHECK(its.fake.log() == "cuMemAlloc 40\ncuMemFree\n");
    CHECK(its.device.pool().report().reserved == 0);
}

TEST_CASE("cuda pool: what ends with the device is freed") {
    std::string log;
    const FakeCuda fake;
    {
        const Opened its;
        its.get(its.stream, 100), its.get(its.other, 100);
        fake.log();
    }
    CHECK_THAT(fake.log(), contains("cuEventDestroy\ncuEventDestroy\ncuMemFree\ncuDevicePrimaryCtxRelease"));
}

}  // namespace cuda_pool
}  // namespace
}  // namespace ikat::tests
