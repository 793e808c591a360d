// SPDX-License-Identifier: Apache-2.0
// Points of two half circles that reach into each other, with noise: a set that no line divides.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

namespace ikat::training {

/// Numbers from 0 to 1, the same from a seed with every compiler.
class Uniform {
public:
    explicit Uniform(std::uint32_t seed) : random_(seed) {}
    double next() { return double(random_() >> 8) / (1 << 24); }
    /// Of those below a limit, which is at most 2^24.
    std::uint32_t below(std::uint32_t limit) { return std::uint32_t(next() * limit); }
    /// About normal, with a variance of 1: a sum of twelve.
    double normal() {
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += next();
        return sum;
    }

private:
    std::mt19937 random_;
};

/// Two coordinates for each point, and its class, 0 or 1.
struct Points {
    std::vector<float> at{};
    std::vector<std::int32_t> classes{};
    std::uint32_t count() const { return std::uint32_t(classes.size()); }
};

/// As many points of each class, up to one; the noise is in units of a radius.
inline Points two_moons(std::uint32_t count, double noise, std::uint32_t seed) {
    Uniform random(seed);
    Points out;
    for (std::uint32_t i = 0; i < count; ++i) {
        const bool second = i % 2;
        const double angle = std::numbers::pi * random.next(), x = std::cos(angle), y = std::sin(angle);
        out.at.push_back(float((second ? 1 - x : x) + noise * random.normal()));
        out.at.push_back(float((second ? 0.5 - y : y) + noise * random.normal()));
        out.classes.push_back(second);
    }
    return out;
}

}  // namespace ikat::training
