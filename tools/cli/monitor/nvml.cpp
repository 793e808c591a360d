// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/monitor/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/environment.hpp"

namespace ikat::cli {
namespace nvml {

/// The values of nvmlReturn_t that are told apart.
using NvmlResult = unsigned;
constexpr NvmlResult success = 0, insufficient_size = 7;

using NvmlDevice = struct NvmlDeviceObject*;
struct NvmlUtilisation {
    unsigned gpu = 0, memory = 0;  // percent
};
struct NvmlMemory {
    unsigned long long total = 0, free = 0, used = 0;  // bytes
};
struct NvmlProcess {
    unsigned id = 0;
    unsigned long long memory = 0;  // bytes; all bits set: not known
    unsigned gpu_instance = 0, compute_instance = 0;
};
constexpr unsigned sensor_of_gpu = 0, clock_of_sm = 1, clock_of_memory = 2;

}  // namespace nvml

using namespace nvml;

struct NvmlApi {
#define FUNCTION(symbol, ...) NvmlResult (*symbol)(__VA_ARGS__) = nullptr;
#include "tools/cli/monitor/nvml.def"
    const char* (*nvmlErrorString)(NvmlResult) = nullptr;
};

namespace {

template <class F>
void find(void* library, const std::string& path, const char* symbol, F& out, bool is_needed) {
    out = reinterpret_cast<F>(dlsym(library, symbol));
    if (!out && is_needed)
        throw Error(fmt::format("NVIDIA's management library {} has no function {}", path, symbol),
                    "it is older than the driver that this needs, or another library: IKAT_NVML names one");
}

/// It stays loaded: libraries of drivers do not like to be unloaded.
NvmlApi load(const std::string& path) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        throw Error(fmt::format("no management library of NVIDIA (NVML): {}", dlerror()),
                    "it comes with NVIDIA's driver; IKAT_NVML names the file");
    NvmlApi out;
#define FUNCTION(symbol, ...) find(library, path, #symbol, out.symbol, true);
#define OPTIONAL(symbol, ...) find(library, path, #symbol, out.symbol, false);
#include "tools/cli/monitor/nvml.def"
    find(library, path, "nvmlErrorString", out.nvmlErrorString, true);
    return out;
}

/// What a call writes, if it can tell.
template <class Number, class Call>
std::optional<Number> told(Call call) {
    Number number{};
    return call(&number) == success ? std::optional(number) : std::nullopt;
}

std::optional<double> watts(const std::optional<unsigned>& milliwatts) {
    return milliwatts ? std::optional(*milliwatts / 1000.0) : std::nullopt;
}

std::optional<std::vector<GpuReadings::Process>> processes(const NvmlApi& api, NvmlDevice device) {
    if (!api.nvmlDeviceGetComputeRunningProcesses_v3) return {};
    std::vector<NvmlProcess> found;
    NvmlResult result = success;
    do {  // some may have begun since they were counted
        unsigned count = unsigned(found.size());
        result = api.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, found.empty() ? nullptr : found.data());
        found.resize(result == insufficient_size ? std::max<std::size_t>(count, found.size() + 4) : count);
    } while (result == insufficient_size && found.size() < 4096);
    if (result != success) return {};
    std::vector<GpuReadings::Process> out;
    for (const NvmlProcess& each : found)
        out.push_back({each.id, ~each.memory ? std::optional<std::uint64_t>(each.memory) : std::nullopt});
    return out;
}

GpuReadings read_device(const NvmlApi& api, NvmlDevice device) {
    GpuReadings out;
    char name[96] = {};
    if (api.nvmlDeviceGetName(device, name, sizeof name - 1) == success) out.name = name;
    if (const auto its = told<NvmlUtilisation>([&](auto* to) { return api.nvmlDeviceGetUtilizationRates(device, to); }))
        out.gpu_percent = its->gpu, out.memory_percent = its->memory;
    if (const auto its = told<NvmlMemory>([&](auto* to) { return api.nvmlDeviceGetMemoryInfo(device, to); }))
        out.memory_used = its->used, out.memory_total = its->total;
    out.celsius = told<unsigned>([&](auto* to) { return api.nvmlDeviceGetTemperature(device, sensor_of_gpu, to); });
    out.watts = watts(told<unsigned>([&](auto* to) { return api.nvmlDeviceGetPowerUsage(device, to); }));
    out.watt_limit = watts(told<unsigned>([&](auto* to) { return api.nvmlDeviceGetEnforcedPowerLimit(device, to); }));
    out.sm_megahertz = told<unsigned>([&](auto* to) { return api.nvmlDeviceGetClockInfo(device, clock_of_sm, to); });
    out.memory_megahertz =
        told<unsigned>([&](auto* to) { return api.nvmlDeviceGetClockInfo(device, clock_of_memory, to); });
    out.processes = processes(api, device);
    return out;
}

}  // namespace

std::string Nvml::default_path() {
    const std::string_view named = environment("IKAT_NVML");
    return named.empty() ? "libnvidia-ml.so.1" : std::string(named);
}

void Nvml::check(unsigned result, const char* doing) const {
    if (result == success) return;
    const char* const why = api_->nvmlErrorString(result);
    throw Error(fmt::format("{} of NVIDIA's management library failed: {}", doing,
                            why ? std::string(why) : fmt::format("error {}", result)),
                "is the driver loaded, and is it as old as the library?");
}

Nvml::Nvml(const std::string& path) : api_(std::make_unique<const NvmlApi>(load(path))) {
    check(api_->nvmlInit_v2(), "nvmlInit");
}

Nvml::~Nvml() { api_->nvmlShutdown(); }

std::vector<GpuReadings> Nvml::read() const {
    unsigned count = 0;
    check(api_->nvmlDeviceGetCount_v2(&count), "nvmlDeviceGetCount");
    std::vector<GpuReadings> out;
    for (unsigned i = 0; i < count; ++i) {
        NvmlDevice device = nullptr;
        const bool is_there = api_->nvmlDeviceGetHandleByIndex_v2(i, &device) == success;
        out.push_back(is_there ? read_device(*api_, device) : GpuReadings{});
    }
    return out;
}

}  // namespace ikat::cli
