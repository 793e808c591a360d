// SPDX-License-Identifier: Apache-2.0
// Functions and their attributes, launches, occupancy. A launch checks what a driver checks.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codegen/report/occupancy.hpp"
#include "runtime/emulator/observe/faults.hpp"
#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

using emulator::FaultCode;

/// What a driver calls a finding of the emulator.
CUresult result_of(const Error& finding) {
    const std::string_view code = finding.diagnostics().front().code;
    const auto found = std::ranges::find(emulator::fault_rows, code, &emulator::FaultInfo::name);
    switch (FaultCode(found - std::begin(emulator::fault_rows))) {
        case FaultCode::OutOfBounds:
        case FaultCode::NullPointer:
        case FaultCode::NoBuffer:
        case FaultCode::ReleasedBuffer:
        case FaultCode::ReadOnly: return CUDA_ERROR_ILLEGAL_ADDRESS;
        case FaultCode::Misaligned: return CUDA_ERROR_MISALIGNED_ADDRESS;
        case FaultCode::WrongSpace: return CUDA_ERROR_INVALID_ADDRESS_SPACE;
        case FaultCode::FullStack: return CUDA_ERROR_HARDWARE_STACK_ERROR;
        case FaultCode::NoFunction: return CUDA_ERROR_INVALID_PC;
        case FaultCode::AssertionFailed:
        case FaultCode::CheckFailed: return CUDA_ERROR_ASSERT;
        case FaultCode::Deadlock:
        case FaultCode::EndlessLoop:
        case FaultCode::EndlessWait:
        case FaultCode::StepBudget: return CUDA_ERROR_LAUNCH_TIMEOUT;
        default: return CUDA_ERROR_LAUNCH_FAILED;
    }
}

bool names_cluster(const emulator::Launch& launch) { return launch.cluster != std::array<std::uint32_t, 3>{}; }

/// The most threads of a block of this function.
unsigned most_threads_of(const Driver& its, const Function& function) {
    const std::uint64_t own = function.facts.max_threads;
    return unsigned(own ? std::min<std::uint64_t>(own, its.target.threads_per_block) : its.target.threads_per_block);
}

/// What registers the function will need on a device is not known here: they are left out.
unsigned blocks_per_multiprocessor(const nvptx::Target& target, std::uint64_t static_shared, unsigned threads,
                                   std::size_t shared) {
    if (shared > target.shared_opt_in) return 0;
    return occupancy(target,
                     {.threads = threads, .registers = 0, .shared_bytes = std::uint32_t(static_shared + shared)})
        .blocks;
}

[[noreturn]] void refuse_launch(CUresult result, const Function& function, const std::string& what, std::string hint) {
    refuse(result, fmt::format("'{}': {}", function.entry, what), std::move(hint));
}

void check_cluster(const Driver& its, const Function& function, const emulator::Launch& launch) {
    if (!names_cluster(launch)) {
        if (function.facts.needs_cluster)
            refuse_launch(CUDA_ERROR_INVALID_CLUSTER_SIZE, function, "no cluster",
                          "a function with .explicitcluster needs one");
        return;
    }
    const unsigned most = its.target.number < 90 ? 1 : function.any_cluster_size ? 16 : 8;
    std::uint64_t blocks = 1;
    for (const unsigned extent : launch.cluster) blocks *= std::min(extent, most + 1);
    const bool is_own = function.facts.cluster[0] == 0 || function.facts.cluster == launch.cluster;
    if (blocks == 0 || blocks > most || !is_own)
        refuse_launch(CUDA_ERROR_INVALID_CLUSTER_SIZE, function,
                      fmt::format("a cluster of {} blocks", fmt::join(launch.cluster, "x")),
                      is_own ? fmt::format("this function's clusters have 1 to {}", most)
                             : "the function was compiled for another one");
}

/// What the function may use of the device's memory and multiprocessors.
void check_resources(const Driver& its, const Function& function, const emulator::Launch& launch, bool is_cooperative) {
    const std::size_t shared = launch.dynamic_shared_bytes;
    if (shared > unsigned(function.dynamic_shared))
        refuse_launch(CUDA_ERROR_INVALID_VALUE, function, fmt::format("{} bytes of dynamic shared memory", shared),
                      fmt::format("the function may have {}; more must be asked for with cuFuncSetAttribute("
                                  "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)",
                                  function.dynamic_shared));
    if (!is_cooperative) return;
    const auto product_of = [](const std::array<std::uint32_t, 3>& extents) {
        return std::uint64_t(extents[0]) * extents[1] * extents[2];
    };
    const std::uint64_t blocks = product_of(launch.grid);
    const std::uint64_t most =
        std::uint64_t(its.properties.multiprocessors) *
        blocks_per_multiprocessor(its.target, function.facts.shared_bytes, unsigned(product_of(launch.block)), shared);
    if (blocks > most)
        refuse_launch(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, function,
                      fmt::format("{} blocks in a cooperative launch", blocks),
                      fmt::format("the device holds {} at once", most));
}

/// The bytes of all parameters, at their offsets.
std::vector<std::byte> pack(const Function& function, void** parameters, void** extra) {
    const std::size_t bytes = function.facts.parameter_bytes;
    std::vector<std::byte> out(bytes);
    if (parameters) {
        require(!extra);
        for (const auto& declared : function.module->program->parameters(function.entry)) {
            const void* const given = *parameters++;
            require(given);
            std::memcpy(out.data() + declared.offset, given, declared.bytes);
        }
    } else if (extra) {
        const void* buffer = nullptr;
        std::size_t size = 0;
        for (; reinterpret_cast<std::uintptr_t>(*extra) != CU_LAUNCH_PARAM_END; extra += 2) {
            const auto key = reinterpret_cast<std::uintptr_t>(extra[0]);
            require(key == CU_LAUNCH_PARAM_BUFFER_POINTER || key == CU_LAUNCH_PARAM_BUFFER_SIZE);
            require(extra[1]);
            if (key == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
            if (key == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<std::size_t*>(extra[1]);
        }
        constexpr std::size_t most_padding = 15;  // a struct of the parameters may end with some
        if (size < bytes || size > bytes + most_padding)
            refuse(CUDA_ERROR_INVALID_VALUE,
                   fmt::format("'{}' takes {} bytes of parameters, not {}", function.entry, bytes, size));
        require(buffer || bytes == 0);
        if (bytes) std::memcpy(out.data(), buffer, bytes);
    } else if (bytes) {
        refuse(CUDA_ERROR_INVALID_VALUE, fmt::format("'{}' takes parameters, and the launch has none", function.entry));
    }
    return out;
}

void run(Driver& its, Context& context, const char* name, Module& module, const emulator::Launch& launch) {
    use_shadows(its, module);
    try {
        runtime::run(*module.program, launch, its.options);
    } catch (const Error& finding) {
        report(name, finding);
        context.failure = result_of(finding);
        if (its.blocking_launches) refuse(context.failure);
    }
}

/// What else a program can ask of a launch.
struct Extras {
    bool is_cooperative = false;
    std::vector<CUevent> events{};
};

CUresult launch(const char* name, CUfunction handle, emulator::Launch asked, CUstream stream, void** parameters,
                void** extra, const Extras& extras = {}) {
    return on_stream(name, stream, [&](Driver& its, Context& context) {
        Function& function = its.functions.at(handle);
        if (function.module->context && function.module->context != &context) refuse(CUDA_ERROR_INVALID_HANDLE);
        for (const CUevent event : extras.events)
            if (its.events.at(event).context != &context) refuse(CUDA_ERROR_INVALID_HANDLE);
        const std::vector<std::byte> packed = pack(function, parameters, extra);
        asked.entry = function.entry;
        asked.parameters = packed;
        if (!names_cluster(asked)) asked.cluster = function.cluster;
        check_cluster(its, function, asked);
        function.module->program->check(asked);
        check_resources(its, function, asked, extras.is_cooperative);
        run(its, context, name, *function.module, asked);
        for (const CUevent event : extras.events) its.events.at(event).time = std::chrono::steady_clock::now();
    });
}

int attribute(const Driver& its, const Function& function, CUfunction_attribute which) {
    const auto& facts = function.facts;
    switch (which) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return int(most_threads_of(its, function));
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return int(facts.shared_bytes);
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return int(facts.constant_bytes);
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return int(facts.local_bytes);
        case CU_FUNC_ATTRIBUTE_NUM_REGS: return int(std::min(facts.registers, its.target.registers_per_thread));
        case CU_FUNC_ATTRIBUTE_PTX_VERSION: return int(function.module->target ? function.module->target->number : 0);
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

template <class Handle>
CUresult get_attribute(const char* name, int* value, CUfunction_attribute which, Handle handle, CUdevice device = 0) {
    return initialised(name, [&](Driver& its) {
        check_device(device);
        require(value);
        *value = attribute(its, its.functions.at(handle), which);
    });
}

template <class Handle>
CUresult set_attribute(const char* name, Handle handle, CUfunction_attribute which, int value, CUdevice device = 0) {
    return initialised(name, [&](Driver& its) {
        check_device(device);
        Function& function = its.functions.at(handle);
        switch (which) {
            case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
                const std::int64_t most =
                    std::int64_t(its.target.shared_opt_in) - std::int64_t(function.facts.shared_bytes);
                if (value < 0 || value > most)
                    refuse(CUDA_ERROR_INVALID_VALUE,
                           fmt::format("'{}': {} bytes of dynamic shared memory", function.entry, value),
                           fmt::format("a block of {} has {} besides the function's {} static ones", its.target.name,
                                       most, function.facts.shared_bytes));
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

template <class Handle>
CUresult get_name(const char* function, const char** name, Handle handle) {
    return initialised(function, [&](Driver& its) {
        require(name);
        *name = its.functions.at(handle).entry.c_str();
    });
}

template <class Handle>
CUresult get_parameter(const char* function, Handle handle, std::size_t index, std::size_t* offset,
                       std::size_t* bytes) {
    return initialised(function, [&](Driver& its) {
        const Function& of = its.functions.at(handle);
        const auto parameters = of.module->program->parameters(of.entry);
        require(index < parameters.size());
        if (offset) *offset = parameters[index].offset;
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
CUresult best_block(int* least_grid, int* threads, CUfunction handle, SharedOfBlock shared_of, std::size_t shared,
                    int limit) {
    int most = 0;
    std::uint64_t static_shared = 0;
    const CUresult result = in_context("cuOccupancyMaxPotentialBlockSize", [&](Driver& its, Context&) {
        require(least_grid && threads && limit >= 0);
        const Function& function = its.functions.at(handle);
        static_shared = function.facts.shared_bytes;
        most = int(most_threads_of(its, function));
        if (limit) most = std::min(most, limit);
    });
    if (result != CUDA_SUCCESS) return result;
    const nvptx::Target& target = driver().target;
    unsigned best = 0;
    for (int count = (most + 31) / 32 * 32; count > 0; count -= 32) {
        const int block = std::min(count, most);
        const std::size_t dynamic = shared_of ? shared_of(block) : shared;  // not under the lock: the program's code
        const unsigned blocks = blocks_per_multiprocessor(target, static_shared, unsigned(block), dynamic);
        if (blocks * unsigned(block) <= best) continue;
        best = blocks * unsigned(block);
        *threads = block;
        *least_grid = int(blocks * driver().properties.multiprocessors);
    }
    return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

API(cuFuncGetAttribute, int* value, CUfunction_attribute which, CUfunction function) {
    return get_attribute("cuFuncGetAttribute", value, which, function);
}
API(cuFuncSetAttribute, CUfunction function, CUfunction_attribute which, int value) {
    return set_attribute("cuFuncSetAttribute", function, which, value);
}
API(cuKernelGetAttribute, int* value, CUfunction_attribute which, CUkernel kernel, CUdevice device) {
    return get_attribute("cuKernelGetAttribute", value, which, kernel, device);
}
API(cuKernelSetAttribute, CUfunction_attribute which, int value, CUkernel kernel, CUdevice device) {
    return set_attribute("cuKernelSetAttribute", kernel, which, value, device);
}
API(cuFuncSetCacheConfig, CUfunction function, int) {
    return initialised("cuFuncSetCacheConfig", [&](Driver& its) { its.functions.at(function); });
}
API(cuKernelSetCacheConfig, CUkernel kernel, int, CUdevice device) {
    return initialised("cuKernelSetCacheConfig", [&](Driver& its) {
        check_device(device);
        its.functions.at(kernel);
    });
}
API(cuFuncGetName, const char** name, CUfunction function) { return get_name("cuFuncGetName", name, function); }
API(cuKernelGetName, const char** name, CUkernel kernel) { return get_name("cuKernelGetName", name, kernel); }
API(cuFuncGetParamInfo, CUfunction function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    return get_parameter("cuFuncGetParamInfo", function, index, offset, bytes);
}
API(cuKernelGetParamInfo, CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    return get_parameter("cuKernelGetParamInfo", kernel, index, offset, bytes);
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

API(cuLaunchKernel, CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters, void** extra) {
    return launch(
        "cuLaunchKernel", function,
        {.grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .dynamic_shared_bytes = shared},
        stream, parameters, extra);
}
ALIAS(cuLaunchKernel_ptsz, cuLaunchKernel);
API(cuLaunchCooperativeKernel, CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters) {
    return launch(
        "cuLaunchCooperativeKernel", function,
        {.grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .dynamic_shared_bytes = shared},
        stream, parameters, nullptr, {.is_cooperative = true});
}
ALIAS(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel);
API(cuLaunchKernelEx, const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
    emulator::Launch asked{.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                           .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                           .dynamic_shared_bytes = config->sharedMemBytes};
    Extras extras;
    for (const CUlaunchAttribute& attribute : std::span(config->attrs, config->numAttrs)) {
        const auto& value = attribute.value;
        switch (attribute.id) {
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: extras.is_cooperative = value.cooperative; break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                asked.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
                break;
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: extras.events.push_back(value.event.event); break;
            case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: return CUDA_ERROR_NOT_SUPPORTED;
            default:  // hints about caches, priorities, overlap
                if (attribute.id > CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
                    return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return launch("cuLaunchKernelEx", function, asked, config->hStream, parameters, extra, extras);
}
ALIAS(cuLaunchKernelEx_ptsz, cuLaunchKernelEx);

API(cuOccupancyMaxActiveBlocksPerMultiprocessor, int* blocks, CUfunction function, int threads, std::size_t shared) {
    return count_blocks(blocks, function, threads, shared);
}
API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int* blocks, CUfunction function, int threads,
    std::size_t shared, unsigned) {
    return count_blocks(blocks, function, threads, shared);
}
API(cuOccupancyMaxPotentialBlockSize, int* least_grid, int* threads, CUfunction function, SharedOfBlock shared_of,
    std::size_t shared, int limit) {
    return best_block(least_grid, threads, function, shared_of, shared, limit);
}
API(cuOccupancyMaxPotentialBlockSizeWithFlags, int* least_grid, int* threads, CUfunction function,
    SharedOfBlock shared_of, std::size_t shared, int limit, unsigned) {
    return best_block(least_grid, threads, function, shared_of, shared, limit);
}

}  // namespace ikat::cuda_driver
