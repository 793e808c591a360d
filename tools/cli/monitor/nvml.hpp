// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library (NVML), found with dlopen: what a GPU does at the moment. Building needs nothing of it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ikat::cli {

struct NvmlApi;

/// What a GPU says of itself; nothing where it does not tell.
struct GpuReadings {
    struct Process {
        std::uint32_t id = 0;
        std::optional<std::uint64_t> memory_bytes{};
    };
    std::string name;
    std::optional<std::uint32_t> gpu_percent{}, memory_percent{};  // of the time in which kernels ran, memory was used
    std::optional<std::uint64_t> memory_used{}, memory_total{};    // bytes
    std::optional<std::uint32_t> celsius{};
    std::optional<double> watts{}, watt_limit{};
    std::optional<std::uint32_t> sm_megahertz{}, memory_megahertz{};
    std::optional<std::vector<Process>> processes{};  // that compute
};

/// The library while it is in use.
class Nvml {
public:
    /// Throws Error if the library is missing, lacks a function or does not initialise.
    explicit Nvml(const std::string& path);
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    /// Of all GPUs, as the library numbers them. Throws Error if it does not even know how many there are.
    std::vector<GpuReadings> read() const;

    /// IKAT_NVML, else "libnvidia-ml.so.1".
    static std::string default_path();

private:
    void check(unsigned result, const char* doing) const;

    std::unique_ptr<const NvmlApi> api_;
};

}  // namespace ikat::cli
