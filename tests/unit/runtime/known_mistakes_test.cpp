// SPDX-License-Identifier: Apache-2.0
// Mistakes with streams that the documentation, the checkers and the samples of other systems are about: numba.cuda,
// PyTorch with its sanitizer of streams (CSAN), and NVIDIA's cuda-samples.
#include <ikat/graph.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/runtime/stream_programs.hpp"

namespace ikat::tests {
namespace {
namespace known_mistakes {

using namespace runtime;
using stream_programs::check, stream_programs::increment, stream_programs::Program, stream_programs::Scene,
    stream_programs::size, stream_programs::twice;

const Program programs[] = {
    {"numba.cuda: to_device(a, stream=s1), and a kernel on s2", "buffer 'x', which a copy on stream 1 writes",
     [](Scene& its, bool is_right) {
         auto a = its.device.host_buffer<float>(size, "a");
         its.a.upload_async(its.x, a);
         if (is_right) its.b.wait(its.a.record());
         its.b.launch(twice, its.all, its.y, its.x, size);
         its.device.synchronize();
     }},
    {"numba.cuda: a pinned array is filled anew inside of `with stream.auto_synchronize()`",
     "has changed the memory of the host",
     [](Scene& its, bool is_right) {
         auto pinned = its.device.host_buffer<float>(size, "pinned");
         for (int block = 0; block < 2; ++block) {
             std::ranges::fill(pinned, float(block));
             its.a.upload_async(its.x, pinned);
             its.make(its.a);
             if (is_right || block == 1) its.a.synchronize();  // the end of the with block
         }
     }},
    {"PyTorch, CSAN: torch.mul(a, 5, out=a) on another stream than the one that made a", "buffer 'a'",
     [](Scene& its, bool is_right) {
         auto a = Queue(its.a).buffer<float>(size, "a");
         its.a.fill(a, 1.0f);
         if (is_right) its.b.wait(its.a.record());  // side.wait_stream(current)
         its.b.launch(increment, its.all, a, size);
         its.a.wait(its.b.record());
     }},
    {"PyTorch: a tensor ends that a side stream uses, without record_stream", "buffer 'tensor'",
     [](Scene& its, bool is_right) {
         std::optional tensor(Queue(its.a).buffer<float>(size, "tensor"));
         its.a.fill(*tensor, 1.0f);
         its.b.wait(its.a.record());
         its.b.launch(twice, its.all, its.y, *tensor, size);
         if (is_right) its.a.wait(its.b.record());  // tensor.record_stream(side)
         tensor.reset();
         auto next = Queue(its.a).buffer<float>(size, "next");  // in the allocator's free block
         its.a.fill(next, 2.0f);
     }},
    {"PyTorch: the optimizer's step does not wait for gradients of a side stream", "buffer 'gradient'",
     [](Scene& its, bool is_right) {
         auto gradient = its.device.upload(std::vector<float>(size), "gradient");
         its.b.wait(its.a.record());  // side.wait_stream(current)
         its.b.launch(twice, its.all, gradient, its.x, size);
         if (is_right) its.a.wait(its.b.record());  // current.wait_stream(side)
         its.a.launch(twice, its.all, its.y, gradient, size);
         its.device.synchronize();
     }},
    {"PyTorch: a loader records the event of a pinned slot before the copy of the slot",
     "has changed the memory of the host",
     [](Scene& its, bool is_right) {
         auto slots = its.device.host_buffer<float>(2 * size, "slots");
         std::array<std::optional<Event>, 2> copied;
         for (std::uint64_t batch = 0; batch < 4; ++batch) {
             const std::uint64_t slot = batch % 2;
             const auto pinned = slots.slice(slot * size, size);
             if (copied[slot]) copied[slot]->synchronize();
             std::ranges::fill(pinned, float(batch + 1));
             if (!is_right) copied[slot] = its.c.record();
             its.c.upload_async(slot == 0 ? its.x : its.z, pinned);  // non_blocking=True
             if (is_right) copied[slot] = its.c.record();
         }
         its.device.synchronize();
     }},
    {"PyTorch: the static input of a CUDA graph is filled while a replay reads it", "buffer 'x'",
     [](Scene& its, bool is_right) {
         auto next = its.device.host_buffer<float>(size, "next");
         const GraphExec g = Graph::record(its.device, [&](const Queue& q) {
                                 q.launch(twice, its.all, its.y, its.x, size);
                             }).instantiate();
         g.launch(its.a);
         if (is_right) its.b.wait(its.a.record());
         its.b.upload_async(its.x, next);  // static_input.copy_(next) on another stream
         its.a.wait(its.b.record());
         g.launch(its.a);
         its.device.synchronize();
     }},
    {"PyTorch, DDP: a bucket is reduced before its last gradient is in it", "bytes 512 to 1023 of buffer 'bucket'",
     [](Scene& its, bool is_right) {
         auto bucket = its.device.upload(std::vector<float>(size), "bucket");
         Event ready = its.a.record();
         for (std::uint64_t gradient = 0; gradient < 2; ++gradient) {
             its.a.launch(twice, its.all, bucket.slice(gradient * 128, 128), its.x, 128u);
             if (gradient == 0 || is_right) ready = its.a.record();
         }
         its.b.wait(ready);
         its.b.launch(increment, its.all, bucket, size);  // all_reduce
         its.device.synchronize();
     }},
    {"cuda-samples, simpleStreams: a stream copies back the slice of the next one", "buffer 'y'",
     [](Scene& its, bool is_right) {
         auto host = its.device.host_buffer<float>(size, "host");
         const Stream* const streams[] = {&its.a, &its.b};
         for (std::uint64_t i = 0; i < 2; ++i)
             streams[i]->launch(twice, its.all, its.y.slice(i * 128, 128), its.x, 128u);
         for (std::uint64_t i = 0; i < 2; ++i) {
             const std::uint64_t first = (is_right ? i : 1 - i) * 128;
             streams[i]->download_async(host.slice(first, 128), its.y.slice(first, 128));
         }
         its.device.synchronize();
     }},
    {"cuda-samples, asyncAPI: the stop event is recorded before the copy back", "buffer 'a'",
     [](Scene& its, bool is_right) {
         auto a = its.device.host_buffer<float>(size, "a");
         its.a.upload_async(its.x, a);
         its.a.launch(increment, its.all, its.x, size);
         std::optional<Event> stop;
         if (!is_right) stop = its.a.record();
         its.a.download_async(a, its.x);
         if (is_right) stop = its.a.record();
         while (!stop->query()) {}
         its.b.upload_async(its.y, a);  // the numbers that are thought to be back
         its.device.synchronize();
     }},
    {"cuda-samples, simpleMultiCopy: the input of a cycle is written without its cycleDone event",
     "has changed the memory of the host",
     [](Scene& its, bool is_right) {
         auto in = its.device.host_buffer<float>(2 * size, "in");
         std::array<std::optional<Event>, 2> done;
         const Stream* const streams[] = {&its.a, &its.b};
         for (std::uint64_t cycle = 0; cycle < 4; ++cycle) {
             const std::uint64_t now = cycle % 2;
             if (is_right && done[now]) done[now]->synchronize();
             std::ranges::fill(in.slice(now * size, size), float(cycle + 1));
             streams[now]->upload_async(now == 0 ? its.x : its.z, in.slice(now * size, size));
             done[now] = streams[now]->record();
         }
         its.device.synchronize();
     }},
    {"cuda-samples, simpleMultiCopy: a kernel writes the output that the cycle before copies back", "buffer 'y'",
     [](Scene& its, bool is_right) {
         auto out = its.device.host_buffer<float>(2 * size, "out");
         std::optional<Event> copied;
         for (std::uint64_t cycle = 0; cycle < 2; ++cycle) {
             if (is_right && copied) its.a.wait(*copied);
             its.make(its.a);
             its.b.wait(its.a.record());
             its.b.download_async(out.slice(cycle * size, size), its.y);
             copied = its.b.record();
         }
         its.device.synchronize();
     }},
    {"cuda-samples, simpleHyperQ: the sum waits for all streams but one", "buffer 'y'",
     [](Scene& its, bool is_right) {
         const Stream* const streams[] = {&its.a, &its.b};
         for (std::uint64_t i = 0; i < 2; ++i) {
             streams[i]->launch(twice, its.all, its.y.slice(i * 128, 128), its.x, 128u);
             if (is_right || i == 0) its.c.wait(streams[i]->record());
         }
         its.use(its.c);
         its.device.synchronize();
     }},
    {"cuda-samples, simpleCudaGraphs: the reduction does not come after the branch that sets its result to 0",
     "buffer 'z'",
     [](Scene& its, bool is_right) {
         const GraphExec exec = Graph::record(its.device, [&](const Queue& q) {
                                    its.b.wait(q.record());
                                    its.b.fill(its.z, 0.0f);  // the memset node
                                    q.launch(twice, its.all, its.y, its.x, size);
                                    if (is_right) q.wait(its.b.record());
                                    q.launch(increment, its.all, its.z, size);
                                    if (!is_right) q.wait(its.b.record());
                                }).instantiate();
         exec.launch(its.a);
         its.device.synchronize();
     }},
    {"cuda-samples, conjugateGradientCudaGraphs: the graph of the next step begins on another stream", "buffer 'y'",
     [](Scene& its, bool is_right) {
         const auto graph_of = [&](const Buffer<float>& from, Buffer<float>& to) {
             return Graph::record(its.device, [&](const Queue& q) { q.launch(twice, its.all, to, from, size); })
                 .instantiate();
         };
         const GraphExec first = graph_of(its.x, its.y), step = graph_of(its.y, its.z);
         first.launch(its.a);
         if (is_right) its.a.synchronize();
         step.launch(its.b);
         its.device.synchronize();
     }},
    {"cuda-samples, StreamPriorities: work of a higher priority is taken to be done first", "buffer 'y'",
     [](Scene& its, bool is_right) {
         const Stream high = its.device.stream(its.device.properties().greatest_priority), low = its.device.stream(0);
         its.make(high);
         if (is_right) low.wait(high.record());
         its.use(low);
         its.device.synchronize();
     }},
};

TEST_CASE("known mistakes: each is found in every order, and its right twin in none") { check(programs); }

}  // namespace known_mistakes
}  // namespace
}  // namespace ikat::tests
