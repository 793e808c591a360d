// SPDX-License-Identifier: Apache-2.0
// One look at all devices, as blocks of lines and as JSON.
#pragma once
#include <string>
#include <vector>

#include "tools/cli/monitor/host_load.hpp"
#include "tools/cli/monitor/nvml.hpp"

namespace ikat::cli {

struct Sample {
    double time = 0;  // seconds since 1970
    std::vector<GpuReadings> gpus{};
    std::string problem{};  // why there is nothing about GPUs
    HostReadings host{};
};

/// What is not known is "-".
std::string text_of(const Sample& sample);
/// A line for each device; what is not known is null.
std::string json_of(const Sample& sample);

}  // namespace ikat::cli
