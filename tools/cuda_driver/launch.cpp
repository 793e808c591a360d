// SPDX-License-Identifier: Apache-2.0
// Launches, which check what a driver checks.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codegen/support/notes.hpp"
#include "runtime/emulator/core/checks/faults.hpp"
#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {
namespace {

using emulator::FaultCode;

/// What a driver calls a finding of the emulator.
CUresult result_of(const Error& finding) {
    const std::string_view code = finding.diagnostics().front().code;
    if (code.empty()) return CUDA_ERROR_ILLEGAL_ADDRESS;  // of a copy or a fill: its memory is gone
    const auto found = std::ranges::find(emulator::fault_rows, code, &emulator::FaultInfo::name);
    switch (FaultCode(found - std::begin(emulator::fault_rows))) {
        case FaultCode::OutOfBounds:
        case FaultCode::NullPointer:
        case FaultCode::NoBuffer:
        case FaultCode::ReleasedBuffer:
        case FaultCode::ReadOnly:
        case FaultCode::ExitedBlock:
        case FaultCode::BlockNotStarted: return CUDA_ERROR_ILLEGAL_ADDRESS;
        case FaultCode::Misaligned: return CUDA_ERROR_MISALIGNED_ADDRESS;
        case FaultCode::WrongSpace: return CUDA_ERROR_INVALID_ADDRESS_SPACE;
        case FaultCode::BulkPlace: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
        case FaultCode::FullStack: return CUDA_ERROR_HARDWARE_STACK_ERROR;
        case FaultCode::NoFunction: return CUDA_ERROR_INVALID_PC;
        case FaultCode::AssertionFailed:
        case FaultCode::CheckFailed: return CUDA_ERROR_ASSERT;
        case FaultCode::Deadlock:
        case FaultCode::EndlessLoop:
        case FaultCode::EndlessWait:
        case FaultCode::GraphBudget:
        case FaultCode::StepBudget: return CUDA_ERROR_LAUNCH_TIMEOUT;
        default: return CUDA_ERROR_LAUNCH_FAILED;
    }
}

bool names_cluster(const emulator::Launch& launch) { return launch.cluster != std::array<std::uint32_t, 3>{}; }

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
    const unsigned max = its.target.number < 90 ? 1 : function.any_cluster_size ? 16 : 8;
    std::uint64_t blocks = 1;
    for (const unsigned extent : launch.cluster) blocks *= std::min(extent, max + 1);
    const bool is_own = function.facts.cluster[0] == 0 || function.facts.cluster == launch.cluster;
    if (blocks == 0 || blocks > max || !is_own)
        refuse_launch(CUDA_ERROR_INVALID_CLUSTER_SIZE, function,
                      fmt::format("a cluster of {} blocks", fmt::join(launch.cluster, "x")),
                      is_own ? fmt::format("this function's clusters have 1 to {}", max)
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
    const std::uint64_t max =
        std::uint64_t(its.properties.multiprocessors) *
        blocks_per_multiprocessor(its.target, function.facts.shared_bytes, unsigned(product_of(launch.block)), shared);
    if (blocks > max)
        refuse_launch(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, function,
                      fmt::format("{} blocks in a cooperative launch", blocks),
                      fmt::format("the device holds {} at once", max));
}

/// The bytes of all parameters, at their offsets. In a buffer they are where the device has them.
std::vector<std::byte> pack(const ptx::Target& target, const Function& function, void** parameters, void** extra) {
    std::vector<std::byte> out(function.facts.parameter_bytes);
    const std::vector<emulator::Program::Parameter> all = function.module->program().parameters(function.entry);
    if (parameters) {
        require(!extra);
        for (const auto& declared : all) {
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
        const std::vector<std::size_t> offsets = offsets_on(target, all);
        const std::size_t bytes = all.empty() ? 0 : offsets.back() + all.back().bytes;
        constexpr std::size_t max_padding = 15;  // a struct of the parameters may end with some
        if (size < bytes || size > bytes + max_padding)
            refuse(CUDA_ERROR_INVALID_VALUE,
                   fmt::format("'{}' takes {} bytes of parameters, not {}", function.entry, bytes, size));
        require(buffer || bytes == 0);
        for (std::size_t i = 0; i < all.size(); ++i)
            std::memcpy(out.data() + all[i].offset, static_cast<const std::byte*>(buffer) + offsets[i], all[i].bytes);
    } else if (!out.empty()) {
        refuse(CUDA_ERROR_INVALID_VALUE, fmt::format("'{}' takes parameters, and the launch has none", function.entry));
    }
    return out;
}

}  // namespace

emulator::work::Launch launch_work(Driver& its, Context& context, CUfunction handle, emulator::Launch asked,
                                   void** parameters, void** extra, bool is_cooperative) {
    Function& function = its.functions.at(handle);
    const auto home = function.module->loaded->context();
    if (home && home != context.id) refuse(CUDA_ERROR_INVALID_HANDLE);
    const std::vector<std::byte> packed = pack(its.target, function, parameters, extra);
    asked.entry = function.entry;
    asked.parameters = packed;
    if (!names_cluster(asked)) asked.cluster = function.cluster;
    check_cluster(its, function, asked);
    function.module->program().check(asked);
    check_resources(its, function, asked, is_cooperative);
    return {its.loaded_on(context.device, *function.module), context.id, asked};
}

void fail(Context& context, const char* function, const Error& finding,
          std::span<const std::shared_ptr<KeptPtx>> texts) {
    note(fmt::format("ikat's CUDA driver: {}: {}\n", function, finding.what()));
    for (const auto& text : texts)
        if (!text->write()) complain(function, "the PTX cannot be written to " + text->path(), "set IKAT_EMIT");
    if (context.failure == CUDA_SUCCESS) context.failure = result_of(finding);
}

void apply(const CUlaunchAttribute& attribute, emulator::Launch& asked, LaunchExtras& extras) {
    const auto& value = attribute.value;
    switch (attribute.id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: extras.is_cooperative = value.cooperative; break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            asked.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            asked.begins_early = value.programmaticStreamSerializationAllowed != 0;
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: extras.events.push_back(value.event.event); break;
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: refuse(CUDA_ERROR_NOT_SUPPORTED);
        default:  // hints about caches, priorities, overlap
            require(attribute.id <= CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    }
}

bool is_of_node(CUlaunchAttributeID which) {
    constexpr unsigned of_launches_and_streams[] = {
        CU_LAUNCH_ATTRIBUTE_IGNORE, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
        CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT};
    return which <= CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT &&
           std::ranges::find(of_launches_and_streams, which) == std::end(of_launches_and_streams);
}

namespace {

void run(Driver& its, Context& context, CUstream stream, const char* name, emulator::work::Launch launch,
         const std::shared_ptr<KeptPtx>& text) {
    try {
        its.device_of(id_of(stream)).run(id_of(stream), std::move(launch), !its.blocking_launches);
    } catch (const Error& finding) {
        fail(context, name, finding, std::span(&text, 1));
        if (its.blocking_launches) refuse(context.failure);
    }
}

/// A launch that is captured comes after what the stream had, or begins before the end of a kernel that it had.
void capture_launch(Driver& its, Capture& capture, CUstream stream, KernelNode kernel) {
    const auto early = kernel.attributes.find(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    const bool begins_early =
        early != kernel.attributes.end() && early->second.value.programmaticStreamSerializationAllowed != 0;
    std::vector<CUevent> events;
    for (auto it = kernel.attributes.begin(); it != kernel.attributes.end();) {
        if (it->first == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            it->first == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            events.push_back(it->second.value.event.event);
        it = is_of_node(CUlaunchAttributeID(it->first)) ? std::next(it) : kernel.attributes.erase(it);
    }
    if (begins_early)
        for (GraphNode::Edge& edge : capture.branches.at(id_of(stream)).next)
            if (std::holds_alternative<KernelNode>(edge.from->work))
                edge.data = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                             .to_port = 0,
                             .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
                             .reserved = {}};
    capture.add(id_of(stream), std::move(kernel));
    for (const CUevent event : events) record_captured(its, capture, stream, event, false);
}

CUresult launch(const char* name, CUfunction handle, const emulator::Launch& asked, CUstream stream, void** parameters,
                void** extra, const LaunchExtras& extras = {}, const Attributes& attributes = {}) {
    return on_stream(
        name, stream,
        [&](Driver& its, Context& context) {
            for (const CUevent event : extras.events)
                if (event_at(its, event).context != context.id) refuse(CUDA_ERROR_INVALID_HANDLE);
            emulator::work::Launch work =
                launch_work(its, context, handle, asked, parameters, extra, extras.is_cooperative);
            const std::shared_ptr<KeptPtx> text = its.functions.at(handle).module->ptx;
            if (Capture* const capture = capture_of(its, context, stream))
                return capture_launch(its, *capture, stream,
                                      {.function = handle,
                                       .context = context.id,
                                       .launch = std::move(work),
                                       .is_cooperative = extras.is_cooperative,
                                       .attributes = attributes,
                                       .ptx = text});
            run(its, context, stream, name, std::move(work), text);
            for (const CUevent event : extras.events) {
                forget_captured(event);
                its.device_of(id_of(stream)).run(id_of(stream), emulator::work::Record{id_of(event)}, true);
            }
        },
        InCapture::IsANode);
}

/// What a cooperative launch is as a node.
Attributes cooperative_attribute() {
    CUlaunchAttribute out{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .pad = {}, .value = {}};
    out.value.cooperative = 1;
    return {{CU_LAUNCH_ATTRIBUTE_COOPERATIVE, out}};
}

constexpr unsigned max_parameter_bytes = 32764;

CUresult set_parameter(const char* name, CUfunction handle, int offset, const void* value, std::size_t bytes) {
    return initialised(name, [&](Driver& its) {
        auto& parameters = its.functions.at(handle).parameters;
        require(value && offset >= 0 && sum(unsigned(offset), bytes) <= max_parameter_bytes);
        const std::size_t end = unsigned(offset) + bytes;
        if (parameters.size() < end) parameters.resize(end);
        std::memcpy(parameters.data() + offset, value, bytes);
    });
}

/// A launch with the block, the shared memory and the parameters that were set before.
CUresult launch_as_set(const char* name, CUfunction handle, int width, int height, CUstream stream) {
    emulator::Launch asked;
    std::vector<std::byte> parameters;
    const CUresult result = initialised(name, [&](Driver& its) {
        const Function& function = its.functions.at(handle);
        require(width > 0 && height > 0);
        asked.grid = {unsigned(width), unsigned(height), 1};
        asked.block = function.block;
        asked.dynamic_shared_bytes = function.dynamic_bytes;
        parameters = function.parameters;
    });
    if (result != CUDA_SUCCESS) return result;
    std::size_t bytes = parameters.size();
    void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER), parameters.data(),
                     reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE), &bytes,
                     reinterpret_cast<void*>(CU_LAUNCH_PARAM_END)};
    return launch(name, handle, asked, stream, nullptr, bytes ? extra : nullptr);
}

}  // namespace

API(cuLaunchKernel, CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters, void** extra) {
    return launch(
        "cuLaunchKernel", function,
        {.grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .dynamic_shared_bytes = shared},
        stream, parameters, extra);
}
API(cuLaunchCooperativeKernel, CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters) {
    return launch(
        "cuLaunchCooperativeKernel", function,
        {.grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .dynamic_shared_bytes = shared},
        stream, parameters, nullptr, {.is_cooperative = true, .events = {}}, cooperative_attribute());
}
API(cuLaunchKernelEx, const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
    emulator::Launch asked{.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                           .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                           .dynamic_shared_bytes = config->sharedMemBytes};
    LaunchExtras extras;
    Attributes attributes;
    const CUresult known = translated("cuLaunchKernelEx", [&] {
        for (const CUlaunchAttribute& attribute : std::span(config->attrs, config->numAttrs)) {
            apply(attribute, asked, extras);
            attributes[attribute.id] = attribute;
        }
    });
    if (known != CUDA_SUCCESS) return known;
    return launch("cuLaunchKernelEx", function, asked, config->hStream, parameters, extra, extras, attributes);
}

API(cuFuncSetBlockShape, CUfunction function, int x, int y, int z) {
    return initialised("cuFuncSetBlockShape", [&](Driver& its) {
        require(x > 0 && y > 0 && z > 0);
        its.functions.at(function).block = {unsigned(x), unsigned(y), unsigned(z)};
    });
}
API(cuFuncSetSharedSize, CUfunction function, unsigned bytes) {
    return initialised("cuFuncSetSharedSize", [&](Driver& its) { its.functions.at(function).dynamic_bytes = bytes; });
}
API(cuParamSetSize, CUfunction function, unsigned bytes) {
    return initialised("cuParamSetSize", [&](Driver& its) {
        require(bytes <= max_parameter_bytes);
        its.functions.at(function).parameters.resize(bytes);
    });
}
API(cuParamSetv, CUfunction function, int offset, const void* value, unsigned bytes) {
    return set_parameter("cuParamSetv", function, offset, value, bytes);
}
API(cuParamSeti, CUfunction function, int offset, unsigned value) {
    return set_parameter("cuParamSeti", function, offset, &value, sizeof value);
}
API(cuParamSetf, CUfunction function, int offset, float value) {
    return set_parameter("cuParamSetf", function, offset, &value, sizeof value);
}
API(cuLaunchGridAsync, CUfunction function, int width, int height, CUstream stream) {
    return launch_as_set("cuLaunchGridAsync", function, width, height, stream);
}
API(cuLaunchGrid, CUfunction function, int width, int height) {
    return launch_as_set("cuLaunchGrid", function, width, height, nullptr);
}
API(cuLaunch, CUfunction function) { return launch_as_set("cuLaunch", function, 1, 1, nullptr); }

}  // namespace ikat::cuda_driver
