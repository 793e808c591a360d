// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

void check_shared_memory(const DecodedKernel& kernel, const Launch& launch, auto&& reject) {
    constexpr std::uint64_t max_cells = std::uint64_t{1} << (32 - Cells::bits), added_cells = 16;  // at the launch
    const std::uint64_t cells = std::bit_ceil(kernel.shared.cells + added_cells) * (kernel.blocks_in_cluster() + 1);
    if (kernel.maps_shared && kernel.blocks_in_cluster() > 1 && cells > max_cells)
        reject(fmt::format("{} variables in shared memory in a cluster of {}", kernel.shared.ranges.size(),
                           plural(kernel.blocks_in_cluster(), "block")),
               "the emulator has no room for that many, join them into arrays");
    constexpr std::uint64_t max_shared = 227 * 1024;  // of any device; Device knows which it stands for
    constexpr std::uint64_t max_static = 48 * 1024;
    if (kernel.shared_bytes > max_static)
        reject(
            fmt::format("{} bytes of static shared memory", kernel.shared_bytes),
            fmt::format("ptxas takes at most {}; dynamic shared memory (.extern .shared), which the launch gives, may "
                        "be more",
                        max_static));
    if (launch.dynamic_shared_bytes < kernel.own_dynamic_bytes)
        reject(fmt::format("{} bytes of dynamic shared memory where its own arrays take up {}",
                           launch.dynamic_shared_bytes, kernel.own_dynamic_bytes),
               "the launch gives what they take up, and what the kernel is to use besides");
    const std::uint64_t shared = std::uint64_t(kernel.shared_bytes) + launch.dynamic_shared_bytes;
    if (shared > max_shared)
        reject(fmt::format("{} bytes of shared memory ({} of them dynamic)", shared, launch.dynamic_shared_bytes),
               fmt::format("a block has at most {} bytes; use smaller tiles", max_shared));
}

}  // namespace

void check_launch(const ptx::Module& module, const DecodedKernel& kernel, const Launch& launch) {
    const auto reject = [&](std::string message, std::string hint) {
        Diagnostic diagnostic = diagnostic_of(FaultCode::LaunchRefused);
        diagnostic.where = location(module, kernel.where);
        diagnostic.message = fmt::format("kernel '{}' cannot be launched: {}", kernel.name, message);
        diagnostic.hint = std::move(hint);
        throw Error(std::move(diagnostic));
    };
    const auto& [bx, by, bz] = launch.block;
    const auto& [gx, gy, gz] = launch.grid;
    const std::uint64_t threads = std::uint64_t(bx) * by * bz;
    if (bx > 1024 || by > 1024 || bz > 64 || threads > 1024 || threads == 0)
        reject(fmt::format("a block of {} threads", tuple(launch.block)),
               "a block has 1 to 1024 threads, at most 1024 x 1024 x 64 by axis");
    if (gx == 0 || gy == 0 || gz == 0 || gx > 0x7fffffff || gy > 65535 || gz > 65535)
        reject(fmt::format("a grid of {} blocks", tuple(launch.grid)),
               "a grid has at least one block, and at most 2147483647 x 65535 x 65535 by axis");
    if (kernel.max_threads && threads > kernel.max_threads)
        reject(fmt::format("a block of {} threads where .maxntid allows {}", threads, kernel.max_threads),
               "use a smaller block, or declare the kernel for a larger one");
    if (kernel.required_block[0] && kernel.required_block != launch.block)
        reject(
            fmt::format("a block of {} where .reqntid demands {}", tuple(launch.block), tuple(kernel.required_block)),
            "launch with the block the kernel was compiled for");
    if (launch.cluster[0] && !is_cluster(launch.cluster))
        reject(fmt::format("clusters of {} blocks", tuple(launch.cluster)),
               fmt::format("a cluster has 1 to {} blocks", max_blocks_in_cluster));
    if (launch.cluster[0] && launch.cluster != kernel.cluster)
        reject(fmt::format("clusters of {} blocks where .reqnctapercluster demands {}", tuple(launch.cluster),
                           tuple(kernel.cluster)),
               "launch with the cluster the kernel was compiled for");
    for (int axis = 0; axis < 3; ++axis)
        if (launch.grid[axis] % kernel.cluster[axis])
            reject(fmt::format("a grid of {} blocks in clusters of {}", tuple(launch.grid), tuple(kernel.cluster)),
                   "launch a multiple of the cluster's blocks along each axis");
    if (launch.parameters.size() != kernel.parameter_bytes)
        reject(fmt::format("{} of parameters where the kernel has {}", plural(launch.parameters.size(), "byte"),
                           kernel.parameter_bytes),
               "lay parameters out as the .param list, each at its natural alignment");
    check_shared_memory(kernel, launch, reject);
}

}  // namespace ikat::emulator
