// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate and free: a node has its address from the start, and each launch makes the memory anew.
#include <fmt/format.h>

#include <algorithm>

#include "tools/cuda_driver/graphs/graph.hpp"

namespace ikat::cuda_driver {

AllocNode alloc_node(Driver& its, const Graph& graph, CUDA_MEM_ALLOC_NODE_PARAMS& params) {
    const CUmemPoolProps& props = params.poolProps;
    require(props.allocType == CU_MEM_ALLOCATION_TYPE_PINNED && props.handleTypes == CU_MEM_HANDLE_TYPE_NONE);
    require(props.location.type == CU_MEM_LOCATION_TYPE_DEVICE && props.location.id == current_context().device);
    require(params.bytesize > 0 && (params.accessDescs || params.accessDescCount == 0));
    if (graph.parent) refuse(CUDA_ERROR_INVALID_VALUE, "a child graph takes no nodes that allocate or free memory");
    AllocNode out{.props = props, .access = {}, .memory = {}};
    if (params.accessDescs) out.access.assign(params.accessDescs, params.accessDescs + params.accessDescCount);
    for (const CUmemAccessDesc& each : out.access)
        require(each.location.type == CU_MEM_LOCATION_TYPE_DEVICE && each.location.id == props.location.id);
    if (params.bytesize > its.properties.memory_bytes) refuse(CUDA_ERROR_OUT_OF_MEMORY);
    out.memory = std::make_shared<GraphMemory>(its, current_context().id, params.bytesize);
    out.memory->owner = graph.handle;
    graphs().memory[out.memory->address] = out.memory;
    params.dptr = out.memory->address;
    return out;
}

FreeNode free_node(const Graph& graph, CUdeviceptr address) {
    const auto found = graphs().memory.find(address);
    std::shared_ptr<GraphMemory> memory = found == graphs().memory.end() ? nullptr : found->second.lock();
    if (!memory)
        refuse(CUDA_ERROR_INVALID_VALUE, "the address is not one that a node of a graph has allocated",
               "other memory is freed by cuMemFree or cuMemFreeAsync");
    if (graph.parent) refuse(CUDA_ERROR_INVALID_VALUE, "a child graph takes no nodes that allocate or free memory");
    const bool is_twice = memory->freed_in == graph.handle;
    const bool is_own = memory->freed_in != 0 && (memory->freed_in == memory->owner || memory->owner == graph.handle);
    if (is_twice || is_own)
        refuse(CUDA_ERROR_INVALID_VALUE, is_twice ? "a node of the graph frees this memory already"
                                                  : "a node of another graph frees this memory already");
    memory->freed_in = graph.handle;
    return {address, std::move(memory)};
}

void note_allocated(std::uint64_t bytes) {
    Graphs& all = graphs();
    all.used += bytes;
    all.used_high = std::max(all.used_high, all.used);
    all.reserved = std::max(all.reserved, all.used);
    all.reserved_high = std::max(all.reserved_high, all.reserved);
}

void note_freed(GraphMemory& memory) {
    if (!std::exchange(memory.is_live, false)) return;
    graphs().used -= memory.bytes;
}

void note_freed(std::uint64_t address) {
    const auto found = graphs().memory.find(address);
    if (found == graphs().memory.end()) return;
    if (const auto memory = found->second.lock()) note_freed(*memory);
}

void forget_graphs(const Context& context) {
    for (const auto& [address, each] : graphs().memory)
        if (const auto memory = each.lock(); memory && memory->context == context.id) note_freed(*memory);
    std::erase_if(graphs().launched, [&](const LaunchedGraph& each) { return each.context == context.id; });
}

bool is_in_graph_memory(CUdeviceptr address, std::size_t bytes) {
    const auto next = graphs().memory.upper_bound(address);
    if (next == graphs().memory.begin()) return false;
    const auto memory = std::prev(next)->second.lock();
    const std::uint64_t offset = memory ? address - memory->address : 0;
    return memory && offset <= memory->bytes && bytes <= memory->bytes - offset;
}

namespace {

std::uint64_t& counter(CUgraphMem_attribute which) {
    switch (which) {
        case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: return graphs().used;
        case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: return graphs().used_high;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: return graphs().reserved;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: return graphs().reserved_high;
    }
    refuse(CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

API(cuDeviceGetGraphMemAttribute, CUdevice device, CUgraphMem_attribute which, void* value) {
    return initialised("cuDeviceGetGraphMemAttribute", [&](Driver&) {
        check_device(device);
        require(value);
        *static_cast<std::uint64_t*>(value) = counter(which);
    });
}
API(cuDeviceSetGraphMemAttribute, CUdevice device, CUgraphMem_attribute which, void* value) {
    return initialised("cuDeviceSetGraphMemAttribute", [&](Driver&) {
        check_device(device);
        require(value && *static_cast<std::uint64_t*>(value) == 0);  // a mark is only reset
        require(which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || which == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
        counter(which) = which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ? graphs().used : graphs().reserved;
    });
}
API(cuDeviceGraphMemTrim, CUdevice device) {
    return initialised("cuDeviceGraphMemTrim", [&](Driver&) {
        check_device(device);
        graphs().reserved = graphs().used;
    });
}

}  // namespace ikat::cuda_driver
