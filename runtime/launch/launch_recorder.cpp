// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/launch_recorder.hpp"

namespace ikat::runtime {
namespace {

thread_local LaunchRecorder* innermost = nullptr;

}  // namespace

LaunchRecorder::LaunchRecorder(bool runs) : runs_(runs), outer_(innermost) { innermost = this; }
LaunchRecorder::~LaunchRecorder() { innermost = outer_; }

bool LaunchRecorder::record(const trace::KernelHandle& kernel, const Grid& grid) {
    if (!innermost) return true;
    innermost->launches_.push_back({kernel, grid});
    return innermost->runs_;
}

}  // namespace ikat::runtime
