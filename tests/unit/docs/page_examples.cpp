// SPDX-License-Identifier: Apache-2.0
// The examples of docs/runtime.md, docs/streams.md, docs/graphs.md, docs/batches.md, docs/library.md, docs/cli.md and
// docs/testing.md, compiled and run. pages_test.cpp compares the pages with this file.
#include <ikat/batch.hpp>
#include <ikat/catch.hpp>
#include <ikat/compile.hpp>
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>
#include <ikat/testing.hpp>
#include <ikat/work.hpp>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tests/catch.hpp"

// clang-format off
namespace ikat {
namespace {

const auto saxpy = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
    u32 i = global_id().x;
    return_if(i >= n);
    y[i] = fma(a, x[i], y[i]);
});

const auto row_sums = kernel("row_sums", params("A", "y"), [](In<float, 2> A, Out<float> y) {
    f32 sum = 0;
    for (auto j : range(A.extent(1))) sum += A[block_id().x, j];
    y[block_id().x] = sum;
});

TEST_CASE("docs/runtime.md: a device, buffers, a launch") {
    setenv("IKAT_DEVICE", "emulator", 1);
    const std::uint32_t n = 1000;
    std::vector<float> host_x(n, 3), host_y;
    Device device = Device::open();                          // CUDA if the driver finds a device, else the emulator
    Buffer<float> x = device.upload(host_x, "x");            // from a vector, an array or a span; the name is for messages
    Buffer<float> y = device.buffer<float>(n, "y");          // no particular contents
    y.fill(1);
    device.launch(saxpy, grid(n, 256), 2.0f, x, y, n);       // waits until the kernel has ended
    host_y = device.download(y);
    CHECK(host_y == std::vector<float>(n, 7));
}

TEST_CASE("docs/runtime.md: several devices") {
    setenv("IKAT_DEVICES", "2", 1);
    const std::uint32_t n = 1000;
    const std::vector<float> host(n, 1);
    const Device first = Device::open({.device = "emulator:0"}), second = Device::open({.device = "emulator:1"});
    const Buffer<float> x = first.upload(host, "x");
    Buffer<float> y = first.upload(host, "y"), copy = second.buffer<float>(n, "copy");
    const Stream a = first.stream(), b = second.stream();
    a.launch(saxpy, grid(n, 256), 2.0f, x, y, n);
    b.wait(a.record());                                      // without it, the copy may be done first
    b.copy(copy, y);
    b.synchronize();
    second.enable_peer_access(first);                        // kernels of the second reach memory of the first
    second.launch(saxpy, grid(n, 256), 2.0f, y, copy, n);
    CHECK(copy.download() == std::vector<float>(n, 9));
    unsetenv("IKAT_DEVICES");
}

TEST_CASE("docs/runtime.md: views") {
    const Device device = Device::open({.device = "emulator"});
    const auto x = device.upload(std::vector<float>(300 * 250, 1));
    auto y = device.buffer<float>(301);
    const Grid grid{{300}, {1}};
    device.launch(row_sums, grid, x.view(300, 250), y);
    device.launch(row_sums, grid, x.view(300, 200).pitched(250), y.slice(0, 300));    // without the last 50 columns
    CHECK(device.download(y)[299] == 200);
}

void accumulate(const Queue& queue, const Buffer<float>& x, Buffer<float>& y) {
    queue.launch(saxpy, grid(x.size(), 256), 1.0f, x, y, x.size());
}

TEST_CASE("docs/runtime.md: what a queue takes, and work as a value") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t m = 3, k = 4, p = 5, n = 20;
    const auto x = device.upload(std::vector<float>(n, 2));
    auto y = device.upload(std::vector<float>(n, 1));
    const Stream stream = device.stream();
    bool told = false;
    {
        const Queue queue(stream);
    auto between = queue.buffer<float>(m * k);                // allocated in queue order; freed at the queue's position where the Buffer is destroyed
    queue.copy(between.view(m, k), x.view(m, k).pitched(p));  // up to three dimensions; x may be another device's
    queue.fill(y, 0.0f);
    queue.call([&] { told = true; });                         // a function of the program, which must not use the device
    const Event event = queue.record();
    queue.wait(event);
    }
    const Recorder recorder(device, Recorder::Runs::No);      // calls are checked, and nothing is run
    accumulate(recorder, x, y);
    for (const Node& node : recorder.nodes()) Queue(stream).submit(node);
    stream.synchronize();
    CHECK(told);
    CHECK(y.download() == std::vector<float>(n, 2));
}

/// Ends the last of some buffers.
bool drop(std::vector<Buffer<std::uint8_t>>& cache, std::uint64_t) {
    if (cache.empty()) return false;
    cache.pop_back();
    return true;
}

TEST_CASE("docs/memory.md: limits") {
    const Device device = Device::open({.device = "emulator"});
    const Stream stream = device.stream();
    std::vector<Buffer<std::uint8_t>> cache;
    for (int i = 0; i < 4; ++i) cache.push_back(Queue(stream).buffer<std::uint8_t>(16 << 20));
    Pool pool = device.pool();
    pool.set_limit(std::uint64_t{64} << 20);
    pool.on_out_of_memory([&](std::uint64_t bytes) { return drop(cache, bytes); });
    const std::uint64_t given_back = pool.trim();
    CHECK(given_back == 0);
    Queue(stream).buffer<std::uint8_t>(32 << 20);
    CHECK(cache.size() == 2);
}

TEST_CASE("docs/streams.md: copies beside the program") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t n = 1000;
    auto x = device.buffer<float>(n, "x"), y = device.upload(std::vector<float>(n, 1), "y");
    const Stream stream = device.stream();
    auto in = device.host_buffer<float>(n, "in"), out = device.host_buffer<float>(n, "out");
    std::ranges::fill(in, 1.0f);
    stream.upload_async(x, in);                              // in stays as it is until the copy is done
    stream.launch(saxpy, grid(n, 256), 2.0f, x, y, n);
    stream.download_async(out, y);                           // out has the numbers when the stream has been waited for
    stream.synchronize();
    CHECK(std::ranges::count(out, 3.0f) == n);
}

TEST_CASE("docs/streams.md: streams and events") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t n = 1000;
    const auto x = device.upload(std::vector<float>(n, 1));
    auto y = device.upload(std::vector<float>(n, 1)), z = device.upload(std::vector<float>(n, 0));
    const Stream first = device.stream(), second = device.stream();
    first.launch(saxpy, grid(n, 256), 2.0f, x, y, n);
    second.wait(first.record());                             // without it, either of them may be done first
    second.launch(saxpy, grid(n, 256), 1.0f, y, z, n);
    second.synchronize();
    CHECK(z.download() == std::vector<float>(n, 3));
}

const auto add_number = kernel("add_number", params("x", "number"), [](InOut<float> x, In<std::uint32_t> number) {
    x[global_id().x] += cast<f32>(number[0u]);
});

TEST_CASE("docs/batches.md: functions by their names, and of the program") {
    constexpr std::uint32_t n = 16;
    const Device device = Device::open({.device = "emulator"});
    const auto q = device.upload(std::vector<half>(n * 64, half(0.5f))), k = device.upload(std::vector<half>(64 * n, half(0.5f))),
               v = device.upload(std::vector<half>(n * 64, half(1.0f)));
    const auto x = device.upload(std::vector<float>(n, 3.0f));
    const Batch b(device);
    const auto product = b.call<half>("gemm_tensor_core_f16", q.view(n, 64), k.view(64, n), arg("alpha", 2.0f));
    const auto [o, log_sum] = b.call<half, float>("flash_attention_log_sum_f16", q.view(n, 64), v.view(n, 64), v.view(n, 64));
    const auto z = b.array<float>({n}, "z");
    b.call([](const Queue& queue, const auto& from, const auto& to) {
        queue.copy(to, from);
        queue.launch(saxpy, grid(to.size(), 256), 2.0f, from, to, to.size());
    }, b.relu(x), z);
    b.execute();
    CHECK(product.download() == std::vector<half>(n * n, half(32.0f)));
    CHECK(o.download() == std::vector<half>(n * 64, half(1.0f)));
    CHECK(log_sum.size() == n);
    CHECK(z.download() == std::vector<float>(n, 9.0f));
}

TEST_CASE("docs/graphs.md: a graph, with branches, with parameters") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t n = 1000;
    const auto x = device.upload(std::vector<float>(n, 1));
    auto y = device.upload(std::vector<float>(n, 1)), z = device.upload(std::vector<float>(n, 0));
    auto total = device.buffer<float>(1);
    const Stream stream = device.stream(), side = device.stream();
    {
const Graph graph = Graph::record(device, [&](const Queue& q) {
    q.launch(saxpy, grid(n, 256), 2.0f, x, y, n);
    stdlib::sum(q, y, total);
});
const GraphExec exec = graph.instantiate();
for (int step = 0; step < 3; ++step) exec.launch(stream);
stream.synchronize();
        CHECK(total.download() == std::vector<float>{7000});
    }
    {
const Graph forked = Graph::record(device, [&](const Queue& q) {
    q.fill(y, 1.0f);
    side.wait(q.record());
    side.launch(saxpy, grid(n, 256), 2.0f, x, z, n);       // beside the next one
    q.launch(saxpy, grid(n, 256), 2.0f, x, y, n);
    q.wait(side.record());
    q.launch(saxpy, grid(n, 256), 1.0f, y, z, n);
});
        forked.instantiate().launch(device);
        CHECK(z.download() == std::vector<float>(n, 5));
    }
    {
const GraphExec decode = Graph::record(device, [&](const Queue& q, GraphParameters& its) {
    q.launch(saxpy, grid(n, 256), its.number("a", 2.0f), x, its.buffer("y", y), n);
    q.launch(add_number, grid(n, 250), its.buffer("y", y), its.device_number("position", 0u));
}).instantiate();
decode.launch(stream);
decode.set("position", 1u);                                // written before the next launch
decode.set("y", z);                                        // the function is called again
decode.launch(stream);
        CHECK(y.download() == std::vector<float>(n, 5));
        CHECK(z.download() == std::vector<float>(n, 8));
    }
    {
        y = device.upload(std::vector<float>(n, 6));
const auto halve = kernel("halve", params("x", "n", "more"), [](InOut<float> x, u32 n, Condition more) {
    const u32 i = global_id().x;
    if_(i < n, [&] { x[i] *= 0.5f; });
    if_(i == 0, [&] { set_condition(more, x[0u] > 1.0f); });
});
const Graph halved = Graph::record(device, [&](const Queue& q) {
    const GraphCondition more = graph_condition(q, 1);     // 1 at each launch
    graph_while(q, more, [&](const Queue& body) { body.launch(halve, grid(n, 256), y, n, more); });
});
        halved.instantiate().launch(device);
        CHECK(y.download() == std::vector<float>(n, 0.75f));
    }
}

TEST_CASE("docs/runtime.md: a queue") {
    const Device device = Device::open({.device = "emulator"});
    const Stream stream = device.stream();
    const auto x = device.upload(std::vector<float>(300, 1));
    auto y = device.upload(std::vector<float>(300, 0));
    accumulate(device, x, y);                                // done when it returns
    accumulate(stream, x, y);                                // done with stream.synchronize()
    stream.synchronize();
    CHECK(device.download(y) == std::vector<float>(300, 2));
}

TEST_CASE("docs/library.md: a part of a matrix") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t tokens = 3, heads = 2, head_dim = 8, width = heads * head_dim;
    auto qkv = device.upload(std::vector<float>(tokens * 3 * width, 1));
    const auto positions = device.upload(std::vector<std::uint32_t>{0, 1, 2});
    const auto queries = qkv.view(tokens, 3 * width).columns(0, width).split(head_dim);  // tokens, heads, head_dim
    stdlib::rope(device, stdlib::Rope::Neox, queries, positions, head_dim, 10000.0f);
    const auto got = device.download(qkv);
    CHECK(got[0] == 1);
    CHECK(got[3 * width] < 0);  // cos 1 - sin 1
    CHECK(got[3 * width + width] == 1);
}

TEST_CASE("docs/library.md: on a device and on a stream") {
    const Device device = Device::open({.device = "emulator"});
    const Stream stream = device.stream();
    const std::uint32_t rows = 60, columns = 100;
    const auto x = device.upload(std::vector<float>(rows * columns, 1));
    auto y = device.buffer<float>(x.size()), total_buffer = device.buffer<float>(1);
    auto workspace = device.buffer<std::uint8_t>(stdlib::reduction_workspace(x.size()));
    stdlib::softmax(device, x.view(rows, columns), y.view(rows, columns));  // done when it returns
    stdlib::softmax(stream, x.view(rows, columns), y.view(rows, columns));  // done with stream.synchronize()
    float total = stdlib::sum(device, x);                                   // a number for the host: only on a device
    stdlib::sum(stream, x, total_buffer, workspace);                        // the same, written to a buffer
    stream.synchronize();
    CHECK(device.download(total_buffer)[0] == total);
    CHECK(device.download(y)[0] == 0.01f);
}

TEST_CASE("docs/cli.md: a report in a program") {
    const KernelReport used = report(compile(saxpy.ast(), {.pressure = true}));
    std::string as_text = to_text(used), as_json = to_json(used);
    CHECK(as_text.starts_with("saxpy for sm_80"));
    CHECK(as_json.contains("\"saxpy\""));
}

TEST_CASE("docs/testing.md: what the emulator finds in a kernel") {
    const auto reverse_kernel = [](bool waits) {
        return kernel("reverse", params("x"), [=](InOut<float> x) {
            Shared<float, 128> tile;
            u32 i = thread_id().x;
            tile[i] = x[i];
            if (waits) sync_block();
            x[i] = tile[127 - i];
        });
    };
    const auto reverse = reverse_kernel(true);
REQUIRE_THAT([&](const Device& device) {
                 Buffer<float> x = device.upload(std::vector<float>(128, 1));
                 device.launch(reverse, grid(128, 128), x);
             },
             testing::has_no_findings());
    const auto races = reverse_kernel(false);
    const auto found = testing::findings_in([&](const Device& device) {
        Buffer<float> x = device.upload(std::vector<float>(128, 1));
        device.launch(races, grid(128, 128), x);
    });
    CHECK_THAT(found.text, tests::contains("a race: a "));
    CHECK_THAT(found.text, tests::contains("page_examples.cpp:"));
    const testing::HasNoFindings matcher = testing::has_no_findings();
    CHECK(!matcher.match([](const Device&) {}));
    CHECK_THAT(matcher.describe(), tests::contains("nothing was launched"));
    CHECK(!matcher.match([&](const Device& device) { Buffer<float> x = device.upload(std::vector<float>(3)); device.launch(reverse, grid(128, 128), x); }));
}

std::string run_cse(const std::string& input) { return input; }

const golden::Registration cse({{"cse", [](const golden::Case& test) { return run_cse(test.input); }}});

TEST_CASE("docs/testing.md: the PTX of a kernel against a file") {
    const auto& scale = saxpy;
    std::string folder = (std::filesystem::temp_directory_path() / "ikat-page-XXXXXX").string();
    REQUIRE(mkdtemp(folder.data()));
    const std::string file = folder + "/scale.ptx";
    setenv("IKAT_BLESS", "1", 1);
    CHECK(golden::compare(file, golden::ptx(scale)).rewritten);
    unsetenv("IKAT_BLESS");
    const auto result = ikat::golden::compare(file, ikat::golden::ptx(scale));
    INFO(result.message);
    CHECK(result.passed);               // IKAT_BLESS=1 in the environment rewrites the file
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ikat
