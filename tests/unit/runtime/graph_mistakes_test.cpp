// SPDX-License-Identifier: Apache-2.0
// Mistakes with graphs, each beside the program as it should be: what cannot be recorded is refused with its line, and
// what nothing orders is found in every order of the work.
#include <ikat/graph.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {
namespace graph_mistakes {

using namespace runtime;

constexpr std::uint32_t size = 256;

const auto twice = kernel("twice", params("y", "x"), [](Out<float> y, In<float> x) {
    const u32 i = global_id().x;
    y[i] = x[i] * 2.0f;
});
const auto increment = kernel("increment", params("x"), [](InOut<float> x) { x[global_id().x] += 1.0f; });
const auto count_up =
    kernel("count_up", params("total"), [](InOut<std::uint32_t> total) { atomic_add(total[0u], 1u); });

struct Scene {
    Device device;
    Stream a = device.stream(), b = device.stream(), c = device.stream();
    Buffer<float> x = device.upload(std::vector<float>(size, 1.0f), "x"),
                  y = device.upload(std::vector<float>(size), "y"), z = device.upload(std::vector<float>(size), "z");
    Buffer<std::uint32_t> total = device.upload(std::vector<std::uint32_t>(1), "total");
    HostBuffer<float> host = device.host_buffer<float>(size, "host");
    Grid all = grid(size, 64);

    /// Two branches, that the queue joins.
    template <class First, class Second>
    void fork(const Queue& q, First first, Second second) {
        b.wait(q.record());
        second(Queue(b));
        first(q);
        q.wait(b.record());
    }
    GraphExec exec(const std::function<void(const Queue&)>& f) { return Graph::record(device, f).instantiate(); }
};

struct Program {
    const char* name;
    const char* found;  // in the message
    std::function<void(Scene&, bool is_right)> run;
};

const Program programs[] = {
    {"branches: both write", "kernel 'increment' in branch",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                its.fork(
                    q, [&](const Queue& on) { on.launch(increment, its.all, its.x); },
                    [&](const Queue& on) { on.launch(increment, its.all, is_right ? its.y : its.x); });
            })
             .launch(its.a);
     }},
    {"branches: one reads what the other writes", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                its.fork(
                    q, [&](const Queue& on) { on.launch(twice, its.all, its.y, its.x); },
                    [&](const Queue& on) { on.launch(twice, its.all, its.z, is_right ? its.x : its.y); });
            })
             .launch(its.a);
     }},
    {"branches: on a device, too", "in branch 2 of a graph",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                its.fork(
                    q, [&](const Queue& on) { on.launch(twice, its.all, its.y, its.x); },
                    [&](const Queue& on) { on.fill(is_right ? its.z : its.y, 0.0f); });
            })
             .launch(its.device);
     }},
    {"branches: atomics may meet, a read may not", "changes by atomics",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                its.fork(
                    q, [&](const Queue& on) { on.launch(count_up, its.all, its.total); },
                    [&](const Queue& on) {
                        if (is_right)
                            on.launch(count_up, its.all, its.total);
                        else
                            on.fill(its.total, 0u);
                    });
            })
             .launch(its.a);
     }},
    {"branches: an event is recorded too early", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                const Event early = q.record();
                q.launch(twice, its.all, its.y, its.x);
                const Event late = q.record();
                its.b.wait(is_right ? late : early);
                its.b.launch(twice, its.all, its.z, its.y);
                q.wait(its.b.record());
            })
             .launch(its.a);
     }},
    {"branches: the join is too late", "buffer 'z'",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                its.b.wait(q.record());
                its.b.launch(twice, its.all, its.z, its.x);
                if (is_right) q.wait(its.b.record());
                q.launch(increment, its.all, its.z);
                if (!is_right) q.wait(its.b.record());
            })
             .launch(its.a);
     }},
    {"branches: memory ends while another uses it", "between",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                std::optional<Buffer<float>> between = q.buffer<float>(size, "between");
                q.launch(twice, its.all, *between, its.x);
                its.b.wait(q.record());
                its.b.launch(twice, its.all, its.y, *between);
                if (is_right) q.wait(its.b.record());
                between.reset();
                if (!is_right) q.wait(its.b.record());
            })
             .launch(its.a);
     }},
    {"a graph and another stream", "kernel 'twice' on stream 1 writes",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) { q.launch(twice, its.all, its.y, its.x); }).launch(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.b.launch(increment, its.all, its.y);
     }},
    {"two graphs on two streams", "buffer 'y'",
     [](Scene& its, bool is_right) {
         const auto body = [&](const Queue& q) { q.launch(increment, its.all, its.y); };
         const GraphExec first = its.exec(body), second = its.exec(body);
         first.launch(its.a);
         if (is_right)
             first.launch(its.b);  // one graph waits for its own last launch
         else
             second.launch(its.b);
     }},
    {"a branch of a graph and another stream", "kernel 'increment' on stream 3",
     [](Scene& its, bool is_right) {
         const GraphExec exec = its.exec([&](const Queue& q) {
             its.fork(
                 q, [&](const Queue& on) { on.launch(increment, its.all, its.x); },
                 [&](const Queue& on) { on.launch(increment, its.all, its.y); });
         });
         its.c.launch(increment, its.all, its.y);
         if (is_right) its.a.wait(its.c.record());
         exec.launch(its.a);
     }},
    {"a buffer is freed while a graph uses it", "buffer 'short'",
     [](Scene& its, bool is_right) {
         std::optional<Buffer<float>> short_lived = Queue(its.b).buffer<float>(size, "short");
         its.b.launch(twice, its.all, *short_lived, its.x);
         if (is_right) {  // the graph has it, too
             const GraphExec exec = its.exec([&](const Queue& q) { q.launch(twice, its.all, its.y, *short_lived); });
             its.a.wait(its.b.record());
             exec.launch(its.a);
             short_lived.reset();
         } else {
             its.a.wait(its.b.record());
             its.a.launch(twice, its.all, its.y, *short_lived);
             short_lived.reset();
         }
     }},
    {"the host changes what a graph copies", "has changed the memory of the host",
     [](Scene& its, bool is_right) {
         std::ranges::fill(its.host, 1.0f);
         its.exec([&](const Queue& q) { q.upload_async(its.x.view(1, size), its.host); }).launch(its.a);
         if (is_right) its.a.synchronize();
         its.host[3] = 2.0f;
     }},
    {"two branches copy to the same memory of the host", "buffer 'host'",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                its.fork(
                    q, [&](const Queue& on) { on.download_async(its.host, its.x.view(1, size)); },
                    [&](const Queue& on) {
                        if (!is_right) on.download_async(its.host, its.y.view(1, size));
                    });
            })
             .launch(its.a);
     }},
    {"a stream that is no part of the recording", "no part of a recording",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                if (is_right) its.b.wait(q.record());
                its.b.launch(increment, its.all, its.y);
                if (is_right) q.wait(its.b.record());
            })
             .launch(its.a);
     }},
    {"a stream that is not joined", "does not wait for",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                its.b.wait(q.record());
                its.b.launch(increment, its.all, its.y);
                if (is_right) q.wait(its.b.record());
                q.launch(increment, its.all, its.x);
            })
             .launch(its.a);
     }},
    {"a stream gets more work after it was joined", "does not wait for",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                its.b.wait(q.record());
                its.b.launch(increment, its.all, its.y);
                if (!is_right) q.wait(its.b.record());
                its.b.launch(increment, its.all, its.y);
                if (is_right) q.wait(its.b.record());
            })
             .launch(its.a);
     }},
    {"work of the device", "a device is given work",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                if (is_right)
                    q.launch(increment, its.all, its.y);
                else
                    its.device.launch(increment, its.all, its.y);
            })
             .launch(its.a);
     }},
    {"an upload", "an upload while a graph is recorded",
     [](Scene& its, bool is_right) {
         std::optional<Buffer<float>> data;
         if (is_right) data = its.device.upload(std::vector<float>(size, 1.0f));
         its.exec([&](const Queue& q) {
                if (!is_right) data = its.device.upload(std::vector<float>(size, 1.0f));
                q.launch(twice, its.all, its.y, *data);
            })
             .launch(its.a);
     }},
    {"a number for the host", "a download while a graph is recorded",
     [](Scene& its, bool is_right) {
         float first = 0;
         const GraphExec exec = its.exec([&](const Queue& q) {
             q.launch(increment, its.all, its.y);
             if (!is_right) first = its.y.download()[0];
         });
         exec.launch(its.a);
         if (is_right) first = its.y.download()[0];
     }},
    {"a wait for a stream", "a wait for a stream while a graph is recorded",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                q.launch(increment, its.all, its.y);
                if (!is_right) its.a.synchronize();
            })
             .launch(its.a);
     }},
    {"a wait for the device", "a wait for the device while a graph is recorded",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                if (!is_right) its.device.synchronize();
                q.launch(increment, its.all, its.y);
            })
             .launch(its.a);
     }},
    {"a query of an event", "a query of an event while a graph is recorded",
     [](Scene& its, bool is_right) {
         const Event before = its.a.record();
         its.exec([&](const Queue& q) {
                if (!is_right) before.query();
                q.launch(increment, its.all, its.y);
            })
             .launch(its.a);
     }},
    {"an event from before", "waits for an event that was not recorded in it",
     [](Scene& its, bool is_right) {
         its.b.launch(increment, its.all, its.y);
         const Event before = its.b.record();
         const GraphExec exec = its.exec([&](const Queue& q) {
             if (!is_right) q.wait(before);
             q.launch(increment, its.all, its.y);
         });
         if (is_right) its.a.wait(before);
         exec.launch(its.a);
     }},
    {"an event of a graph", "last recorded in a graph",
     [](Scene& its, bool is_right) {
         std::optional<Event> inside;
         its.exec([&](const Queue& q) {
                q.launch(increment, its.all, its.y);
                inside = q.record();
            })
             .launch(its.a);
         if (is_right) Queue(its.a).record(*inside);
         its.b.wait(*inside);
         its.b.launch(increment, its.all, its.y);
     }},
    {"parameters that are set, in a recording", "whose parameters were set",
     [](Scene& its, bool is_right) {
         const GraphExec inner = Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
                                     q.fill(its.y, parameters.number("value", 1.0f));
                                 }).instantiate();
         inner.set("value", 2.0f);
         if (is_right) inner.update();
         its.exec([&](const Queue& q) { inner.launch(q); }).launch(its.a);
     }},
    {"a recording in a recording", "records another",
     [](Scene& its, bool is_right) {
         const auto inner = [&] { return its.exec([&](const Queue& q) { q.launch(increment, its.all, its.y); }); };
         std::optional<GraphExec> first;
         if (is_right) first = inner();
         its.exec([&](const Queue& q) {
                if (!is_right) first = inner();
                first->launch(q);
            })
             .launch(its.a);
     }},
    {"a slice of memory that the recording has freed", "freed in the recording",
     [](Scene& its, bool is_right) {
         its.exec([&](const Queue& q) {
                std::optional<Buffer<float>> between = q.buffer<float>(size, "between");
                const BufferSlice<float> slice = between->slice(0, size);
                q.launch(twice, its.all, slice, its.x);
                if (!is_right) between.reset();
                q.launch(increment, its.all, slice);
            })
             .launch(its.a);
     }},
    {"a graph on another device", "on another device than it was recorded for",
     [](Scene& its, bool is_right) {
         const GraphExec exec = its.exec([&](const Queue& q) { q.launch(increment, its.all, its.y); });
         const Device other = Device::open({.device = "emulator", .threads = 1});
         exec.launch(is_right ? its.device : other);
     }},
};

std::string outcome(const Program& program, bool is_right, std::string_view schedule) {
    Scene its{Device::open({.device = "emulator", .threads = 1, .schedule = schedule})};
    return message_of([&] {
        program.run(its, is_right);
        its.device.synchronize();
    });
}

}  // namespace graph_mistakes

TEST_CASE("graphs: mistakes are found in every order, and right programs are not accused") {
    using namespace graph_mistakes;
    for (const Program& program : programs) {
        INFO(program.name);
        for (int seed = 0; seed < 8; ++seed) {
            const std::string schedule = std::to_string(seed);
            CHECK_THAT(outcome(program, false, schedule), Catch::Contains(program.found) &&
                                                              Catch::Contains("graph_mistakes_test.cpp:") &&
                                                              Catch::Contains("hint:"));
            CHECK(outcome(program, true, schedule).empty());
        }
    }
}

}  // namespace
}  // namespace ikat::tests
