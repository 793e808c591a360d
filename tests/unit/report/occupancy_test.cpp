// SPDX-License-Identifier: Apache-2.0
#include "codegen/report/occupancy.hpp"

#include "tests/catch.hpp"

#if __has_include(<cuda_occupancy.h>) && __has_include(<cuda_runtime_api.h>)
#include <cuda_occupancy.h>
#define IKAT_HAS_CALCULATOR
#endif

using namespace ikat;

TEST_CASE("a multiprocessor is full when the first of its limits is") {
    const ptx::Target& ampere = ptx::target("sm_80");
    const auto of = [&](std::uint32_t threads, std::uint32_t registers, std::uint32_t shared) {
        return occupancy(ampere, {threads, registers, shared});
    };
    CHECK(of(256, 32, 0).blocks == 8);
    CHECK(of(256, 32, 0).warps == 64);
    CHECK(of(256, 32, 0).limited_by == "warps");
    CHECK(of(256, 33, 0).blocks == 6);  // 40 registers a thread are handed out
    CHECK(of(256, 33, 0).limited_by == "registers");
    CHECK(of(256, 255, 0).blocks == 1);
    CHECK(of(32, 16, 0).blocks == 32);
    CHECK(of(32, 16, 0).limited_by == "blocks");
    CHECK(of(256, 16, 40 * 1024).blocks == 4);
    CHECK(of(256, 16, 41 * 1024).blocks == 3);  // a KiB of each block is the system's
    CHECK(of(256, 16, 41 * 1024).limited_by == "shared memory");
    CHECK(of(256, 16, 163 * 1024).blocks == 1);
    CHECK(of(256, 16, 163 * 1024 + 1).blocks == 0);
    CHECK(of(1024, 128, 0).blocks == 0);
    CHECK(of(1025, 16, 0).blocks == 0);
    CHECK(of(1025, 16, 0).limited_by == "threads");
    CHECK(of(1, 1, 0).warps == 32);
}

#ifdef IKAT_HAS_CALCULATOR
TEST_CASE("occupancy is what NVIDIA's calculator says") {
    std::size_t compared = 0;
    for (const ptx::Target& target : ptx::targets()) {
        if (target.specific || target.number >= 120) continue;  // not all calculators know the newest
        cudaOccDeviceProp device;
        device.computeMajor = int(target.number / 10), device.computeMinor = int(target.number % 10);
        device.maxThreadsPerBlock = int(target.threads_per_block);
        device.maxThreadsPerMultiprocessor = int(target.warps_per_multiprocessor * 32);
        device.regsPerBlock = device.regsPerMultiprocessor = int(target.registers);
        device.warpSize = 32, device.numSms = 100;
        device.sharedMemPerBlock = target.shared_static;
        device.sharedMemPerMultiprocessor = target.shared_per_multiprocessor;
        device.sharedMemPerBlockOptin = target.shared_opt_in;
        device.reservedSharedMemPerBlock = target.number < 80 ? 0 : 1024;
        cudaOccDeviceState state;
        state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        for (int threads : {1, 32, 33, 96, 128, 160, 256, 384, 512, 640, 1024})
            for (int registers : {1, 16, 32, 33, 40, 64, 65, 100, 128, 168, 255})
                for (int shared : {0, 1, 128, 1000, 8192, 20000, 49152}) {
                    cudaOccFuncAttributes function;
                    function.maxThreadsPerBlock = 1024, function.numRegs = registers;
                    function.sharedSizeBytes = std::size_t(shared);
                    cudaOccResult result{};
                    const auto status =
                        cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, 0);
                    REQUIRE(status == CUDA_OCC_SUCCESS);
                    INFO(target.name << " threads " << threads << " registers " << registers << " shared " << shared);
                    const BlockNeeds block{std::uint32_t(threads), std::uint32_t(registers), std::uint32_t(shared)};
                    CHECK(occupancy(target, block).blocks == std::uint32_t(result.activeBlocksPerMultiprocessor));
                    ++compared;
                }
    }
    CHECK(compared > 4000);
}
#endif
