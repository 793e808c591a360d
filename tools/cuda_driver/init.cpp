// SPDX-License-Identifier: Apache-2.0
// The start: versions, errors by name, and the device.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

struct ResultRow {
    CUresult value;
    const char* name;
    const char* text;
};
constexpr ResultRow results[] = {
#define RESULT(value, name, text) {name, #name, text},
#include "tools/cuda_driver/results.def"
#undef RESULT
};

CUresult describe(CUresult result, const char** out, const char* ResultRow::*text) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    const auto found = std::ranges::find(results, result, &ResultRow::value);
    *out = found == std::end(results) ? nullptr : (*found).*text;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int attribute(const Driver& its, CUdevice_attribute which) {
    const ptx::Target& target = its.target;
    const runtime::DeviceProperties& properties = its.properties;
    switch (which) {
#define DEVICE_ATTRIBUTE(value, name, number) \
    case name:                                \
        return int(number);
#include "tools/cuda_driver/device_attributes.def"
#undef DEVICE_ATTRIBUTE
    }
    return 0;
}

/// Writes text with its terminating zero, cut to fit.
void write_text(std::string_view text, char* to, int length) {
    require(to && length > 0);
    const std::size_t count = std::min(text.size(), std::size_t(length) - 1);
    std::memcpy(to, text.data(), count);
    to[count] = 0;
}

}  // namespace

API(cuInit, unsigned flags) {
    return guarded("cuInit", [&] {
        require(flags == 0);
        driver().initialised = true;
    });
}
API(cuDriverGetVersion, int* version) {
    return guarded("cuDriverGetVersion", [&] {
        require(version);
        *version = driver_version;
    });
}
API(cuGetErrorName, CUresult result, const char** name) { return describe(result, name, &ResultRow::name); }
API(cuGetErrorString, CUresult result, const char** text) { return describe(result, text, &ResultRow::text); }

API(cuDeviceGetCount, int* count) {
    return initialised("cuDeviceGetCount", [&](Driver& its) {
        require(count);
        *count = int(its.gpus.size());
    });
}
API(cuDeviceGet, CUdevice* device, int ordinal) {
    return initialised("cuDeviceGet", [&](Driver&) {
        require(device);
        check_device(ordinal);
        *device = ordinal;
    });
}
API(cuDeviceGetName, char* name, int length, CUdevice device) {
    return initialised("cuDeviceGetName", [&](Driver& its) {
        check_device(device);
        write_text(its.properties.name, name, length);
    });
}
API(cuDeviceTotalMem_v2, std::size_t* bytes, CUdevice device) {
    return initialised("cuDeviceTotalMem", [&](Driver& its) {
        check_device(device);
        require(bytes);
        *bytes = its.properties.memory_bytes;
    });
}
API(cuDeviceGetAttribute, int* value, CUdevice_attribute which, CUdevice device) {
    return initialised("cuDeviceGetAttribute", [&](Driver& its) {
        check_device(device);
        require(value && which > 0);
        *value = attribute(its, which);
    });
}
API(cuDeviceComputeCapability, int* major, int* minor, CUdevice device) {
    return initialised("cuDeviceComputeCapability", [&](Driver& its) {
        check_device(device);
        require(major && minor);
        *major = int(its.target.number / 10);
        *minor = int(its.target.number % 10);
    });
}
API(cuDeviceGetUuid_v2, CUuuid* uuid, CUdevice device) {
    return initialised("cuDeviceGetUuid", [&](Driver&) {
        check_device(device);
        require(uuid);
        std::memcpy(uuid->bytes, "ikat's emulator", 16);
        uuid->bytes[15] = char(device);
    });
}
ALIAS(cuDeviceGetUuid, cuDeviceGetUuid_v2);
API(cuDeviceGetPCIBusId, char* id, int length, CUdevice device) {
    return initialised("cuDeviceGetPCIBusId", [&](Driver&) {
        check_device(device);
        write_text(fmt::format("0000:{:02x}:00.0", device), id, length);
    });
}
API(cuDeviceGetByPCIBusId, CUdevice* device, const char* id) {
    return initialised("cuDeviceGetByPCIBusId", [&](Driver& its) {
        require(device && id);
        const std::string_view given = id;
        const auto found = std::ranges::find_if(its.gpus, [&](const auto& each) {
            const std::string own = fmt::format("0000:{:02x}:00.0", each->ordinal);
            return given == own || given == std::string_view(own).substr(5);
        });
        if (found == its.gpus.end()) refuse(CUDA_ERROR_INVALID_DEVICE);
        *device = (*found)->ordinal;
    });
}
API(cuProfilerInitialize, const char*, const char*, int) {
    return initialised("cuProfilerInitialize", [](Driver&) {});
}
API(cuProfilerStart) {
    return initialised("cuProfilerStart", [](Driver&) {});
}
API(cuProfilerStop) {
    return initialised("cuProfilerStop", [](Driver&) {});
}
API(cuDeviceCanAccessPeer, int* can, CUdevice device, CUdevice peer) {
    return initialised("cuDeviceCanAccessPeer", [&](Driver&) {
        check_device(device);
        check_device(peer);
        require(can);
        *can = device != peer;
    });
}
API(cuDeviceGetP2PAttribute, int* value, CUdevice_P2PAttribute which, CUdevice source, CUdevice target) {
    return initialised("cuDeviceGetP2PAttribute", [&](Driver&) {
        check_device(source);
        check_device(target);
        if (source == target) refuse(CUDA_ERROR_INVALID_DEVICE);
        require(value && which >= CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
                which <= CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED);
        // All are as near; there are no arrays.
        *value = which == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
                 which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    });
}

}  // namespace ikat::cuda_driver
