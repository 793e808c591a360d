// SPDX-License-Identifier: Apache-2.0
// What a function launches that chooses its kernels, for tools that show them:
//
//     LaunchRecorder recorder(false);
//     gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n));
//     for (const RecordedLaunch& launch : recorder.launches()) ... compile(launch.kernel.ast()) ...
#pragma once
#include <vector>

#include "dsl/record/capture.hpp"
#include "runtime/launch/launch.hpp"

namespace ikat::runtime {

struct RecordedLaunch {
    trace::KernelHandle kernel;
    Grid grid;
};

/// Records the launches of captured kernels by this thread while it lives, the innermost if there are several. Unless
/// `runs`, they are checked, but nothing is run.
class LaunchRecorder {
public:
    explicit LaunchRecorder(bool runs);
    ~LaunchRecorder();
    LaunchRecorder(const LaunchRecorder&) = delete;

    const std::vector<RecordedLaunch>& launches() const { return launches_; }

    /// Called for each launch; whether it is to run.
    static bool record(const trace::KernelHandle& kernel, const Grid& grid);

private:
    bool runs_;
    LaunchRecorder* outer_;
    std::vector<RecordedLaunch> launches_{};
};

}  // namespace ikat::runtime
