// SPDX-License-Identifier: Apache-2.0
// Functions: their names, parameters and attributes, and how many of their blocks the device holds.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/report/occupancy.hpp"
#include "runtime/emulator/core/memory/variables.hpp"
#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

/// The most threads of a block of this function.
unsigned max_threads_of(const Driver& its, const Function& function) {
    const std::uint64_t own = function.facts.max_threads;
    return unsigned(own ? std::min<std::uint64_t>(own, its.target.threads_per_block) : its.target.threads_per_block);
}

int attribute(const Driver& its, const Function& function, CUfunction_attribute which) {
    const auto& facts = function.facts;
    switch (which) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return int(max_threads_of(its, function));
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return int(facts.shared_bytes);
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return int(facts.constant_bytes);
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return int(facts.local_bytes);
        case CU_FUNC_ATTRIBUTE_NUM_REGS: return int(std::min(facts.registers, its.target.registers_per_thread));
        case CU_FUNC_ATTRIBUTE_PTX_VERSION: return int(function.module->target);
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return int(its.target.number);
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: return 0;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return function.dynamic_shared;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return function.carveout;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: return facts.needs_cluster;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
            const int axis = which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
            return int(facts.cluster[0] ? facts.cluster[axis] : function.cluster[axis]);
        }
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return function.any_cluster_size;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return function.cluster_policy;
        case CU_FUNC_ATTRIBUTE_MAX: break;
    }
    refuse(CUDA_ERROR_INVALID_VALUE);
}

CUresult get_attribute(const char* name, int* value, CUfunction_attribute which, CUfunction handle,
                       CUdevice device = 0) {
    return initialised(name, [&](Driver& its) {
        check_device(device);
        require(value);
        *value = attribute(its, its.functions.at(handle), which);
    });
}

CUresult set_attribute(const char* name, CUfunction handle, CUfunction_attribute which, int value,
                       CUdevice device = 0) {
    return initialised(name, [&](Driver& its) {
        check_device(device);
        Function& function = its.functions.at(handle);
        switch (which) {
            case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
                const std::int64_t max =
                    std::int64_t(its.target.shared_opt_in) - std::int64_t(function.facts.shared_bytes);
                if (value < 0 || value > max)
                    refuse(CUDA_ERROR_INVALID_VALUE,
                           fmt::format("'{}': {} bytes of dynamic shared memory", function.entry, value),
                           fmt::format("a block of {} has {} besides the function's {} static ones", its.target.name,
                                       max, function.facts.shared_bytes));
                function.dynamic_shared = value;
                return;
            }
            case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
                require(value >= -1 && value <= 100);
                function.carveout = value;
                return;
            case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
            case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
            case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
                require(value >= 0);
                if (function.facts.cluster[0]) refuse(CUDA_ERROR_NOT_PERMITTED);
                function.cluster[which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = unsigned(value);
                return;
            case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: function.any_cluster_size = value != 0; return;
            case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: function.cluster_policy = value; return;
            default: refuse(CUDA_ERROR_INVALID_VALUE);
        }
    });
}

CUresult get_name(const char* function, const char** name, CUfunction handle) {
    return initialised(function, [&](Driver& its) {
        require(name);
        *name = its.functions.at(handle).entry.c_str();
    });
}

CUresult get_parameter(const char* function, CUfunction handle, std::size_t index, std::size_t* offset,
                       std::size_t* bytes) {
    return initialised(function, [&](Driver& its) {
        const Function& of = its.functions.at(handle);
        const auto parameters = of.module->program().parameters(of.entry);
        require(index < parameters.size());
        if (offset) *offset = offsets_on(its.target, parameters)[index];
        if (bytes) *bytes = parameters[index].bytes;
    });
}

CUresult count_blocks(int* blocks, CUfunction handle, int threads, std::size_t shared) {
    return in_context("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&](Driver& its, Context&) {
        require(blocks && threads > 0);
        const Function& function = its.functions.at(handle);
        *blocks = int(blocks_per_multiprocessor(its.target, function.facts.shared_bytes, unsigned(threads), shared));
    });
}

using SharedOfBlock = std::size_t (*)(int threads);

/// The largest block of those that fill a multiprocessor best.
CUresult best_block(int* min_grid, int* threads, CUfunction handle, SharedOfBlock shared_of, std::size_t shared,
                    int limit) {
    int max = 0;
    std::uint64_t static_shared = 0;
    const CUresult result = in_context("cuOccupancyMaxPotentialBlockSize", [&](Driver& its, Context&) {
        require(min_grid && threads && limit >= 0);
        const Function& function = its.functions.at(handle);
        static_shared = function.facts.shared_bytes;
        max = int(max_threads_of(its, function));
        if (limit) max = std::min(max, limit);
    });
    if (result != CUDA_SUCCESS) return result;
    const ptx::Target& target = driver().target;
    unsigned best = 0;
    for (int count = (max + 31) / 32 * 32; count > 0; count -= 32) {
        const int block = std::min(count, max);
        const std::size_t dynamic = shared_of ? shared_of(block) : shared;  // not under the lock: the program's code
        const unsigned blocks = blocks_per_multiprocessor(target, static_shared, unsigned(block), dynamic);
        if (blocks * unsigned(block) <= best) continue;
        best = blocks * unsigned(block);
        *threads = block;
        *min_grid = int(blocks * driver().properties.multiprocessors);
    }
    return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

unsigned blocks_per_multiprocessor(const ptx::Target& target, std::uint64_t static_shared, unsigned threads,
                                   std::size_t shared) {
    if (shared > target.shared_opt_in) return 0;
    return occupancy(target,
                     {.threads = threads, .registers = 0, .shared_bytes = std::uint32_t(static_shared + shared)})
        .blocks;
}

std::vector<std::size_t> offsets_on(const ptx::Target& target,
                                    std::span<const emulator::Program::Parameter> parameters) {
    const std::size_t base = ptx::parameter_base(target);
    std::vector<std::size_t> out;
    std::size_t end = base;
    for (const auto& each : parameters) {
        end = emulator::rounded_up(end, each.alignment);
        out.push_back(end - base);
        end += each.bytes;
    }
    return out;
}

API(cuFuncGetAttribute, int* value, CUfunction_attribute which, CUfunction function) {
    return get_attribute("cuFuncGetAttribute", value, which, function);
}
API(cuFuncSetAttribute, CUfunction function, CUfunction_attribute which, int value) {
    return set_attribute("cuFuncSetAttribute", function, which, value);
}
API(cuKernelGetAttribute, int* value, CUfunction_attribute which, CUkernel kernel, CUdevice device) {
    return get_attribute("cuKernelGetAttribute", value, which, function_of(kernel), device);
}
API(cuKernelSetAttribute, CUfunction_attribute which, int value, CUkernel kernel, CUdevice device) {
    return set_attribute("cuKernelSetAttribute", function_of(kernel), which, value, device);
}
API(cuFuncSetCacheConfig, CUfunction function, int) {
    return initialised("cuFuncSetCacheConfig", [&](Driver& its) { its.functions.at(function); });
}
API(cuFuncSetSharedMemConfig, CUfunction function, int) {
    return initialised("cuFuncSetSharedMemConfig", [&](Driver& its) { its.functions.at(function); });
}
API(cuKernelSetCacheConfig, CUkernel kernel, int, CUdevice device) {
    return initialised("cuKernelSetCacheConfig", [&](Driver& its) {
        check_device(device);
        its.functions.at(kernel);
    });
}
API(cuFuncGetName, const char** name, CUfunction function) { return get_name("cuFuncGetName", name, function); }
API(cuKernelGetName, const char** name, CUkernel kernel) {
    return get_name("cuKernelGetName", name, function_of(kernel));
}
API(cuFuncGetParamInfo, CUfunction function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    return get_parameter("cuFuncGetParamInfo", function, index, offset, bytes);
}
API(cuKernelGetParamInfo, CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    return get_parameter("cuKernelGetParamInfo", function_of(kernel), index, offset, bytes);
}
API(cuFuncIsLoaded, int* state, CUfunction function) {
    return initialised("cuFuncIsLoaded", [&](Driver& its) {
        require(state);
        its.functions.at(function);
        *state = 1;
    });
}
API(cuFuncLoad, CUfunction function) {
    return in_context("cuFuncLoad", [&](Driver& its, Context&) { its.functions.at(function); });
}

API(cuOccupancyMaxActiveBlocksPerMultiprocessor, int* blocks, CUfunction function, int threads, std::size_t shared) {
    return count_blocks(blocks, function, threads, shared);
}
API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int* blocks, CUfunction function, int threads,
    std::size_t shared, unsigned) {
    return count_blocks(blocks, function, threads, shared);
}
API(cuOccupancyMaxPotentialBlockSize, int* min_grid, int* threads, CUfunction function, SharedOfBlock shared_of,
    std::size_t shared, int limit) {
    return best_block(min_grid, threads, function, shared_of, shared, limit);
}
API(cuOccupancyMaxPotentialBlockSizeWithFlags, int* min_grid, int* threads, CUfunction function,
    SharedOfBlock shared_of, std::size_t shared, int limit, unsigned) {
    return best_block(min_grid, threads, function, shared_of, shared, limit);
}

}  // namespace ikat::cuda_driver
