// SPDX-License-Identifier: Apache-2.0
// A stand-in for NVIDIA's management library with two GPUs, of which the second tells nothing but its name. A test says
// which calls fail, by fake_nvml_fail(), or by FAKE_NVML_FAILS in the environment of another process.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

constexpr unsigned not_supported = 3, insufficient_size = 7;

std::map<std::string, unsigned>& faults() {
    static std::map<std::string, unsigned> its;
    return its;
}

unsigned result_of(const char* symbol) {
    const char* const fails = std::getenv("FAKE_NVML_FAILS");
    if (fails && std::strcmp(fails, symbol) == 0) return 999;
    const auto found = faults().find(symbol);
    return found == faults().end() ? 0 : found->second;
}

int numbers[2];
bool is_second(const void* device) { return device == &numbers[1]; }

/// Of the first GPU.
template <class Number>
unsigned tell(const char* symbol, const void* device, Number* to, Number number) {
    if (const unsigned result = result_of(symbol)) return result;
    if (is_second(device)) return not_supported;
    *to = number;
    return 0;
}

struct Utilisation {
    unsigned gpu, memory;
};
struct Memory {
    unsigned long long total, free, used;
};
struct Process {
    unsigned id;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
int users = 0;

}  // namespace

extern "C" {

void fake_nvml_reset() { faults().clear(); }
void fake_nvml_fail(const char* symbol, unsigned result) { faults()[symbol] = result; }
int fake_nvml_users() { return users; }

unsigned nvmlInit_v2() {
    const unsigned result = result_of("nvmlInit_v2");
    users += result == 0;
    return result;
}
unsigned nvmlShutdown() { return --users, 0; }
const char* nvmlErrorString(unsigned result) { return result == 9 ? "Driver Not Loaded" : "Unknown Error"; }
unsigned nvmlDeviceGetCount_v2(unsigned* count) {
    *count = 2;
    return result_of("nvmlDeviceGetCount_v2");
}
unsigned nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    if (index > 1) return 2;
    *device = &numbers[index];
    return result_of("nvmlDeviceGetHandleByIndex_v2");
}
unsigned nvmlDeviceGetName(void* device, char* name, unsigned length) {
    std::snprintf(name, length, is_second(device) ? "Fake \"GPU\" 1" : "Fake GPU 0");
    return result_of("nvmlDeviceGetName");
}
unsigned nvmlDeviceGetUtilizationRates(void* device, Utilisation* to) {
    return tell("nvmlDeviceGetUtilizationRates", device, to, {97, 41});
}
unsigned nvmlDeviceGetMemoryInfo(void* device, Memory* to) {
    return tell("nvmlDeviceGetMemoryInfo", device, to, {16ull << 30, 12ull << 30, 4ull << 30});
}
unsigned nvmlDeviceGetTemperature(void* device, unsigned sensor, unsigned* to) {
    return sensor ? 2 : tell("nvmlDeviceGetTemperature", device, to, 62u);
}
unsigned nvmlDeviceGetPowerUsage(void* device, unsigned* to) {
    return tell("nvmlDeviceGetPowerUsage", device, to, 412300u);
}
unsigned nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* to) {
    return tell("nvmlDeviceGetEnforcedPowerLimit", device, to, 700000u);
}
#ifndef WITHOUT_CLOCKS
unsigned nvmlDeviceGetClockInfo(void* device, unsigned clock, unsigned* to) {
    if (clock != 1 && clock != 2) return 2;
    return tell("nvmlDeviceGetClockInfo", device, to, clock == 1 ? 1980u : 2619u);
}
#endif
#ifndef WITHOUT_PROCESSES
unsigned nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* to) {
    if (const unsigned result = result_of("nvmlDeviceGetComputeRunningProcesses_v3")) return result;
    if (is_second(device)) return *count = 0, 0;
    if (*count < 2) return *count = 2, insufficient_size;
    to[0] = {4711, 3ull << 30, ~0u, ~0u}, to[1] = {4712, ~0ull, ~0u, ~0u};
    return *count = 2, 0;
}
#endif

}  // extern "C"
