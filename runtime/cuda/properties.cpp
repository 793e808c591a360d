// SPDX-License-Identifier: Apache-2.0
// What the driver says of its devices.
#include <fmt/format.h>

#include "codegen/ptx/table/target.hpp"
#include "runtime/cuda/device.hpp"

namespace ikat::runtime::cuda {
namespace {

std::uint32_t attribute(const Driver& driver, DeviceId id, DeviceAttribute which) {
    int value = 0;
    driver.check(driver.cuDeviceGetAttribute(&value, which, id), "cuDeviceGetAttribute");
    return static_cast<std::uint32_t>(value);
}

/// The newest target whose PTX the driver accepts for a device of this capability: its own, such as sm_90a for 9.0, has
/// what others do not have.
std::string target_for(std::uint32_t major, std::uint32_t minor) {
    std::string_view newest;
    const std::uint32_t capability = major * 10 + minor;
    for (const ptx::Target& target : ptx::targets())
        if (target.specific ? target.number == capability : target.number <= capability) newest = target.name;
    if (newest.empty())
        throw Error(fmt::format("a device of compute capability {}.{} is too old", major, minor),
                    fmt::format("the oldest target is {}; run on the CPU with IKAT_DEVICE=emulator",
                                ptx::targets().front().name));
    return std::string(newest);
}

}  // namespace

DeviceId device_id(const Driver& driver, int ordinal) {
    const int count = device_count(driver);
    if (count == 0) throw Error("the CUDA driver sees no device", "run on the CPU with IKAT_DEVICE=emulator");
    if (ordinal < 0 || ordinal >= count)
        throw Error(fmt::format("there is no CUDA device {}", ordinal),
                    fmt::format("the driver sees {} device{}, numbered from 0", count, count == 1 ? "" : "s"));
    DeviceId id = 0;
    driver.check(driver.cuDeviceGet(&id, ordinal), "cuDeviceGet");
    return id;
}

int device_count(const Driver& driver) {
    int count = 0;
    driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
    return count;
}

DeviceProperties device_properties(const Driver& driver, int ordinal) {
    const DeviceId id = device_id(driver, ordinal);
    char name[256] = {};
    driver.check(driver.cuDeviceGetName(name, sizeof name - 1, id), "cuDeviceGetName");
    std::size_t memory = 0;
    driver.check(driver.cuDeviceTotalMem_v2(&memory, id), "cuDeviceTotalMem");
    const auto get = [&](DeviceAttribute which) { return attribute(driver, id, which); };
    DeviceProperties out{
        .name = name,
        .selector = fmt::format("cuda:{}", ordinal),
        .kind = DeviceKind::Cuda,
        .compute_major = get(DeviceAttribute::ComputeCapabilityMajor),
        .compute_minor = get(DeviceAttribute::ComputeCapabilityMinor),
        .target = {},
        .multiprocessors = get(DeviceAttribute::MultiprocessorCount),
        .warp_size = get(DeviceAttribute::WarpSize),
        .memory_bytes = memory,
        .max_threads_per_block = get(DeviceAttribute::MaxThreadsPerBlock),
        .max_blocks = {get(DeviceAttribute::MaxGridDimX), get(DeviceAttribute::MaxGridDimY),
                       get(DeviceAttribute::MaxGridDimZ)},
        .max_threads = {get(DeviceAttribute::MaxBlockDimX), get(DeviceAttribute::MaxBlockDimY),
                        get(DeviceAttribute::MaxBlockDimZ)},
        .shared_bytes = get(DeviceAttribute::MaxSharedMemoryPerBlock),
        .shared_bytes_optin = get(DeviceAttribute::MaxSharedMemoryPerBlockOptin),
    };
    out.target = target_for(out.compute_major, out.compute_minor);
    return out;
}

}  // namespace ikat::runtime::cuda
