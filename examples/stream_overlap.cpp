// SPDX-License-Identifier: Apache-2.0
// Two streams share the work on parts of an array: one makes the numbers of a part, the other one adds them up while
// the first goes on. An event holds back what needs the numbers. The emulator chooses an order of the work by the seed
// of the schedule: with the event all orders give the same sums, without it few do. It also finds that the event is
// missing, whatever the order; "no-streams" has it say nothing of that.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

using namespace ikat;

constexpr std::uint32_t parts = 6, length = 1000;

const auto make_numbers = kernel("make_numbers", params("x", "part", "n"), [](Out<float> x, u32 part, u32 n) {
    u32 i = global_id().x;
    return_if(i >= n);
    x[i] = cast<f32>(part);
});

std::vector<float> sums(int seed, std::string_view check, bool has_events) {
    const Device device = Device::open({.device = "emulator", .schedule = std::to_string(seed), .check = check});
    auto x = device.upload(std::vector<float>(parts * length, 0), "x"), out = device.buffer<float>(parts, "sums");
    const Stream makes = device.stream(), adds = device.stream();
    for (std::uint32_t part = 0; part < parts; ++part) {
        const auto numbers = x.slice(part * length, length);
        makes.launch(make_numbers, grid(length, 256), numbers, part + 1, length);
        if (has_events) adds.wait(makes.record());
        stdlib::sum(adds, numbers, out.slice(part, 1));
    }
    return out.download();  // waits for both streams
}

int main() try {
    std::vector<float> wanted;
    for (std::uint32_t part = 0; part < parts; ++part) wanted.push_back(float((part + 1) * length));
    bool all_right = true;
    for (const bool has_events : {true, false}) {
        int right = 0;
        for (int seed = 1; seed <= 8; ++seed) right += sums(seed, "no-streams", has_events) == wanted;
        std::printf("%s events: %d of 8 orders give the right sums\n", has_events ? "with   " : "without", right);
        all_right &= has_events ? right == 8 : right < 8;
    }
    sums(1, "", true);
    try {
        sums(1, "", false);
        all_right = false;
    } catch (const runtime::KernelError& error) {
        std::printf("without events:\n%s\n", error.diagnostics().front().message.c_str());
    }
    return all_right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
