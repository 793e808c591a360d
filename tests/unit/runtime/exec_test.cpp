// SPDX-License-Identifier: Apache-2.0
// Work as a value: what a queue takes, on a device, a stream and a recorder.
#include <numeric>
#include <optional>
#include <stdexcept>

#include "ikat/ikat.hpp"
#include "runtime/exec/recorder.hpp"
#include "runtime/tensor_view.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"
#include "tests/unit/runtime/increment.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;
using Runs = Recorder::Runs;

std::vector<float> counted(std::size_t n) {
    std::vector<float> out(n);
    std::iota(out.begin(), out.end(), 0.0f);
    return out;
}

const auto twice = kernel("twice", params("x", "n"), [](InOut<float> x, u32 n) {
    const u32 i = global_id().x;
    if_(i < n, [&] { x[i] = 2.0f * x[i]; });
});

/// What a test does with a queue, on each kind of sink; a recorder's nodes are done on a stream.
template <class Body>
void on_each_sink(const Device& device, Body body) {
    SECTION("a device") { body(device); }
    SECTION("a stream") {
        const Stream stream = device.stream();
        body(stream);
        stream.synchronize();
    }
    SECTION("a recorder that runs") { body(Recorder(device, Runs::Yes)); }
    SECTION("a recorder, and later a stream") {
        const Recorder recorder(device, Runs::No);
        body(recorder);
        const Stream stream = device.stream();
        for (const Node& node : recorder.nodes()) Queue(stream).submit(node);
        stream.synchronize();
    }
}

TEST_CASE("exec: what is recorded with memory of its own is done twice") {
    const Device device = emulator();
    auto x = device.upload(counted(4), "x");
    const Recorder recorder(device, Runs::No);
    {
        const Queue queue(recorder);
        auto between = queue.buffer<float>(4, "between");
        queue.copy(between.view(2, 2), x.view(2, 2));
        queue.launch(twice, grid(4, 32), between, 4);
        queue.copy(x.view(2, 2), between.view(2, 2));
    }
    for (int i = 0; i < 2; ++i)
        for (const Node& node : recorder.nodes()) Queue(device).submit(node);
    CHECK(x.download() == std::vector<float>{0, 4, 8, 12});
}

TEST_CASE("exec: launches, copies, fills and memory of a queue") {
    const Device device = emulator();
    auto x = device.upload(counted(24), "x");
    auto y = device.buffer<float>(12, "y");
    on_each_sink(device, [&](const Queue& queue) {
        queue.launch(twice, grid(24, 32), x, 24);
        auto between = queue.buffer<float>(12, "between");
        queue.copy(between.view(3, 4), x.view(3, 4).pitched(8));  // the left half of each row
        queue.fill(y, 7.0f);
        queue.copy(y.slice(0, 8).view(2, 4), between.slice(0, 8).view(2, 4));
    });
    CHECK(y.download() == std::vector<float>{0, 2, 4, 6, 16, 18, 20, 22, 7, 7, 7, 7});
}

TEST_CASE("exec: copies of three dimensions, and of what is not there") {
    const Device device = emulator();
    auto x = device.upload(counted(24));
    auto y = device.buffer<float>(24), z = device.buffer<float>(4);
    const Queue queue(device);
    queue.fill(y, -1.0f);
    queue.copy(y.view(2, 2, 2).pitched(8, 3), x.view(2, 2, 2).pitched(12, 4));
    CHECK(y.download() == std::vector<float>{0,  1,  -1, 4,  5,  -1, -1, -1, 12, 13, -1, 16,
                                             17, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1});
    const auto refused = [&](auto&& body) { return message_of([&] { body(); }); };
    CHECK_THAT(refused([&] { queue.copy(y.view(2, 4), x.view(4, 2)); }),
               contains("exec_test.cpp") && contains("a copy between arrays of different types or extents"));
    CHECK_THAT(refused([&] { queue.copy(y.view(1, 2, 2, 2), x.view(1, 2, 2, 2)); }),
               contains("a copy of an array of more than three dimensions"));
    const TensorView columns = TensorView(x.view(4, 6)).permuted({1, 0});
    const MutableTensorView to(TensorView(y.view(6, 4)));
    CHECK_THAT(refused([&] { queue.copy(to, columns); }),
               contains("a copy of an array whose last dimension is not dense"));
    node::Copy beyond{.to = {z.memory().whole()}, .from = {x.memory().whole()}, .bytes = 20};
    CHECK_THAT(refused([&] { queue.submit({beyond}); }), contains("a copy of 20 bytes for a part of buffer ''"));
}

TEST_CASE("exec: copies to the host and from it") {
    const Device device = emulator();
    auto x = device.buffer<float>(4);
    std::vector<float> from{1, 2, 3, 4}, to(4);
    const auto host = [](std::vector<float>& memory) { return reinterpret_cast<std::byte*>(memory.data()); };
    const Stream stream = device.stream();
    const Queue queue(stream);
    queue.submit({node::Copy{.to = {x.memory().whole()}, .from = {{}, host(from)}, .bytes = 16}});
    queue.submit({node::Copy{.to = {{}, host(to)}, .from = {x.memory().whole()}, .bytes = 16}});
    stream.synchronize();
    CHECK(to == from);
}

TEST_CASE("exec: copies between devices") {
    const Device one = emulator(), other = emulator();
    const auto x = one.upload(counted(12), "x");
    auto y = other.buffer<float>(6, "y");
    Queue(other).copy(y.view(2, 3), x.view(2, 3).pitched(4));
    CHECK(y.download() == std::vector<float>{0, 1, 2, 4, 5, 6});
    CHECK_THAT(message_of([&] { Queue(one).copy(y.view(2, 3), x.view(2, 3)); }),
               contains("a copy to buffer 'y', which is on another device"));
    CHECK_THAT(message_of([&] { Queue(one).fill(y, 1.0f); }),
               contains("a fill of buffer 'y', which is on another device"));
    std::vector<std::byte> host(24);
    const node::Copy away{.to = {{}, host.data()}, .from = {y.memory().whole()}, .bytes = 24};
    CHECK_THAT(message_of([&] { Queue(one).submit({away}); }),
               contains("a copy from buffer 'y', which is on another device"));
}

TEST_CASE("exec: memory that ends before the work on it") {
    const Device device = emulator();
    const Recorder recorder(device, Runs::No);
    auto y = device.buffer<float>(4, "y");
    {
        auto x = device.upload(counted(4), "x");
        Queue(recorder).launch(twice, grid(4, 32), x, 4);
        Queue(recorder).fill(x, 1.0f);
        Queue(recorder).copy(y.view(2, 2), x.view(2, 2));
    }
    const auto refused = [&](std::size_t i) {
        return message_of([&] { Queue(device).submit(recorder.nodes().at(i)); });
    };
    CHECK_THAT(refused(0),
               contains("exec_test.cpp") && contains("launch of 'twice': the buffer of 'x' has been freed"));
    CHECK_THAT(refused(1),
               contains("exec_test.cpp") && contains("a fill: a slice or a view of a buffer that has been freed"));
    CHECK_THAT(refused(2),
               contains("exec_test.cpp") && contains("a copy: a slice or a view of a buffer that has been freed"));
}

TEST_CASE("exec: a launch keeps its kernel, its module and raw bytes") {
    const Device device = emulator();
    struct Pair {
        std::uint32_t first, second;
    };
    auto out = device.buffer<std::uint32_t>(2);
    const Recorder recorder(device, Runs::No);
    {
        const auto fill = kernel("fill", params("bytes", "out"), [](Bytes<8, 4> bytes, Out<std::uint32_t> out) {
            out[0] = bytes.read<u32>(0);
            out[1] = bytes.read<u32>(4);
        });
        Pair pair{3, 5};
        Queue(recorder).launch(fill, Grid{{1}, {1}}, pair, out);
        pair = {8, 9};
    }
    Queue(device).submit(recorder.nodes().at(0));
    CHECK(out.download() == std::vector<std::uint32_t>{3, 5});
}

TEST_CASE("exec: a module of another device is refused by the call, also where it is only recorded") {
    const Device device = emulator(), elsewhere = emulator();
    const Module module = elsewhere.load(increment, "increment.ptx");
    auto x = device.upload(std::vector<std::uint32_t>{1}, "x");
    const Recorder recorder(device, Runs::No);
    CHECK_THAT(message_of([&] { Queue(recorder).launch(module, "increment", grid(1, 1), parameters(x, x, 1)); }),
               contains("launch of 'increment': its module was loaded by another device"));
    CHECK(recorder.nodes().empty());
}

TEST_CASE("exec: an argument is exchanged") {
    const Device device = emulator();
    auto x = device.upload(counted(4), "x"), y = device.upload(counted(4), "y");
    const Recorder recorder(device, Runs::No);
    Queue(recorder).launch(twice, grid(4, 32), x, 4);
    node::Launch launch = recorder.launches().at(0);
    node::exchange(launch, 0, {.type = ir::Type::F32, .part = y.memory().whole()}, device.backend());
    Queue(device).submit({launch});
    CHECK(x.download() == counted(4));
    CHECK(y.download() == std::vector<float>{0, 2, 4, 6});
    const auto refused = [&](std::size_t position, const Argument& argument) {
        return message_of([&] { node::exchange(launch, position, argument, device.backend()); });
    };
    CHECK_THAT(refused(0, {.type = ir::Type::U32, .bits = 1}),
               contains("exec_test.cpp") && contains("parameter 'x' is inout f32[], the argument is u32"));
    CHECK_THAT(refused(2, {}), contains("a launch has no argument 2 to exchange"));
    const Device elsewhere = emulator();
    const auto z = elsewhere.upload(counted(4));
    CHECK_THAT(refused(0, {.type = ir::Type::F32, .part = z.memory().whole()}),
               contains("the buffer of 'x' is on another device"));
    CHECK_THAT(message_of([&] { Queue(elsewhere).submit({launch}); }),
               contains("the buffer of 'x' is on another device"));
}

TEST_CASE("exec: functions of the program, and events between streams") {
    const Device device = emulator();
    auto x = device.upload(counted(4));
    const Stream first = device.stream(), second = device.stream();
    std::vector<int> order;
    Queue(first).call([&] { order.push_back(1); });
    const Event event = first.record();
    second.wait(event);
    Queue(second).call([&] { order.push_back(2); });
    second.launch(twice, grid(4, 32), x, 4);
    second.synchronize();
    CHECK(order == std::vector<int>{1, 2});
    CHECK(x.download()[3] == 6);

    Queue(first).call([] { throw std::runtime_error("from the program"); });
    CHECK_THROWS_WITH(first.synchronize(), "from the program");
    first.synchronize();

    const Device other = emulator();
    other.stream().wait(event);  // the host waits
    CHECK_THAT(message_of([&] { Queue(other).record(event); }), contains("an event is recorded on another device"));
}

TEST_CASE("exec: memory of a stream outlives the stream's handle") {
    const Device device = emulator();
    std::optional<Buffer<float>> kept;
    {
        const Stream stream = device.stream();
        kept = Queue(stream).buffer<float>(4, "kept");
        Queue(stream).fill(*kept, 3.0f);
    }
    CHECK(kept->download() == std::vector<float>(4, 3.0f));
    kept.reset();
}

}  // namespace
}  // namespace ikat::tests
