// SPDX-License-Identifier: Apache-2.0
// Functions of the library in graphs, with the pool's memory, and beside other streams.
#include <ikat/async.hpp>
#include <ikat/graph.hpp>
#include <ikat/stdlib.hpp>

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/stream_programs.hpp"

namespace ikat::tests {
namespace {
namespace library_calls {

using namespace runtime;
using stream_programs::Program, stream_programs::Scene, stream_programs::size;

const Program programs[] = {
    {"a sum of the library before its numbers are there", "buffer 'y'",
     [](Scene& its, bool is_right) {
         its.make(its.a);
         if (is_right) its.b.wait(its.a.record());
         stdlib::sum(its.b, its.y, its.z.slice(0, 1));
     }},
    {"a product whose matrix another stream fills", "buffer 'A'",
     [](Scene& its, bool is_right) {
         auto A = its.device.upload(std::vector<float>(32 * 32, 1.0f), "A");
         auto C = its.device.buffer<float>(32 * 32, "C");
         stdlib::gemm(its.a, A.view(32, 32), A.view(32, 32), C.view(32, 32));
         if (is_right) its.b.wait(its.a.record());
         its.b.fill(A.slice(1000, 4), 2.0f);
         its.device.synchronize();
     }},
};

TEST_CASE("library calls: each of these is found, whatever the order, and its right twin is not accused") {
    stream_programs::check(programs);
}

TEST_CASE("library calls: what copies in bulk read is known") {
    for (const bool is_right : {false, true}) {
        const Device device = Device::open({.device = "emulator", .target = "sm_90a", .threads = 1});
        const Stream a = device.stream(), b = device.stream();
        auto A = device.upload(std::vector<half>(128 * 128, half(1)), "A");
        auto C = device.buffer<half>(128 * 128, "C");
        stdlib::gemm_tensor_core(a, A.view(128, 128), A.view(128, 128), C.view(128, 128));
        if (is_right) b.wait(a.record());
        b.fill(A.slice(128 * 127, 1), half(2));
        const std::string found = message_of([&] { device.synchronize(); });
        CHECK((found == "") == is_right);
        if (!is_right) CHECK_THAT(found, contains("a fill on stream 2 writes bytes 32512 to 32513 of buffer 'A'"));
    }
}

TEST_CASE("library calls: in a graph, on memory of its queue") {
    Scene its{Device::open({.device = "emulator", .threads = 1})};
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q) {
                               Buffer<float> between = q.buffer<float>(size, "between");
                               q.launch(stream_programs::twice, its.all, between, its.x, size);
                               q.launch(stream_programs::increment, its.all, between, size);
                               stdlib::sum(q, between, its.y.slice(0, 1));
                           }).instantiate();
    for (int i = 0; i < 3; ++i) {
        exec.launch(its.a);
        its.a.synchronize();
        CHECK(its.y.download()[0] == 3.0f * size);
        its.y.fill(0);
    }
}

TEST_CASE("library calls: workspaces on a stream are one after another the same block") {
    const Device device = Device::open({.device = "emulator", .pool = "own", .threads = 1, .schedule = "0"});
    const Stream stream = device.stream();
    const auto x = device.upload(std::vector<float>(5000, 1.0f));
    auto totals = device.buffer<float>(10);
    for (std::uint32_t i = 0; i < 10; ++i) stdlib::sum(stream, x, totals.slice(i, 1));
    CHECK(totals.download() == std::vector<float>(10, 5000));
    CHECK(device.pool().report().peak_used == 256);
    CHECK(device.pool().report().reserved == 2 << 20);
}

}  // namespace library_calls
}  // namespace
}  // namespace ikat::tests
