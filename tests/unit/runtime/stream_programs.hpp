// SPDX-License-Identifier: Apache-2.0
// Programs with a mistake, each beside the same without it: the first is found in every order of the work, the second
// in none accused.
#pragma once
#include <ikat/ikat.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests::stream_programs {

using namespace runtime;

constexpr std::uint32_t size = 256;

inline const auto twice = kernel("twice", params("y", "x", "n"), [](Out<float> y, In<float> x, u32 count) {
    const u32 i = global_id().x;
    return_if(i >= count);
    y[i] = x[i] * 2.0f;
});
inline const auto increment = kernel("increment", params("x", "n"), [](InOut<float> x, u32 count) {
    const u32 i = global_id().x;
    return_if(i >= count);
    x[i] += 1.0f;
});

struct Scene {
    Device device;
    Stream a = device.stream(), b = device.stream(), c = device.stream();
    Buffer<float> x = device.upload(std::vector<float>(size, 1.0f), "x"),
                  y = device.upload(std::vector<float>(size), "y"), z = device.upload(std::vector<float>(size), "z");
    Grid all = grid(size, 64);

    /// y = 2 x on one stream, z = 2 y on another.
    void make(const Stream& on) { on.launch(twice, all, y, x, size); }
    void use(const Stream& on) { on.launch(twice, all, z, y, size); }
};

struct Program {
    const char* name;
    const char* found;  // in the message
    std::function<void(Scene&, bool is_right)> run;
};

/// What is found in an order of the work.
inline std::string found_in(const Program& program, bool is_right, const std::string& schedule) {
    Scene scene{Device::open({.device = "emulator", .threads = 1, .schedule = schedule})};
    return message_of([&] {
        program.run(scene, is_right);
        scene.device.synchronize();
    });
}

inline void check(std::span<const Program> programs) {
    for (const Program& program : programs) {
        INFO(program.name);
        for (int seed = 0; seed < 8; ++seed) {
            CHECK_THAT(found_in(program, false, std::to_string(seed)), contains(program.found));
            CHECK(found_in(program, true, std::to_string(seed)) == "");
        }
    }
}

}  // namespace ikat::tests::stream_programs
