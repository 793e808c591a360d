// SPDX-License-Identifier: Apache-2.0
// Kernels of a stream that overlap: what the emulator finds where one begins before another has ended, and what it lets
// pass.
#include <ikat/async.hpp>
#include <ikat/cluster.hpp>
#include <ikat/compile.hpp>
#include <ikat/graph.hpp>
#include <ikat/testing.hpp>

#include "tests/catch.hpp"
#include "tests/message.hpp"

using namespace ikat;
using tests::contains;

namespace {

constexpr std::uint32_t n = 256, threads = 64;

const auto parts = kernel("parts", params("x", "part"), [](In<float> x, Out<float> part) {
    u32 i = global_id().x;
    launch_next();
    part[i] = x[i] * 2;
});
const auto parts_alone = kernel("parts_alone", params("x", "part"), [](In<float> x, Out<float> part) {
    u32 i = global_id().x;
    part[i] = x[i] * 2;
});
const auto last_parts = kernel("last_parts", params("x", "part"), [](In<float> x, Out<float> part) {
    u32 i = global_id().x;
    launch_next();
    if_(i >= 48u, [&] { part[i] = x[i]; });
});
const auto never_launches = kernel("never_launches", params("x", "part", "n"), [](In<float> x, Out<float> part, u32 n) {
    u32 i = global_id().x;
    if_(n == 0, [&] { launch_next(); });
    part[i] = x[i] * 2;
});

const auto waits = kernel("waits", params("part", "w", "y"), [](In<float> part, In<float> w, Out<float> y) {
    u32 i = global_id().x;
    f32 weight = w[i];  // which no kernel before writes
    grid_wait();
    y[i] = part[i] * weight;
});
const auto reads_early = kernel("reads_early", params("part", "w", "y"), [](In<float> part, In<float> w, Out<float> y) {
    u32 i = global_id().x;
    f32 early = part[i];
    grid_wait();
    y[i] = early * w[i];
});
constexpr int line_of_early_read = __LINE__ - 4;
const auto writes_early = kernel("writes_early", params("part", "x"), [](In<float> part, Out<float> x) {
    u32 i = global_id().x;
    x[i] = 1.0f;
    grid_wait();
    x[i] = part[i];
});
const auto adds_early = kernel("adds_early", params("part", "x"), [](In<float> part, InOut<float> x) {
    u32 i = global_id().x;
    atomic_add(x[i], 1.0f);
    grid_wait();
    x[i] += part[i];
});
const auto waits_on_one_path =
    kernel("waits_on_one_path", params("part", "w", "y"), [](In<float> part, In<float> w, Out<float> y) {
        u32 i = global_id().x;
        if_(i % 2 == 0, [&] { grid_wait(); });
        y[i] = part[i] * w[i];
    });
const auto one_waits = kernel("one_waits", params("part", "w", "y"), [](In<float> part, In<float> w, Out<float> y) {
    u32 i = global_id().x;
    if_(thread_id().x == 0, [&] { grid_wait(); });
    sync_block();
    y[i] = part[i] * w[i];
});
const auto lane_waits = kernel("lane_waits", params("part", "w", "y"), [](In<float> part, In<float> w, Out<float> y) {
    u32 i = global_id().x;
    if_(lane_id() == 3, [&] { grid_wait(); });
    sync_warp();
    y[i] = part[i] * w[i];
});
const auto block_waits = kernel("block_waits", params("part", "w", "y"), [](In<float> part, In<float> w, Out<float> y) {
                             u32 i = global_id().x;
                             if_(cluster_rank() == 1, [&] { grid_wait(); });
                             cluster_sync();
                             y[i] = part[i] * w[i];
                         }).cluster(2);
const auto copies_early =
    kernel("copies_early", params("part", "w", "y"), [](In<float> part, In<float> w, Out<float> y) {
        Shared<float, threads> s;
        u32 i = global_id().x, t = thread_id().x;
        copy_async<4>(s[t], part[i]);
        copy_wait();
        grid_wait();
        y[i] = s[t] * w[i];
    }).require(aligned<16>("part"));
const auto bulk_early = kernel("bulk_early", params("part", "y"), [](In<float> part, Out<float> y) {
                            Shared<float, 64> s;
                            Shared<Barrier, 1> full;
                            u32 t = thread_id().x;
                            if_(t == 0, [&] {
                                full[0].init(1);
                                fence_barrier_init();
                                full[0].arrive_expect(256);
                                bulk_load(s[0], part[0], 256, full[0]);
                            });
                            sync_block();
                            full[0].wait(0);
                            grid_wait();
                            y[t] = s[t];
                        }).require(aligned<16>("part"));
const auto never_waits = kernel("never_waits", params("w", "z", "n"), [](In<float> w, Out<float> z, u32 n) {
    if_(n == 0, [&] { grid_wait(); });
    z[global_id().x] = w[global_id().x];
});

/// Buffers, and a stream on which the function launches what it wants.
struct Chain {
    const Device& device;
    Stream stream = device.stream();
    Buffer<float> x = device.upload(std::vector<float>(n, 1), "x"), w = device.upload(std::vector<float>(n, 3), "w"),
                  part = device.buffer<float>(n, "part"), y = device.buffer<float>(n, "y"),
                  z = device.buffer<float>(n, "z");
    Grid grid = ikat::grid(n, threads);

    void first() { stream.launch(parts, grid, x, part); }
};

template <class F>
std::string found(F run, std::string_view check = "strict", std::string_view target = "sm_90a") {
    return testing::findings_in(
               [&](const Device& device) {
                   Chain chain{device};
                   run(chain);
                   chain.stream.synchronize();
               },
               {.check = check, .target = target})
        .text;
}
/// ... by a second kernel of these three buffers.
template <class K>
std::string found_in(const K& second, std::string_view check = "strict", std::string_view target = "sm_90a") {
    return found(
        [&](Chain& its) {
            its.first();
            its.stream.launch(second, its.grid, its.part, its.w, its.y);
        },
        check, target);
}

}  // namespace

TEST_CASE("grids: a right chain is silent, and its results are right") {
    CHECK(found_in(waits) == "");
    const Device device = Device::open({.device = "emulator", .target = "sm_90a", .threads = 1});
    Chain its{device};
    its.first();
    its.stream.launch(waits, its.grid, its.part, its.w, its.y);
    its.stream.synchronize();
    CHECK(device.download(its.y) == std::vector<float>(n, 6));
}

TEST_CASE("grids: a read before the wait of what the kernel before writes") {
    const std::string text = found_in(reads_early);
    CHECK_THAT(text, contains("grids_test.cpp:" + std::to_string(line_of_early_read)));
    CHECK_THAT(text, contains("global load of 4 bytes at offset "));
    CHECK_THAT(text,
               contains("of buffer 'part' (1024 bytes), which kernel 'parts' writes, before grid_wait(), by block "));
    CHECK_THAT(text, contains("on a device 'parts' may still run: it has executed launch_next(), and this launch may "
                              "begin early"));
    CHECK_THAT(text, contains("let grid_wait() come before the first access to what the kernels before may use"));
    CHECK_THAT(found_in(copies_early), contains("which kernel 'parts' writes, before grid_wait()"));
    CHECK_THAT(found([](Chain& its) {
                   its.first();
                   its.stream.launch(bulk_early, ikat::grid(64, 64), its.part, its.y);
               }),
               contains("global load of 256 bytes at offset 0 of buffer 'part' (1024 bytes), which kernel 'parts'"));
}

TEST_CASE("grids: what the kernel before does not write may be read") {
    const auto after_last = [](const auto& second, const Grid& grid, std::uint32_t from, auto&... more) {
        return found([&](Chain& its) {
            its.device.launch(parts_alone, its.grid, its.x, its.part);  // all of it has a value
            its.stream.launch(last_parts, ikat::grid(64, 64), its.x, its.part);
            its.stream.launch(second, grid, its.part.slice(from, n - from), more(its)...);
        });
    };
    const auto w = [](Chain & its) -> auto& { return its.w; };
    const auto y = [](Chain & its) -> auto& { return its.y; };
    CHECK(after_last(reads_early, ikat::grid(48, 48), 0, w, y) == "");
    CHECK_THAT(after_last(reads_early, ikat::grid(49, 49), 0, w, y), contains("at offset 192 of buffer 'part'"));
    CHECK_THAT(
        after_last(bulk_early, ikat::grid(64, 64), 0, y),
        contains("global load of 256 bytes at offset 192 of buffer 'part' (1024 bytes), which kernel 'last_parts'"));
    CHECK(after_last(bulk_early, ikat::grid(64, 64), 64, y) == "");
}

TEST_CASE("grids: a write before the wait to what the kernel before reads or writes") {
    const auto second = [](const auto& kernel) {
        return found([&](Chain& its) {
            its.first();
            its.stream.launch(kernel, its.grid, its.part, its.x);
        });
    };
    CHECK_THAT(second(writes_early),
               contains("of buffer 'x' (1024 bytes), which kernel 'parts' reads, before grid_wait()"));
    CHECK_THAT(second(adds_early), contains("global atomic of 4 bytes at offset "));
    CHECK_THAT(found([](Chain& its) {
                   its.first();
                   its.stream.launch(writes_early, its.grid, its.x, its.part);
               }),
               contains("of buffer 'part' (1024 bytes), which kernel 'parts' writes, before grid_wait()"));
}

TEST_CASE("grids: a wait that only some threads reach") {
    CHECK_THAT(found_in(waits_on_one_path),
               contains("of buffer 'part' (1024 bytes), which kernel 'parts' writes, before grid_wait()"));
    const Device device = Device::open({.device = "emulator", .target = "sm_90a", .threads = 1, .schedule = "0"});
    Chain its{device};
    its.first();
    its.stream.launch(waits_on_one_path, its.grid, its.part, its.w, its.y);
    CHECK_THROWS_WITH(its.stream.synchronize(), contains("before grid_wait(), by block (0,0,0) thread (1,0,0)"));
    CHECK(found_in(one_waits) == "");
    CHECK(found_in(lane_waits) == "");
    CHECK(found_in(block_waits) == "");
}

TEST_CASE("grids: nothing overlaps where the device does not let it") {
    const auto after = [](const auto& first, auto... more) {
        return found([&](Chain& its) {
            its.stream.launch(first, its.grid, its.x, its.part, more...);
            its.stream.launch(reads_early, its.grid, its.part, its.w, its.y);
        });
    };
    CHECK(after(parts_alone) == "");
    CHECK(after(never_launches, 1u) == "");
    CHECK_THAT(after(never_launches, 0u), contains("before grid_wait()"));
    CHECK(found_in(reads_early, "strict", "sm_80") == "");
    CHECK(found([](Chain& its) {  // another stream
              const Stream other = its.device.stream();
              its.first();
              other.launch(reads_early, its.grid, its.w, its.w, its.y);
          }) == "");
    CHECK(found([](Chain& its) {  // what is between waits
              its.first();
              Queue(its.stream).fill(its.z, 0.0f);
              its.stream.launch(reads_early, its.grid, its.part, its.w, its.y);
          }) == "");
    CHECK(found([](Chain& its) {
              its.first();
              its.stream.synchronize();
              its.stream.launch(reads_early, its.grid, its.part, its.w, its.y);
          }) == "");
    CHECK_THAT(found([](Chain& its) {  // an event does not
                   its.first();
                   const Event event = its.stream.record();
                   its.stream.launch(reads_early, its.grid, its.part, its.w, its.y);
               }),
               contains("before grid_wait()"));
}

TEST_CASE("grids: a kernel that waits for no other leaves those before it in flight") {
    const auto third = [](auto between) {
        return found([&](Chain& its) {
            its.first();
            between(its);
            its.stream.launch(waits, its.grid, its.part, its.w, its.y);
        });
    };
    const auto run = [](std::uint32_t count) {
        return [=](Chain& its) { its.stream.launch(never_waits, its.grid, its.w, its.z, count); };
    };
    CHECK(third(run(0)) == "");
    const std::string text = third(run(1));
    CHECK_THAT(text, contains("of buffer 'part' (1024 bytes), which kernel 'parts' writes, "));
    CHECK_THAT(text, contains("which no kernel between has waited for, by block "));
    CHECK_THAT(text, contains("grid_wait() waits for one launch; let at least one thread of each kernel execute it, on "
                              "every path"));
    CHECK(third([](Chain& its) { its.stream.launch(parts_alone, its.grid, its.w, its.z); }) == "");
}

TEST_CASE("grids: the class of findings") {
    CHECK(found_in(reads_early, "strict,no-grids") == "");
    CHECK_THAT(found_in(reads_early, "strict,grids=warning"), contains("before grid_wait()"));
    const KernelInfo waiting = compile(waits.ast(), {.target = "sm_90a"}).info;
    CHECK(waiting.waits_for_grids);
    CHECK_FALSE(compile(waits.ast(), {.target = "sm_80"}).info.waits_for_grids);
    CHECK_FALSE(compile(parts.ast(), {.target = "sm_90a"}).info.waits_for_grids);
}

TEST_CASE("grids: kernels from text are launched likewise") {
    CHECK_THAT(found([](Chain& its) {
                   const auto load = [&](const auto& kernel) {
                       return its.device.load(file_text(compile(kernel.ast(), {.target = "sm_90a"})), "k.ptx");
                   };
                   const runtime::Module first = load(parts), second = load(reads_early);
                   its.stream.launch(first, "parts", its.grid, its.x, its.part);
                   its.stream.launch(second, "reads_early", its.grid, its.part, its.w, its.y);
               }),
               contains("which kernel 'parts' writes, before griddepcontrol.wait, by"));
}

TEST_CASE("grids: kernels of a graph overlap where one comes after the other alone, in any order of its branches") {
    enum Between { Nothing, Fill, Join };
    const auto found_in_graph = [](const auto& second, Between between, bool has_branches, const char* schedule) {
        const Device device =
            Device::open({.device = "emulator", .target = "sm_90a", .threads = 1, .schedule = schedule});
        Chain its{device};
        const Stream side = device.stream();
        const GraphExec exec = Graph::record(device, [&](const Queue& q) {
                                   if (has_branches) {
                                       side.wait(q.record());
                                       for (int i = 0; i < 3; ++i) side.launch(never_waits, its.grid, its.w, its.z, 1u);
                                   }
                                   q.launch(parts, its.grid, its.x, its.part);
                                   if (between == Fill) q.fill(its.y, 1.0f);
                                   if (has_branches && between == Join) q.wait(side.record());
                                   q.launch(second, its.grid, its.part, its.w, its.y);
                                   if (has_branches) q.wait(side.record());
                               }).instantiate();
        exec.launch(its.stream);
        return tests::message_of([&] { its.stream.synchronize(); });
    };
    for (const char* schedule : {"0", "1", "2", "3", "4"})
        for (const bool has_branches : {false, true}) {
            CHECK(found_in_graph(waits, Nothing, has_branches, schedule) == "");
            CHECK_THAT(found_in_graph(reads_early, Nothing, has_branches, schedule),
                       contains("which kernel 'parts' writes, before grid_wait()"));
            CHECK(found_in_graph(reads_early, Fill, has_branches, schedule) == "");
        }
    CHECK(found_in_graph(reads_early, Join, true, "0") == "");  // it waits for another branch, too
}

TEST_CASE("grids: in a body the first kernel waits for what was before, and for the round before") {
    const Device device = Device::open({.device = "emulator", .target = "sm_90a", .threads = 1});
    Chain its{device};
    Buffer<std::uint32_t> left = device.upload(std::vector<std::uint32_t>{2}, "left");
    const auto less = kernel("less", params("left", "more"), [](InOut<std::uint32_t> left, Condition more) {
        left[0u] -= 1u;
        set_condition(more, left[0u]);
    });
    const auto run = [&](bool is_in_body) {
        const GraphExec exec = Graph::record(device, [&](const Queue& q) {
                                   const GraphCondition more = graph_condition(q, 1);
                                   q.fill(left, 2u);
                                   q.launch(parts, its.grid, its.x, its.part);
                                   graph_while(q, more, [&](const Queue& body) {
                                       body.launch(reads_early, its.grid, its.part, its.w, its.y);
                                       body.launch(less, ikat::grid(1, 1), left, more);
                                       body.launch(parts, its.grid, its.x, its.part);
                                       if (is_in_body) body.launch(reads_early, its.grid, its.part, its.w, its.y);
                                   });
                               }).instantiate();
        exec.launch(its.stream);
        return tests::message_of([&] { its.stream.synchronize(); });
    };
    CHECK(run(false) == "");
    CHECK_THAT(run(true), contains("which kernel 'parts' writes, before grid_wait()"));
}
