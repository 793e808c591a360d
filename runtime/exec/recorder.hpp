// SPDX-License-Identifier: Apache-2.0
// What a function enqueues, for tools that show it and for programs that do it later:
//
//     Recorder recorder(device, Recorder::Runs::No);
//     gemm_tensor_core(recorder, A.view(m, k), B.view(k, n), C.view(m, n));
//     for (const node::Launch& launch : recorder.launches()) ... compile(launch.kernel->ast()) ...
#pragma once
#include <vector>

#include "runtime/device.hpp"
#include "runtime/exec/node.hpp"

namespace ikat::runtime {

/// Notes work for a device, in order. What is wrong with a call is thrown by it, as on the device. Memory that is
/// allocated meanwhile exists as long as its nodes do.
class Recorder {
public:
    enum class Runs : bool { No, Yes };
    Recorder(const Device& device, Runs runs);

    const std::vector<Node>& nodes() const;
    /// The launches among them.
    std::vector<node::Launch> launches() const;

    const Device& device() const { return device_; }
    const Reference<Sink>& sink() const { return sink_; }

private:
    Device device_;
    Reference<Sink> sink_;
};

}  // namespace ikat::runtime
