// SPDX-License-Identifier: Apache-2.0
// Mistakes with streams, each beside the program as it should be: the first is found in every order of the work, the
// second in none accused.
#include <ikat/async.hpp>
#include <ikat/ikat.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/stream_programs.hpp"

namespace ikat::tests {
namespace {
namespace stream_races {

using namespace runtime;
using stream_programs::check, stream_programs::increment, stream_programs::Program, stream_programs::Scene,
    stream_programs::size, stream_programs::twice;

const auto count_up =
    kernel("count_up", params("total"), [](InOut<std::uint32_t> total) { atomic_add(total[0u], 1u); });
const auto rows_up = kernel("rows_up", params("x"), [](InOut<float, 2> x) { x[block_id().x, thread_id().x] += 1.0f; });

const auto every_second = kernel("every_second", params("x", "first"),
                                 [](InOut<float> x, u32 first) { x[global_id().x * 2u + first] += 1.0f; });
/// Turns each 32 numbers round, by copies in flight.
const auto through_shared = kernel("through_shared", params("y", "x"), [](Out<float> y, In<float> x) {
    Shared<float, 32> tile;
    copy_async<4>(tile[thread_id().x], x[global_id().x]);
    copy_commit();
    copy_wait<0>();
    sync_block();
    y[global_id().x] = tile[31u - thread_id().x];
});

const Program programs[] = {
    {"an event is missing", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.use(its.b);
     }},
    {"the event is of the wrong stream", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         its.b.wait(is_right ? its.a.record() : its.c.record());
         its.use(its.b);
     }},
    {"the wrong stream waits", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         (is_right ? its.b : its.c).wait(its.a.record());
         its.use(its.b);
     }},
    {"the event is recorded too early", "buffer 'y'",
     [](Scene& its, bool is_right) {
         Event event = its.a.record();
         its.make(its.a);
         if (is_right) event = its.a.record();
         its.b.wait(event);
         its.use(its.b);
     }},
    {"the wait comes before the event is recorded again", "buffer 'y'",
     [](Scene& its, bool is_right) {
         const Event event = its.a.record();
         if (!is_right) its.b.wait(event);
         its.make(its.a);
         Queue(its.a).record(event);
         if (is_right) its.b.wait(event);
         its.use(its.b);
     }},
    {"the wait comes after the use", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.use(its.b);
         if (!is_right) its.b.wait(its.a.record());
     }},
    {"the program waits for another stream", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         its.c.launch(increment, its.all, its.x.slice(0, 0), 0u);
         (is_right ? its.a : its.c).synchronize();
         its.use(its.b);
     }},
    {"the program waits for an earlier event", "buffer 'y'",
     [](Scene& its, bool is_right) {
         const Event before = its.a.record();
         its.make(its.a);
         (is_right ? its.a.record() : before).synchronize();
         its.use(its.b);
     }},
    {"the program asks and does not wait for the answer", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.b.launch(increment, its.all, its.z, size);
         its.make(its.a);
         const Event event = its.a.record();
         do {
         } while (!event.query() && is_right);
         its.use(its.b);
     }},
    {"two streams write the same", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.make(its.b);
     }},
    {"what is read is written by another stream", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.use(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.make(its.b);
     }},
    {"what its own stream has read since then", "which kernel 'twice' on stream 1 writes",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         const Event made = its.a.record();
         its.use(its.a);
         if (is_right) its.b.wait(made);
         its.b.launch(twice, its.all, its.x.slice(0, 0), its.y, 0u);
         its.b.launch(twice, its.all, Queue(its.b).buffer<float>(size, "w"), its.y, size);
     }},
    {"a fill on another stream", "a fill on stream 2 writes",
     [](Scene& its, bool is_right) {
         its.use(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.b.fill(its.y, 3.0f);
     }},
    {"a copy on another stream", "a copy on stream 2 reads",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.b.copy(its.z, its.y);
     }},
    {"parts of a buffer have an element in common", "bytes 252 to 255 of buffer 'y'",
     [](Scene& its, bool is_right) {
         its.a.launch(twice, its.all, its.y.slice(0, 64), its.x, 64u);
         its.b.launch(twice, its.all, its.y.slice(is_right ? 64 : 63, 64), its.x, 64u);
     }},
    {"columns of a matrix overlap", "buffer 'y'",
     [](Scene& its, bool is_right) {
         const auto rows = its.y.view(16, 16);
         its.a.launch(rows_up, Grid{{16}, {8}}, rows.columns(0, 8));
         its.b.launch(rows_up, Grid{{16}, {8}}, rows.columns(is_right ? 8 : 7, 8));
     }},
    {"a copy of columns beside a kernel of others", "buffer 'y'",
     [](Scene& its, bool is_right) {
         const auto rows = its.y.view(16, 16);
         its.a.launch(rows_up, Grid{{16}, {8}}, rows.columns(0, 8));
         its.b.copy(rows.columns(is_right ? 8 : 4, 4), its.x.view(16, 16).columns(0, 4));
     }},
    {"a copy of columns of which another stream writes the last",
     "a copy on stream 2 reads bytes 976 to 983 of buffer 'y'",
     [](Scene& its, bool is_right) {
         its.a.launch(rows_up, Grid{{1}, {8}}, its.y.slice(240, 16).view(1, 16).columns(is_right ? 0 : 4, 8));
         its.b.copy(its.x.view(16, 2), its.y.view(16, 16).columns(is_right ? 8 : 4, 2));
     }},
    {"of every second element the same", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.a.launch(every_second, Grid{{2}, {64}}, its.y, 0u);
         its.b.launch(every_second, Grid{{2}, {64}}, its.y, is_right ? 1u : 0u);
     }},
    {"copies in flight read what another stream writes", "buffer 'x', which kernel 'through_shared' on stream 1 reads",
     [](Scene& its, bool is_right) {
         its.a.launch(through_shared, Grid{{8}, {32}}, its.y, its.x);
         if (is_right) its.b.wait(its.a.record());
         its.b.fill(its.x.slice(9, 1), 2.0f);
     }},
    {"a buffer of a pipeline is filled again before it has been used", "buffer 'part ",
     [](Scene& its, bool is_right) {
         Buffer<float> parts[] = {its.device.buffer<float>(size, "part 0"), its.device.buffer<float>(size, "part 1")};
         std::vector<Event> used;
         for (int i = 0; i < 4; ++i) {
             Buffer<float>& part = parts[i % 2];
             if (i >= 2 && is_right) its.a.wait(used[std::size_t(i) - 2]);
             its.a.launch(twice, its.all, part, its.x, size);
             its.b.wait(its.a.record());
             its.b.launch(twice, its.all, its.z, part, size);
             used.push_back(its.b.record());
         }
         its.device.synchronize();
     }},
    {"a pipeline waits for the step before last", "buffer 'y'",
     [](Scene& its, bool is_right) {
         std::vector<Event> made;
         for (int i = 0; i < 3; ++i) {
             if (i > 0) its.a.wait(its.b.record());
             its.make(its.a);
             made.push_back(its.a.record());
             its.b.wait(made[std::size_t(is_right ? i : std::max(0, i - 1))]);
             its.use(its.b);
         }
     }},
    {"a fork that does not wait", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         const Event fork = its.a.record();
         its.b.wait(fork);
         if (is_right) its.c.wait(fork);
         its.b.launch(twice, its.all, its.x.slice(0, size), its.y, size);
         its.c.launch(twice, its.all, its.z, its.y, size);
     }},
    {"a join that forgets a branch", "buffer 'z'",
     [](Scene& its, bool is_right) {
         its.b.launch(twice, its.all, its.y, its.x, size);
         its.c.launch(twice, its.all, its.z, its.x, size);
         its.a.wait(its.b.record());
         if (is_right) its.a.wait(its.c.record());
         its.a.launch(twice, its.all, its.y, its.z, size);
     }},
    {"a chain over a third stream that is broken", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         Event passed = its.c.record();
         its.c.wait(its.a.record());
         if (is_right) passed = its.c.record();
         its.b.wait(passed);
         its.use(its.b);
     }},
    {"memory of a stream ends while another one uses it", "buffer 'work'",
     [](Scene& its, bool is_right) {
         auto work = Queue(its.a).buffer<float>(size, "work");
         its.a.launch(twice, its.all, work, its.x, size);
         its.b.wait(its.a.record());
         its.b.launch(twice, its.all, its.y, work, size);
         if (is_right) its.a.wait(its.b.record());
     }},
    {"memory of a stream is used before its stream has got so far", "buffer 'work'",
     [](Scene& its, bool is_right) {
         auto work = Queue(its.a).buffer<float>(size, "work");
         its.a.fill(work, 1.0f);
         if (is_right) its.b.wait(its.a.record());
         its.b.launch(twice, its.all, its.y, work, size);
         its.a.wait(its.b.record());
     }},
    {"two calls share a workspace", "buffer 'y'",
     [](Scene& its, bool is_right) {
         for (const Stream* const on : {&its.a, &its.b}) {
             if (is_right && on == &its.b) its.b.wait(its.a.record());
             on->launch(twice, its.all, its.y, its.x, size);
             on->launch(twice, its.all, its.z.slice(on == &its.a ? 0 : 64, 64), its.y, 64u);
         }
     }},
    {"a number counted by atomics is read too early", "buffer 'total'",
     [](Scene& its, bool is_right) {
         auto total = its.device.upload(std::vector<std::uint32_t>(1), "total");
         auto copy = its.device.upload(std::vector<std::uint32_t>(1), "copy");
         its.a.launch(count_up, Grid{{4}, {32}}, total);
         its.b.launch(count_up, Grid{{4}, {32}}, total);  // no race: both by atomics
         its.c.wait(its.a.record());
         if (is_right) its.c.wait(its.b.record());
         its.c.copy(copy, total);
         its.device.synchronize();
     }},
    {"memory of the host is written before it has been copied", "has changed the memory of the host",
     [](Scene& its, bool is_right) {
         auto host = its.device.host_buffer<float>(size, "host");
         std::ranges::fill(host, 1.0f);
         its.a.upload_async(its.x, host);
         if (is_right) its.a.synchronize();
         host[7] = 2.0f;
         its.device.synchronize();
     }},
    {"memory of the host is written after the wrong wait", "has changed the memory of the host",
     [](Scene& its, bool is_right) {
         auto host = its.device.host_buffer<float>(2 * size, "host");
         std::ranges::fill(host, 1.0f);
         its.a.upload_async(its.x, host.slice(0, size));
         const Event first = its.a.record();
         its.a.upload_async(its.y, host.slice(size, size));
         (is_right ? its.a.record() : first).synchronize();
         host[size] = 2.0f;
         its.device.synchronize();
     }},
    {"a download and an upload of the same memory of the host", "buffer 'host'",
     [](Scene& its, bool is_right) {
         auto host = its.device.host_buffer<float>(size, "host");
         its.a.download_async(host, its.x);
         if (is_right) its.b.wait(its.a.record());
         its.b.upload_async(its.y, host);
         its.device.synchronize();
     }},
    {"two downloads to the same memory of the host", "buffer 'host'",
     [](Scene& its, bool is_right) {
         auto host = its.device.host_buffer<float>(2 * size, "host");
         its.a.download_async(host.slice(0, size), its.x);
         its.b.download_async(host.slice(is_right ? size : size - 1, size), its.y);
         its.device.synchronize();
     }},
    {"a download that does not wait for the kernel", "buffer 'y'",
     [](Scene& its, bool is_right) {
         auto host = its.device.host_buffer<float>(size, "host");
         its.make(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.b.download_async(host, its.y);
         its.device.synchronize();
     }},
    {"an upload under a kernel that reads", "buffer 'x'",
     [](Scene& its, bool is_right) {
         auto host = its.device.host_buffer<float>(size, "host");
         its.make(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.b.upload_async(its.x, host);
         its.device.synchronize();
     }},
};

TEST_CASE("stream races: each mistake is found in every order, and its right twin in none") { check(programs); }

TEST_CASE("stream races: the message names both pieces of work, where they are enqueued, and their streams") {
    Scene its{Device::open({.device = "emulator", .threads = 1, .schedule = "0"})};
    its.make(its.a);
    its.use(its.b);
    its.a.synchronize();  // of the one that was done first, nothing is wrong
    std::vector<Diagnostic> found;
    try {
        its.b.synchronize();
    } catch (const KernelError& error) { found = error.diagnostics(); }
    REQUIRE(found.size() == 1);
    CHECK(found[0].message ==
          "kernel 'twice' on stream 2 reads bytes 0 to 1023 of buffer 'y', which kernel 'twice' on stream 1 writes, "
          "and nothing orders the two");
    CHECK_THAT(found[0].where.file, contains("stream_programs.hpp"));
    REQUIRE(found[0].notes.size() == 1);
    CHECK(found[0].notes[0].message == "kernel 'twice' was enqueued here, on stream 1");
    CHECK(found[0].notes[0].where.line + 1 == found[0].where.line);
    CHECK(found[0].code == std::string_view("stream-race"));
    CHECK_NOTHROW(its.device.synchronize());  // said once
    for (int seed = 1; seed < 8; ++seed) {    // whichever of them is done first
        Scene other{Device::open({.device = "emulator", .threads = 1, .schedule = std::to_string(seed)})};
        other.make(other.a);
        other.use(other.b);
        CHECK_THAT(message_of([&] { other.device.synchronize(); }), contains(found[0].message));
    }
}

TEST_CASE("stream races: the default stream waits for all, and all for it") {
    for (int seed = 0; seed < 8; ++seed) {
        Scene its{Device::open({.device = "emulator", .threads = 1, .schedule = std::to_string(seed)})};
        its.make(its.a);
        its.device.launch(twice, its.all, its.z, its.y, size);
        its.make(its.b);
        its.y.fill(0);
        its.use(its.c);
        its.x.copy(its.z);
        its.make(its.a);
        CHECK_NOTHROW(its.device.synchronize());
    }
}

TEST_CASE("stream races: their severity is that of a class") {
    std::vector<Diagnostic> warnings;
    const auto run = [&](std::string_view check) {
        Scene its{Device::open({.device = "emulator", .threads = 1, .check = check, .warnings = &warnings})};
        its.make(its.a);
        its.use(its.b);
        its.device.synchronize();
    };
    CHECK_NOTHROW(run("no-streams"));
    CHECK(warnings.empty());
    CHECK_NOTHROW(run("streams=warning"));
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0].message, contains("nothing orders the two"));
    CHECK_THROWS_AS(run("streams"), KernelError);
}

TEST_CASE("stream races: what one stream does again and again takes no more memory") {
    Scene its{Device::open({.device = "emulator", .threads = 1, .schedule = "3"})};
    for (int i = 0; i < 3000; ++i) {
        its.make(its.a);
        its.b.launch(increment, its.all, its.z, size);
    }
    its.b.wait(its.a.record());
    its.use(its.b);
    CHECK_NOTHROW(its.device.synchronize());
    its.make(its.a);
    for (int i = 0; i < 3000; ++i) its.c.launch(increment, its.all, its.x.slice(0, 0), 0u);
    its.use(its.b);
    CHECK_THROWS_AS(its.device.synchronize(), KernelError);  // nor is it forgotten
}

}  // namespace stream_races
}  // namespace
}  // namespace ikat::tests
