// SPDX-License-Identifier: Apache-2.0
// An OpenCL implementation for the CPU, as PoCL is: kernels of kernels.cl, in forms of which the best may be chosen.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

namespace ikat::bench {

/// How a kernel is built and launched.
struct Form {
    const char* kernel;
    std::array<std::size_t, 2> items;    // in all
    std::array<std::size_t, 2> group{};  // in a work group; 0: the implementation chooses
    bool has_tile = false;               // its last parameter is local memory of 16 bytes for each item of a group
    bool is_native = false;              // with native_rsqrt

    std::string name() const;
};

class Peer {
public:
    /// The first device of that kind, with this many threads. Throws Error if there is none.
    explicit Peer(unsigned threads);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    std::string name() const;
    /// Replaces all buffers.
    void upload(const std::vector<std::vector<float>>& buffers);
    std::vector<float> download(std::size_t buffer) const;
    /// Runs a kernel with the buffers, the factor if there is one, and n. Done when it returns.
    void run(const Form& form, const float* factor, unsigned n);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace ikat::bench
