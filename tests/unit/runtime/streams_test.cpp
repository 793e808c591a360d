// SPDX-License-Identifier: Apache-2.0
// Streams of the emulator: their work is done later, in an order that the seed chooses among those that streams, events
// and waits allow.
#include <ikat/ikat.hpp>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "codegen/support/notes.hpp"
#include "runtime/tensor_view.hpp"
#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;
using Numbers = std::vector<std::uint32_t>;

/// list[0] is how many numbers follow.
const auto append = kernel("append", params("list", "number"), [](InOut<std::uint32_t> list, u32 number) {
    const u32 count = list[0u] + 1u;
    list[count] = number;
    list[0u] = count;
});
constexpr Grid one{{1}, {1}};

/// A device, and a list of what its launches append, in the order that their streams give them: races are asked for.
struct Listed {
    Device device;
    Buffer<std::uint32_t> list = device.buffer<std::uint32_t>(2000, "list");

    explicit Listed(std::string_view schedule = "0")
        : device(Device::open({.device = "emulator", .threads = 1, .schedule = schedule, .check = "no-streams"})) {
        list.fill(0);
    }
    Numbers numbers() const {
        const Numbers all = list.download();
        return {all.begin() + 1, all.begin() + 1 + all[0]};
    }
};

/// Not by a download, which waits: what the host function `told` is called for is done.
void tell(const Stream& stream, std::atomic<int>& told) {
    Queue(stream).call([&] { ++told; });
}

TEST_CASE("streams: a launch is done when the program waits, not when it is enqueued") {
    std::string printed;
    const auto says = kernel("says", params(), [] { print("done\n"); });
    const Device device = Device::open({.device = "emulator", .threads = 1, .printed = &printed});
    const Stream other = device.stream();
    other.launch(says, one);
    other.launch(says, one);
    CHECK(printed.empty());
    const Event event = other.record();
    other.launch(says, one);
    event.synchronize();
    CHECK(printed == "done\ndone\n");
    other.synchronize();
    CHECK(printed == "done\ndone\ndone\n");
    other.launch(says, one);
    device.launch(says, one);  // waits for all streams
    CHECK(printed.size() == 25);
    other.launch(says, one);
    device.synchronize();
    CHECK(printed.size() == 30);
    other.launch(says, one);
    CHECK(device.upload(Numbers{1}).download() == Numbers{1});  // copies wait for all streams, too
    CHECK(printed.size() == 35);
}

TEST_CASE("streams: a query does one piece of work, and a loop of queries all") {
    Listed its;
    const Stream stream = its.device.stream();
    for (std::uint32_t i = 0; i < 3; ++i) stream.launch(append, one, its.list, i);
    const Event event = stream.record();
    stream.launch(append, one, its.list, 3u);
    int queries = 1;
    while (!event.query()) ++queries;
    CHECK(queries == 4);  // three launches and the record
    CHECK(event.query());
    CHECK(its.numbers() == Numbers{0, 1, 2, 3});
}

TEST_CASE("streams: the seed chooses the order, and each seed always the same") {
    const auto order = [](std::string_view schedule) {
        Listed its(schedule);
        const Stream a = its.device.stream(), b = its.device.stream();
        for (std::uint32_t i = 0; i < 3; ++i) {
            a.launch(append, one, its.list, i);
            b.launch(append, one, its.list, 10 + i);
        }
        return its.numbers();
    };
    CHECK(order("0") == Numbers{0, 10, 1, 11, 2, 12});
    std::set<Numbers> seen;
    for (int seed = 1; seed <= 12; ++seed) {
        const Numbers numbers = order(std::to_string(seed));
        CHECK(numbers == order(std::to_string(seed)));
        CHECK(numbers.size() == 6);
        seen.insert(numbers);
        for (const std::uint32_t first : {0u, 10u}) {  // each stream's in their order
            Numbers own;
            for (const std::uint32_t number : numbers)
                if (number / 10 == first / 10) own.push_back(number);
            CHECK(own == Numbers{first, first + 1, first + 2});
        }
    }
    CHECK(seen.size() > 5);
    CHECK(order("") == order(""));
}

TEST_CASE("streams: events and the default stream hold work back in every order") {
    for (int seed = 0; seed < 12; ++seed) {
        Listed its(std::to_string(seed));
        const Stream a = its.device.stream(), b = its.device.stream();
        a.launch(append, one, its.list, 1u);
        const Event event = a.record();
        b.wait(event);
        b.launch(append, one, its.list, 2u);
        a.wait(b.record());
        a.launch(append, one, its.list, 3u);
        CHECK(its.numbers() == Numbers{1, 2, 3});
        // A record of the device is on the default stream.
        b.launch(append, one, its.list, 4u);
        const Event all = its.device.record();
        a.launch(append, one, its.list, 5u);
        all.synchronize();
        CHECK(its.numbers() == Numbers{1, 2, 3, 4, 5});
    }
}

TEST_CASE("streams: a finding is thrown by the wait that covers it, with the launch and the stream") {
    Listed its;
    const Stream a = its.device.stream(), b = its.device.stream();
    its.device.launch(append, one, its.list, 9u);
    auto zero = its.device.upload(Numbers{0}, "zero");
    const auto fails = [&](const Stream& stream) { stream.launch(append, one, zero, 1u); };
    fails(b);
    a.launch(append, one, its.list, 1u);
    a.synchronize();  // does not cover it
    const std::string message = message_of([&] { b.synchronize(); });
    CHECK_THAT(message, contains("zero"));
    CHECK_THAT(message, contains("streams_test.cpp:") && contains("launched here, on stream 2"));
    b.synchronize();  // it was said
    // By an event after it, by a query, by work of the device.
    fails(a);
    const Event event = a.record();
    CHECK_THROWS_AS(event.synchronize(), KernelError);
    fails(a);
    a.launch(append, one, its.list, 2u);  // work goes on
    const Event later = a.record();
    CHECK_THROWS_AS(([&] {
                        while (!later.query()) {}
                    }()),
                    KernelError);
    fails(b);
    CHECK_THROWS_AS(its.list.download(), KernelError);
    CHECK(its.numbers() == Numbers{9, 1, 2});
    // Of several streams all are said.
    fails(a), fails(b);
    CHECK_THAT(message_of([&] { its.device.synchronize(); }), contains("on stream 1") && contains("on stream 2"));
    // A stream's handle may be gone.
    fails(its.device.stream());
    CHECK_THROWS_AS(its.device.synchronize(), KernelError);
}

TEST_CASE("streams: what the program frees is freed after the work before it") {
    Listed its("3");
    const Stream a = its.device.stream(), b = its.device.stream();
    for (std::uint32_t i = 0; i < 20; ++i) {
        const Stream& stream = i % 2 ? a : b;
        auto in_order = Queue(stream).buffer<std::uint32_t>(8, "in_order");
        Queue(stream).fill(in_order, 0u);
        stream.launch(append, one, in_order, i);
        const auto at_once = its.device.upload(Numbers{i}, "at_once");
        Queue(stream).copy(in_order.slice(4, 1), at_once.slice(0, 1));
    }
    // One that a function holds: it ends on another thread.
    auto held = std::make_shared<Buffer<std::uint32_t>>(its.device.buffer<std::uint32_t>(8, "held"));
    Queue(a).fill(*held, 0u);
    b.wait(a.record());
    Queue(b).call([held] {});
    a.launch(append, one, *held, 1u);
    held.reset();
    its.device.synchronize();
    // Large ones are not kept for long.
    for (int i = 0; i < 20; ++i) {
        auto large = Queue(a).buffer<std::uint8_t>(std::size_t{64} << 20, "large");
        Queue(a).fill(large.slice(0, 1), std::uint8_t{1});
    }
    its.device.synchronize();
}

TEST_CASE("streams: work is done without a wait: when much is pending, when the program is idle, at the end") {
    std::atomic<int> told = 0;
    const Environment idle("IKAT_STREAM_IDLE", "20");
    Listed its;
    const Stream stream = its.device.stream();
    for (std::uint32_t i = 0; i < 1030; ++i) stream.launch(append, one, its.list, i);
    tell(stream, told);
    while (told == 0) std::this_thread::yield();  // looks at memory alone
    CHECK(its.numbers().size() == 1030);
    const Environment never("IKAT_STREAM_IDLE", "60000");
    std::string printed;
    {
        const Device device = Device::open({.device = "emulator", .threads = 1, .printed = &printed});
        const auto says = kernel("says", params(), [] { print("x"); });
        device.stream().launch(says, one);
        CHECK(printed.empty());
    }
    CHECK(printed == "x");
    const Environment wrong("IKAT_STREAM_IDLE", "0");
    CHECK_THAT(message_of([] { emulator(); }), contains("IKAT_STREAM_IDLE is '0'"));
}

std::string noted;

TEST_CASE("streams: a finding that nobody waits for is said at the end") {
    send_notes_to([](std::string_view text) { noted += text; });
    {
        const Device device = emulator();
        auto zero = device.upload(Numbers{0}, "zero");
        device.stream().launch(append, one, zero, 1u);
    }
    send_notes_to(nullptr);
    CHECK_THAT(noted, contains("nothing has waited for it") && contains("launched here, on stream 1"));
}

TEST_CASE("streams: with IKAT_LAUNCH_BLOCKING=1 each launch has ended when it returns") {
    const Environment blocking("IKAT_LAUNCH_BLOCKING", "1");
    std::string printed;
    const Device device = Device::open({.device = "emulator", .threads = 1, .printed = &printed});
    const Stream stream = device.stream();
    stream.launch(kernel("says", params(), [] { print("x"); }), one);
    CHECK(printed == "x");
    auto zero = device.upload(Numbers{0}, "zero");
    CHECK_THROWS_AS(stream.launch(append, one, zero, 1u), KernelError);
    const Environment wrong("IKAT_LAUNCH_BLOCKING", "yes");
    CHECK_THAT(message_of([] { emulator(); }), contains("IKAT_LAUNCH_BLOCKING is 'yes'"));
}

}  // namespace
}  // namespace ikat::tests
