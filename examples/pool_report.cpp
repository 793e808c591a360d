// SPDX-License-Identifier: Apache-2.0
// What the pool of a device has. Two streams take buffers and give some of them back: what one of them has given back
// it may have again at once, the other one when the program, or an event, has waited for the first.
#include <ikat/ikat.hpp>

#include <cstdio>
#include <optional>

using namespace ikat;

int main() try {
    const Device device = Device::open();
    const Stream first = device.stream(), second = device.stream();
    Pool pool = device.pool();
    pool.set_limit(std::uint64_t{64} << 20);

    std::optional<Buffer<float>> a = Queue(first).buffer<float>(200'000, "a");
    const Buffer<float> b = Queue(second).buffer<float>(100'000, "b"), c = Queue(first).buffer<float>(1'000'000, "c");
    Queue(first).fill(*a, 1.0f);
    a.reset();  // behind the fill
    std::puts("the buffer 'a' has ended, on the first stream:");
    std::puts(map_as_text(pool.report()).c_str());

    const Buffer<float> d = Queue(first).buffer<float>(50'000, "d");
    std::puts("the first stream has used a part of it again:");
    std::puts(map_as_text(pool.report()).c_str());

    first.synchronize();
    const Buffer<float> e = Queue(second).buffer<float>(140'000, "e");
    std::puts("the program has waited for the first stream, so the second one gets the rest:");
    const PoolReport report = pool.report();
    std::puts(map_as_text(report).c_str());
    std::puts(to_text(report).c_str());
    const bool is_right = report.used == 400'128 + 4'000'000 + 200'192 + 560'128 && report.segments.size() == 2;
    return is_right && pool.trim() == 0 ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
