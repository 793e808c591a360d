// SPDX-License-Identifier: Apache-2.0
// Several emulated devices: which one is opened, their memory, peer access, and work that nothing orders.
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>
#include <ikat/work.hpp>

#include <algorithm>
#include <barrier>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backend.hpp"
#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/increment.hpp"

namespace ikat::tests {
namespace {
namespace peers {

using namespace runtime;

constexpr std::uint32_t size = 256;

const auto twice = kernel("twice", params("y", "x", "n"), [](Out<float> y, In<float> x, u32 count) {
    const u32 i = global_id().x;
    return_if(i >= count);
    y[i] = x[i] * 2.0f;
});
const auto count_up = kernel("count_up", params("x"), [](InOut<std::uint32_t> x) { x[thread_id().x] += 1u; });

Device open(int ordinal, const char* schedule = "", std::uint32_t schedules = 0) {
    return Device::open(
        {.device = "emulator", .ordinal = ordinal, .threads = 1, .schedule = schedule, .schedules = schedules});
}

/// Two devices, each with streams and buffers.
struct Two {
    explicit Two(const char* schedule = "") : first(open(0, schedule)), second(open(1, schedule)) {}

    const Environment count{"IKAT_DEVICES", "2"};
    Device first, second;
    Stream a = first.stream(), b = second.stream(), c = second.stream();
    Buffer<float> x = first.upload(std::vector<float>(size, 1.0f), "x"),
                  y = first.upload(std::vector<float>(size), "y"), z = second.upload(std::vector<float>(size), "z"),
                  w = second.upload(std::vector<float>(size), "w");
    Grid all = grid(size, 64);
};

TEST_CASE("peers: IKAT_DEVICES says how many emulated devices there are") {
    const Environment device("IKAT_DEVICE", nullptr), driver("IKAT_CUDA_DRIVER", "/no/such/libcuda.so");
    {
        const Environment none("IKAT_DEVICES", nullptr);
        CHECK(Device::count("emulator") == 1);
        CHECK_THAT(message_of([] { open(1); }),
                   contains("there is no emulated device 1") && contains("IKAT_DEVICES=2 makes them two"));
        CHECK(list_devices().back().selector == "emulator");
    }
    const Environment three("IKAT_DEVICES", "3");
    CHECK((Device::count("emulator") == 3 && Device::count() == 3));
    for (const int ordinal : {0, 2})
        CHECK(open(ordinal).properties().selector == "emulator:" + std::to_string(ordinal));
    for (const int ordinal : {-1, 3})
        CHECK_THAT(message_of([&] { open(ordinal); }),
                   contains("there is no emulated device") && contains("there are 3, numbered from 0"));
    const std::vector<DeviceReport> reports = list_devices();
    REQUIRE(reports.size() == 4);
    CHECK((reports[1].selector == "emulator:0" && reports[3].selector == "emulator:2" && reports[3].problem.empty()));
    const Environment most("IKAT_DEVICES", "16");
    CHECK(Device::count("emulator") == 16);
    for (const char* const wrong : {"0", "17", "-1", "two", "2x"}) {
        const Environment bad("IKAT_DEVICES", wrong);
        const std::string message = message_of([] { Device::count("emulator"); });
        CHECK_THAT(message, contains("IKAT_DEVICES is '" + std::string(wrong) + "'"));
        CHECK(message == message_of([] { open(0); }).substr(message_of([] { open(0); }).find("error: ")));
        CHECK_THAT(list_devices().back().problem, contains("IKAT_DEVICES"));
    }
}

TEST_CASE("peers: a device is named by kind and number") {
    const Environment two("IKAT_DEVICES", "2"), none("IKAT_DEVICE", nullptr);
    CHECK(Device::open({.device = "emulator:1"}).properties().selector == "emulator:1");
    CHECK(Device::open({.device = "emulator:1", .ordinal = 1}).properties().selector == "emulator:1");
    CHECK_THAT(message_of([] { Device::open({.device = "emulator:0", .ordinal = 1}); }),
               contains("give the number once"));
    CHECK_THAT(message_of([] { Device::open({.device = "emulator:2"}); }), contains("there is no emulated device 2"));
    for (const char* const wrong : {"emulator:", "emulator:x", "emulator:-1", "emulator:1x", ":1", "tpu:0"})
        CHECK_THAT(message_of([&] { Device::open({.device = wrong}); }),
                   contains("there is no device '" + std::string(wrong) + "'"));
    const Environment said("IKAT_DEVICE", "emulator:1");
    CHECK(Device::open().properties().selector == "emulator:1");
    CHECK(Device::open({.device = "emulator"}).properties().selector == "emulator:0");
}

TEST_CASE("peers: each device has its own memory, at addresses of its own") {
    Two its;
    std::vector<Buffer<float>> all;
    for (int i = 0; i < 40; ++i)
        all.push_back((i % 2 ? its.first : its.second).buffer<float>(std::size_t(1) << (i % 20), "part"));
    std::ranges::sort(all, {}, [](const Buffer<float>& each) { return each.address(); });
    for (std::size_t i = 1; i < all.size(); ++i)
        CHECK(all[i - 1].address() + 4 * all[i - 1].size() <= all[i].address());
    its.x.fill(3), its.z.fill(4);
    CHECK((its.x.download()[7] == 3 && its.z.download()[7] == 4));
}

TEST_CASE("peers: without access, a launch with memory of another device is refused") {
    Two its;
    CHECK_THAT(message_of([&] { its.first.launch(twice, its.all, its.y, its.z, size); }),
               contains("the buffer of 'x' is on another device, emulator:1") && contains("enable_peer_access()"));
    const Recorder recorder(its.first, Recorder::Runs::No);
    CHECK_THAT(message_of([&] { Queue(recorder).launch(twice, its.all, its.z, its.x, size); }),
               contains("the buffer of 'y' is on another device, emulator:1"));
}

/// What a kernel that is given addresses says.
std::string said_of(const Device& on, const Buffer<std::uint32_t>& in, const Buffer<std::uint32_t>& out) {
    const Module module = on.load(increment, "increment.ptx");
    return message_of([&] { on.launch(module, "increment", grid(4, 32), parameters(in, out, 4)); });
}

TEST_CASE("peers: without access, a kernel that is given an address of another device is told whose it is") {
    Two its;
    const auto here = its.first.upload(std::vector<std::uint32_t>{1, 2, 3, 4}, "here");
    const auto there = its.second.upload(std::vector<std::uint32_t>{5, 6, 7, 8}, "there");
    CHECK_THAT(said_of(its.first, there, here),
               contains("global load of 4 bytes, at offset 0 of buffer 'there' (16 bytes), which is on another device, "
                        "emulator:1, by block") &&
                   contains("device.enable_peer_access(other)"));
    CHECK_THAT(said_of(its.first, here, there), contains("global store of 4 bytes, at offset 0 of buffer 'there'"));
    CHECK_THAT(said_of(its.second, there, here), contains("of buffer 'here'") && contains("emulator:0"));
    CHECK(there.download() == std::vector<std::uint32_t>{5, 6, 7, 8});
    CHECK(here.download() == std::vector<std::uint32_t>{1, 2, 3, 4});
}

TEST_CASE("peers: with access, kernels read and write memory of another device, in one direction") {
    Two its;
    CHECK(its.first.can_access_peer(its.second));
    CHECK_FALSE(its.first.can_access_peer(its.first));
    CHECK_FALSE(its.first.has_peer_access(its.second));
    its.z.fill(5);
    its.first.enable_peer_access(its.second);
    its.first.enable_peer_access(its.second);  // nothing changes
    CHECK(its.first.has_peer_access(its.second));
    CHECK_FALSE(its.second.has_peer_access(its.first));
    its.first.launch(twice, its.all, its.y, its.z, size);
    CHECK(its.y.download() == std::vector<float>(size, 10));
    its.first.launch(twice, its.all, its.w, its.y, size);
    CHECK(its.w.download() == std::vector<float>(size, 20));
    CHECK_THAT(message_of([&] { its.second.launch(twice, its.all, its.z, its.y, size); }),
               contains("the buffer of 'x' is on another device, emulator:0"));
    const auto later = its.second.upload(std::vector<float>(size, 7), "later");  // memory that comes later, too
    const auto large = its.second.upload(std::vector<float>(1 << 21, 9), "large");
    its.first.launch(twice, its.all, its.y, later, size);
    CHECK(its.y.download()[255] == 14);
    its.first.launch(twice, its.all, its.y, large.slice((1 << 21) - size, size), size);
    CHECK(its.y.download()[255] == 18);

    its.first.disable_peer_access(its.second);
    its.first.disable_peer_access(its.second);
    CHECK_FALSE(its.first.has_peer_access(its.second));
    CHECK_THAT(message_of([&] { its.first.launch(twice, its.all, its.y, its.z, size); }),
               contains("on another device"));
    CHECK_THAT(message_of([&] { its.first.enable_peer_access(its.first); }), contains("a device is no peer of itself"));
}

TEST_CASE("peers: a buffer without a name has that of the parameter, wherever it is") {
    Two its;
    its.first.enable_peer_access(its.second);
    const auto nameless = its.second.upload(std::vector<float>(8));
    CHECK_THAT(message_of([&] { its.first.launch(twice, its.all, its.y, nameless, size); }),
               contains("buffer 'x' (32 bytes)"));
}

TEST_CASE("peers: memory of another device is checked as the kernel's own is") {
    Two its;
    const auto here = its.first.upload(std::vector<std::uint32_t>(4), "here");
    auto there = std::optional(its.second.upload(std::vector<std::uint32_t>(3), "there"));
    its.first.enable_peer_access(its.second);
    CHECK_THAT(said_of(its.first, *there, here), contains("right past the end of buffer 'there' (12 bytes)"));
    const auto fresh = its.second.buffer<std::uint32_t>(4, "fresh");
    CHECK_THAT(said_of(its.first, fresh, here),
               contains("an undefined value is stored") && contains("of buffer 'fresh' (16 bytes)"));
    const std::vector<std::byte> bytes = parameters(*there, here, 3);
    there.reset();
    const Module module = its.first.load(increment, "increment.ptx");
    CHECK_THAT(message_of([&] { its.first.launch(module, "increment", grid(4, 32), bytes); }),
               contains("of buffer 'there' (12 bytes), which has been released"));
    its.first.disable_peer_access(its.second);
    CHECK_THAT(said_of(its.first, fresh, here), contains("which is on another device"));
}

TEST_CASE("peers: a device that has ended has no memory") {
    const Environment count("IKAT_DEVICES", "2");
    const Device first = open(0);
    const auto here = first.upload(std::vector<std::uint32_t>(4), "here");
    for (int i = 0; i < 3; ++i) {
        std::vector<std::byte> bytes;
        {
            const Device second = open(1);
            first.enable_peer_access(second), second.enable_peer_access(first);
            const auto there = second.upload(std::vector<std::uint32_t>(4), "there");
            CHECK(said_of(first, there, here) == "");
            bytes = parameters(there, here, 4);
        }
        const Module module = first.load(increment, "increment.ptx");
        CHECK_THAT(message_of([&] { first.launch(module, "increment", grid(4, 32), bytes); }),
                   contains("no buffer is"));
    }
}

TEST_CASE("peers: launches in several orders put memory of other devices back, too") {
    const Environment count("IKAT_DEVICES", "2");
    const Device first = open(0, "", 8), second = open(1);
    first.enable_peer_access(second);
    auto there = second.upload(std::vector<std::uint32_t>(32, 5), "there");
    first.launch(count_up, Grid{{1}, {32}}, there);
    CHECK(there.download() == std::vector<std::uint32_t>(32, 6));
}

struct Program {
    const char* name;
    const char* found;  // in the message
    std::function<void(Two&, bool is_right)> run;
};

const Program programs[] = {
    {"a copy from another device does not wait for what is written there",
     "buffer 'y', which kernel 'twice' on stream 1 of emulator:0 writes",
     [](Two& its, bool is_right) {
         its.a.launch(twice, its.all, its.y, its.x, size);
         if (is_right) its.b.wait(its.a.record());
         its.b.copy(its.z, its.y);
     }},
    {"the event is of before the work", "buffer 'y'",
     [](Two& its, bool is_right) {
         const Event before = its.a.record();
         its.a.launch(twice, its.all, its.y, its.x, size);
         its.b.wait(is_right ? its.a.record() : before);
         its.b.copy(its.z, its.y);
     }},
    {"the source of a copy is written again", "a fill on stream 1 of emulator:0 writes",
     [](Two& its, bool is_right) {
         its.b.copy(its.z, its.y);
         if (is_right) its.a.wait(its.b.record());
         its.a.fill(its.y, 3.0f);
     }},
    {"a chain over a third stream is broken", "buffer 'y'",
     [](Two& its, bool is_right) {
         its.a.launch(twice, its.all, its.y, its.x, size);
         Event passed = its.c.record();
         its.c.wait(its.a.record());
         if (is_right) passed = its.c.record();
         its.b.wait(passed);
         its.b.copy(its.z, its.y);
     }},
    {"a kernel reads what another device is writing", "buffer 'y'",
     [](Two& its, bool is_right) {
         its.second.enable_peer_access(its.first);
         its.a.launch(twice, its.all, its.y, its.x, size);
         if (is_right) its.b.wait(its.a.record());
         its.b.launch(twice, its.all, its.z, its.y, size);
     }},
    {"two devices write the same", "buffer 'z'",
     [](Two& its, bool is_right) {
         its.first.enable_peer_access(its.second);
         its.a.launch(twice, its.all, its.z, its.x, size);
         if (is_right) its.b.wait(its.a.record());
         its.b.launch(twice, its.all, its.z, its.w, size);
     }},
    {"the default stream of another device does not wait", "buffer 'y'",
     [](Two& its, bool is_right) {
         its.second.enable_peer_access(its.first);
         its.a.launch(twice, its.all, its.y, its.x, size);
         if (is_right) its.a.synchronize();
         its.second.launch(twice, its.all, its.z, its.y, size);
     }},
    {"the program waits for the wrong device", "buffer 'y'",
     [](Two& its, bool is_right) {
         its.second.enable_peer_access(its.first);
         its.a.launch(twice, its.all, its.y, its.x, size);
         (is_right ? its.first : its.second).synchronize();
         its.b.launch(twice, its.all, its.z, its.y, size);
     }},
    {"the program knows what the device that it has waited for had waited for", "buffer 'y'",
     [](Two& its, bool is_right) {
         its.a.launch(twice, its.all, its.y, its.x, size);
         if (is_right) its.b.wait(its.a.record());
         its.b.fill(its.w, 1.0f);
         its.second.synchronize();
         its.c.copy(its.z, its.y);
     }},
    {"memory of a queue ends while another device copies it", "buffer 'work'",
     [](Two& its, bool is_right) {
         auto work = Queue(its.a).buffer<float>(size, "work");
         its.a.fill(work, 2.0f);
         its.b.wait(its.a.record());
         its.b.copy(its.z, work);
         if (is_right) its.a.wait(its.b.record());
     }},
};

std::string found_in(const Program& program, bool is_right, const std::string& schedule) {
    Two its(schedule.c_str());
    std::string said = message_of([&] { program.run(its, is_right); });
    for (const Device& device : {its.first, its.second}) said += message_of([&] { device.synchronize(); });
    return said;
}

TEST_CASE("peers: what no event orders between devices is found in every order, and its right twin in none") {
    for (const Program& program : programs) {
        INFO(program.name);
        for (int seed = 0; seed < 6; ++seed) {
            CHECK_THAT(found_in(program, false, std::to_string(seed)), contains(program.found));
            CHECK(found_in(program, true, std::to_string(seed)) == "");
        }
    }
}

/// Sends numbers round two devices, twice.
std::vector<float> sent_round(Two& its) {
    for (int i = 0; i < 2; ++i) {
        its.a.launch(twice, its.all, its.y, its.x, size);
        its.b.wait(its.a.record());
        its.b.copy(its.z, its.y);
        its.b.launch(twice, its.all, its.w, its.z, size);
        its.a.wait(its.b.record());
        its.a.copy(its.x, its.w);
    }
    its.a.synchronize();
    return its.x.download();
}

TEST_CASE("peers: events order work of two devices, whatever the seed") {
    for (int seed = 0; seed < 8; ++seed) {
        Two its(std::to_string(seed).c_str());
        CHECK(sent_round(its) == std::vector<float>(size, 16));
        CHECK(its.b.query());
    }
    const Environment blocking("IKAT_LAUNCH_BLOCKING", "1");
    Two its;
    CHECK(sent_round(its) == std::vector<float>(size, 16));
}

TEST_CASE("peers: without the event, copies give other results in some orders") {
    bool differs = false, is_right = false;
    for (int seed = 0; seed < 12; ++seed) {
        const Environment unchecked("IKAT_CHECK", "no-streams");
        Two its(std::to_string(seed).c_str());
        its.a.launch(twice, its.all, its.y, its.x, size);
        its.b.copy(its.z, its.y);
        its.second.synchronize();
        its.first.synchronize();
        (its.z.download() == std::vector<float>(size, 2) ? is_right : differs) = true;
    }
    CHECK((differs && is_right));
}

TEST_CASE("peers: a loop of queries ends, also if it waits for another device") {
    Two its;
    its.a.launch(twice, its.all, its.y, its.x, size);
    its.b.wait(its.a.record());
    its.b.copy(its.z, its.y);
    int queries = 0;
    while (!its.b.query() && queries < 100) ++queries;
    CHECK(queries < 100);
    CHECK(its.z.download()[0] == 2);
}

TEST_CASE("peers: two threads, each with a device, wait for each other's events") {
    Two its;
    its.second.enable_peer_access(its.first);
    constexpr int rounds = 40;
    const Event made = its.a.record(), taken = its.b.record();  // recorded again in each round
    std::barrier turn(2);
    const auto thread_of = [&](bool is_first) {
        for (int i = 0; i < rounds; ++i) {
            if (is_first) {
                its.a.wait(taken);
                its.a.fill(its.y, float(i));
                Queue(its.a).record(made);
            }
            turn.arrive_and_wait();
            if (!is_first) {
                its.b.wait(made);
                its.b.launch(twice, its.all, its.z, its.y, size);
                Queue(its.b).record(taken);
            }
            turn.arrive_and_wait();
            (is_first ? its.a : its.b).synchronize();  // both at once
        }
    };
    std::exception_ptr failure;
    std::thread other([&] {
        try {
            thread_of(false);
        } catch (...) { failure = std::current_exception(); }
    });
    thread_of(true);
    other.join();
    CHECK(!failure);
    CHECK(its.z.download() == std::vector<float>(size, 2 * (rounds - 1)));
}

TEST_CASE("peers: an event passes over three devices") {
    const Environment count("IKAT_DEVICES", "3");
    const Device devices[] = {open(0), open(1), open(2)};
    const Stream streams[] = {devices[0].stream(), devices[1].stream(), devices[2].stream()};
    Buffer<float> x[] = {devices[0].upload(std::vector<float>(size, 1.0f), "x0"), devices[1].buffer<float>(size, "x1"),
                         devices[2].buffer<float>(size, "x2")};
    for (std::size_t i = 1; i < 3; ++i) {
        if (i == 1) streams[0].fill(x[0], 4.0f);
        streams[i].wait(streams[i - 1].record());
        streams[i].copy(x[i], x[i - 1]);
    }
    streams[2].synchronize();
    CHECK(x[2].download() == std::vector<float>(size, 4));
}

TEST_CASE("peers: a copy that is not on a stream waits for both devices") {
    Two its;
    its.a.launch(twice, its.all, its.y, its.x, size);
    Queue(its.second).copy(its.z, its.y);
    CHECK(its.z.download() == std::vector<float>(size, 2));
    CHECK_THAT(message_of([&] { Queue(its.first).copy(its.z, its.y); }),
               contains("a copy to buffer 'z', which is on another device"));
}

TEST_CASE("peers: of rows of a matrix") {
    const Environment checks("IKAT_CHECK", "strict,registers,undefined-downloads=error");
    Two its;
    std::vector<float> numbers(size);
    std::iota(numbers.begin(), numbers.end(), 0.0f);
    its.x.upload(numbers);
    its.b.copy(its.z.view(16, 16).columns(4, 2), its.x.view(16, 16).columns(1, 2));
    its.b.synchronize();
    CHECK((its.z.download()[4] == 1 && its.z.download()[21] == 18 && its.z.download()[22] == 0));
    const auto fresh = its.first.buffer<float>(size, "fresh");
    its.b.copy(its.z, fresh);  // what nothing has written stays so
    its.b.synchronize();
    CHECK_THAT(message_of([&] { its.z.download(); }), contains("nothing has written any of the 1024 bytes"));
}

TEST_CASE("peers: a graph is work of one device, which may use memory of others") {
    Two its;
    const auto recorded = [&](auto f) {
        return message_of([&] { Graph::record(its.second, [&](const Queue& queue) { f(queue); }).instantiate(); });
    };
    CHECK_THAT(recorded([&](const Queue& queue) { queue.copy(its.z, its.y); }),
               contains("a graph copies from another device"));
    const Event other = its.a.record();
    CHECK_THAT(recorded([&](const Queue& queue) { queue.wait(other); }),
               contains("waits for an event that was not recorded in it"));
    CHECK_THAT(recorded([&](const Queue& queue) {
                   its.a.wait(queue.record());
                   its.a.fill(its.y, 1.0f);
               }),
               contains("a stream that is no part of a recording"));
    CHECK_THAT(recorded([&](const Queue&) { its.second.enable_peer_access(its.first); }),
               contains("a change of peer access"));
    const auto reads_x = [&](const Queue& queue) { queue.launch(twice, its.all, its.z, its.x, size); };
    CHECK_THAT(recorded(reads_x), contains("the buffer of 'x' is on another device, emulator:0"));
    its.second.enable_peer_access(its.first);
    Graph::record(its.second, reads_x).instantiate().launch(its.b);
    its.b.synchronize();
    CHECK(its.z.download() == std::vector<float>(size, 2));
}

}  // namespace peers
}  // namespace
}  // namespace ikat::tests
