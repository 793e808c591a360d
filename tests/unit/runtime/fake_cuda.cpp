// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/fake_cuda.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include "runtime/cuda/driver.hpp"

namespace {

using namespace ikat::runtime::cuda;

struct State {
    std::string log;
    std::map<std::string, unsigned> faults;
    std::string jit_log;
    int devices = 1;
    std::set<DevicePointer> allocated;
    std::uintptr_t handles = 0x1000;
    std::string function;
    std::uintptr_t graphs = 0, nodes = 0;
};

State& state() {
    static State state;
    return state;
}

/// Logs a call with its numbers and returns its result.
Result call(const char* symbol, std::initializer_list<unsigned long long> numbers = {}, const std::string& text = {}) {
    State& s = state();
    s.log += symbol;
    for (const unsigned long long number : numbers) s.log += ' ' + std::to_string(number);
    s.log += (text.empty() ? "" : " ") + text + '\n';
    const auto fault = s.faults.find(symbol);
    return fault == s.faults.end() ? Result::Success : Result(fault->second);
}

template <class Handle>
void make(Handle* out) {
    *out = reinterpret_cast<Handle>(state().handles += 0x10);
}

unsigned long long number(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle); }
void* host(DevicePointer pointer) { return reinterpret_cast<void*>(pointer); }

int attribute(DeviceAttribute which) {
    switch (which) {
        case DeviceAttribute::MaxThreadsPerBlock: return 1024;
        case DeviceAttribute::MaxBlockDimX:
        case DeviceAttribute::MaxBlockDimY: return 1024;
        case DeviceAttribute::MaxBlockDimZ: return 64;
        case DeviceAttribute::MaxGridDimX: return 0x7fffffff;
        case DeviceAttribute::MaxGridDimY:
        case DeviceAttribute::MaxGridDimZ: return 65535;
        case DeviceAttribute::MaxSharedMemoryPerBlock: return 49152;
        case DeviceAttribute::WarpSize: return 32;
        case DeviceAttribute::MultiprocessorCount: return 132;
        case DeviceAttribute::ComputeCapabilityMajor: return 9;
        case DeviceAttribute::ComputeCapabilityMinor: return 0;
        case DeviceAttribute::MaxSharedMemoryPerBlockOptin: return 232448;
    }
    return 0;
}

}  // namespace

extern "C" {

const char* fake_log() { return state().log.c_str(); }
void fake_reset() {
    state().log.clear();
    state().faults.clear();
    state().jit_log.clear();
    state().devices = 1;
    state().graphs = state().nodes = 0;
}
void fake_fail(const char* symbol, unsigned result) { state().faults[symbol] = result; }
void fake_jit_log(const char* text) { state().jit_log = text; }
void fake_devices(int count) { state().devices = count; }

Result cuInit(unsigned flags) { return call("cuInit", {flags}); }
Result cuGetErrorName(Result result, const char** name) {
    switch (unsigned(result)) {
        case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return Result::Success;
        case 100: *name = "CUDA_ERROR_NO_DEVICE"; return Result::Success;
        case 218: *name = "CUDA_ERROR_INVALID_PTX"; return Result::Success;
        case 222: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return Result::Success;
        case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return Result::Success;
    }
    *name = nullptr;
    return Result::InvalidValue;
}
Result cuGetErrorString(Result, const char** text) {
    *text = "the fake says so";
    return Result::Success;
}
Result cuDriverGetVersion(int* version) {
    *version = 13000;
    return call("cuDriverGetVersion");
}

Result cuDeviceGetCount(int* count) {
    *count = state().devices;
    return call("cuDeviceGetCount");
}
Result cuDeviceGet(DeviceId* id, int ordinal) {
    *id = 40 + ordinal;
    return call("cuDeviceGet", {unsigned(ordinal)});
}
Result cuDeviceGetName(char* name, int length, DeviceId) {
    std::snprintf(name, std::size_t(length), "Fake GPU");
    return call("cuDeviceGetName");
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, DeviceId) {
    *bytes = std::size_t{1} << 34;
    return call("cuDeviceTotalMem");
}
Result cuDeviceGetAttribute(int* value, DeviceAttribute which, DeviceId) {
    *value = attribute(which);
    const auto fault = state().faults.find("cuDeviceGetAttribute");
    return fault == state().faults.end() ? Result::Success : Result(fault->second);
}
Result cuDevicePrimaryCtxRetain(Context* context, DeviceId id) {
    *context = reinterpret_cast<Context>(std::uintptr_t(0xc000 + id));  // the same for all that use it
    return call("cuDevicePrimaryCtxRetain", {unsigned(id)});
}
Result cuDevicePrimaryCtxRelease_v2(DeviceId id) { return call("cuDevicePrimaryCtxRelease", {unsigned(id)}); }
Result cuDeviceCanAccessPeer(int* can, DeviceId device, DeviceId peer) {
    *can = device != peer && peer < 42;  // the third device is elsewhere
    return call("cuDeviceCanAccessPeer", {unsigned(device), unsigned(peer)});
}
Result cuCtxEnablePeerAccess(Context context, unsigned flags) {
    return context ? call("cuCtxEnablePeerAccess", {flags}) : Result::InvalidValue;
}
Result cuCtxDisablePeerAccess(Context context) {
    return context ? call("cuCtxDisablePeerAccess") : Result::InvalidValue;
}
Result cuDeviceGetMemPool(MemoryPool* pool, DeviceId id) {
    *pool = reinterpret_cast<MemoryPool>(std::uintptr_t(0xd000 + id));
    return call("cuDeviceGetMemPool", {unsigned(id)});
}
Result cuMemPoolSetAccess(MemoryPool pool, const MemoryAccess* access, std::size_t count) {
    return call("cuMemPoolSetAccess", {number(pool) - 0xd000, count, unsigned(access->location),
                                       unsigned(access->device), unsigned(access->flags)});
}
Result cuCtxSetCurrent(Context context) { return context ? Result::Success : Result::InvalidValue; }

Result cuMemAlloc_v2(DevicePointer* pointer, std::size_t bytes) {
    const Result result = call("cuMemAlloc", {bytes});
    if (bytes == 0) return Result::InvalidValue;
    if (result != Result::Success) return result;
    *pointer = number(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    state().allocated.insert(*pointer);
    return result;
}
Result cuMemFree_v2(DevicePointer pointer) {
    if (!state().allocated.erase(pointer)) return Result::InvalidValue;
    std::free(host(pointer));
    return call("cuMemFree");
}
Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t bytes, Stream stream) {
    std::memcpy(host(to), from, bytes);
    return call("cuMemcpyHtoDAsync", {bytes, number(stream)});
}
Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t bytes, Stream stream) {
    std::memcpy(to, host(from), bytes);
    return call("cuMemcpyDtoHAsync", {bytes, number(stream)});
}
Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, std::size_t bytes, Stream stream) {
    std::memcpy(host(to), host(from), bytes);
    return call("cuMemcpyDtoDAsync", {bytes, number(stream)});
}
namespace {
Result copy_box(const char* symbol, const BoxCopy& box, Stream stream) {
    const auto row = [](const BoxCopy::End& end, std::size_t y) {
        char* const first = static_cast<char*>(end.type == BoxCopy::MemoryType::Host ? end.host : host(end.device));
        return first + y * end.pitch;
    };
    for (std::size_t y = 0; y < box.height; ++y) std::memcpy(row(box.to, y), row(box.from, y), box.width);
    return call(symbol, {box.width, box.height, box.depth, number(stream)});
}
}  // namespace
Result cuMemcpy3DAsync_v2(const BoxCopy* box, Stream stream) { return copy_box("cuMemcpy3DAsync", *box, stream); }
Result cuMemcpy3DPeerAsync(const BoxCopy* box, Stream stream) {
    if (!box->from.context || !box->to.context) return Result::InvalidValue;
    return copy_box("cuMemcpy3DPeerAsync", *box, stream);
}
Result cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
    *memory = std::malloc(bytes);
    return call("cuMemHostAlloc", {bytes, flags});
}
Result cuMemFreeHost(void* memory) {
    std::free(memory);
    return call("cuMemFreeHost");
}
Result cuMemAllocAsync(DevicePointer* pointer, std::size_t bytes, Stream stream) {
    const Result result = call("cuMemAllocAsync", {bytes, number(stream)});
    if (result != Result::Success) return result;
    *pointer = number(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    state().allocated.insert(*pointer);
    return result;
}
Result cuMemFreeAsync(DevicePointer pointer, Stream stream) {
    if (!state().allocated.erase(pointer)) return Result::InvalidValue;
    std::free(host(pointer));
    return call("cuMemFreeAsync", {number(stream)});
}
Result cuMemsetD8Async(DevicePointer to, unsigned char value, std::size_t count, Stream stream) {
    std::memset(host(to), value, count);
    return call("cuMemsetD8Async", {value, count, number(stream)});
}
Result cuMemsetD16Async(DevicePointer to, unsigned short value, std::size_t count, Stream stream) {
    for (std::size_t i = 0; i < count; ++i) static_cast<unsigned short*>(host(to))[i] = value;
    return call("cuMemsetD16Async", {value, count, number(stream)});
}
Result cuMemsetD32Async(DevicePointer to, unsigned value, std::size_t count, Stream stream) {
    for (std::size_t i = 0; i < count; ++i) static_cast<unsigned*>(host(to))[i] = value;
    return call("cuMemsetD32Async", {value, count, number(stream)});
}

Result cuModuleLoadDataEx(Module* module, const void* image, unsigned count, JitOption* options, void** values) {
    const auto* text = static_cast<const char*>(image);
    const Result result = call("cuModuleLoadDataEx", {std::strlen(text), count});
    for (unsigned i = 0; i < count; ++i)
        if (options[i] == JitOption::ErrorLogBuffer)
            std::strcpy(static_cast<char*>(values[i]), state().jit_log.c_str());
    make(module);
    if (result != Result::Success) return result;
    return state().jit_log.empty() ? Result::Success : Result::InvalidPtx;
}
Result cuModuleUnload(Module) { return call("cuModuleUnload"); }
Result cuModuleGetFunction(Function* function, Module, const char* name) {
    make(function);
    return call("cuModuleGetFunction", {}, name);
}
Result cuModuleGetGlobal_v2(DevicePointer* address, std::size_t* bytes, Module, const char* name) {
    static std::uint32_t table[4];
    *address = number(table);
    *bytes = sizeof table;
    return call("cuModuleGetGlobal", {}, name);
}
Result cuFuncGetAttribute(int* value, FunctionAttribute which, Function) {
    *value = which == FunctionAttribute::SharedSizeBytes ? 1024 : 0;
    return call("cuFuncGetAttribute", {unsigned(which)});
}
Result cuFuncSetAttribute(Function, FunctionAttribute which, int value) {
    return call("cuFuncSetAttribute", {unsigned(which), unsigned(value)});
}
namespace {
/// Appends the parameters of a launch as text. False if they are not given as they must be.
bool add_parameters(std::string& bytes, void** parameters, void** extra) {
    if (parameters) {  // of three parameters, as the test has them
        bytes += "parameters";
        for (int i = 0; i < 3; ++i) bytes += ' ' + std::to_string(*static_cast<const unsigned char*>(parameters[i]));
    }
    if (extra) {
        // {BUFFER_POINTER, data, BUFFER_SIZE, &size, END}
        if (number(extra[0]) != 1 || number(extra[2]) != 2 || extra[4]) return false;
        const auto* data = static_cast<const unsigned char*>(extra[1]);
        for (std::size_t i = 0; i < *static_cast<const std::size_t*>(extra[3]); ++i) {
            char hex[3];
            std::snprintf(hex, sizeof hex, "%02x", data[i]);
            bytes += hex;
        }
    }
    return true;
}
}  // namespace
Result cuLaunchKernel(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                      unsigned block_z, unsigned shared, Stream stream, void** parameters, void** extra) {
    std::string bytes;
    if (!add_parameters(bytes, parameters, extra)) return Result::InvalidValue;
    return call("cuLaunchKernel", {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, number(stream)}, bytes);
}
Result cuLaunchKernelEx(const LaunchConfig* config, Function, void** parameters, void** extra) {
    const auto& [grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, attributes, count] = *config;
    std::string text;
    for (unsigned i = 0; i < count; ++i)
        text += "attribute " + std::to_string(unsigned(attributes[i].id)) + " = " +
                std::to_string(attributes[i].number) + ' ';
    if (!add_parameters(text, parameters, extra)) return Result::InvalidValue;
    return call("cuLaunchKernelEx", {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, number(stream)}, text);
}

Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    *least = 0, *greatest = -5;
    return call("cuCtxGetStreamPriorityRange");
}
Result cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
    make(stream);
    return call("cuStreamCreateWithPriority", {flags, static_cast<unsigned>(-priority)});
}
Result cuStreamDestroy_v2(Stream) { return call("cuStreamDestroy"); }
Result cuCtxSynchronize() { return call("cuCtxSynchronize"); }
Result cuStreamWaitEvent(Stream stream, Event, unsigned flags) {
    return call("cuStreamWaitEvent", {flags, number(stream)});
}
Result cuLaunchHostFunc(Stream stream, void (*function)(void*), void* data) {
    const Result result = call("cuLaunchHostFunc", {number(stream)});
    if (result == Result::Success) function(data);
    return result;
}
Result cuStreamQuery(Stream stream) { return call("cuStreamQuery", {number(stream)}); }
Result cuStreamSynchronize(Stream stream) { return call("cuStreamSynchronize", {number(stream)}); }
Result cuEventCreate(Event* event, unsigned flags) {
    make(event);
    return call("cuEventCreate", {flags});
}
Result cuEventDestroy_v2(Event) { return call("cuEventDestroy"); }
Result cuEventRecord(Event, Stream stream) { return call("cuEventRecord", {number(stream)}); }
Result cuEventSynchronize(Event) { return call("cuEventSynchronize"); }
Result cuEventQuery(Event) { return call("cuEventQuery"); }
Result cuEventElapsedTime(float* milliseconds, Event, Event) {
    *milliseconds = 1.5f;
    return call("cuEventElapsedTime");
}

// Graphs and nodes are numbered from 1 on: "kernel 3 in graph 1 after 1 2".
namespace {
Result add_node(const char* what, Node* out, CudaGraph graph, const Node* after, std::size_t count) {
    *out = reinterpret_cast<Node>(++state().nodes);
    std::string text = std::to_string(number(*out)) + " in graph " + std::to_string(number(graph));
    for (std::size_t i = 0; i < count; ++i) text += (i ? " " : " after ") + std::to_string(number(after[i]));
    return call(what, {}, text);
}
void make_graph(CudaGraph* out) { *out = reinterpret_cast<CudaGraph>(++state().graphs); }
}  // namespace
Result cuGraphCreate(CudaGraph* graph, unsigned) {
    make_graph(graph);
    return Result::Success;
}
Result cuGraphDestroy(CudaGraph) { return Result::Success; }
Result cuGraphExecDestroy(GraphExec) { return Result::Success; }
Result cuGraphInstantiateWithFlags(GraphExec* out, CudaGraph graph, unsigned long long) {
    make(out);
    return call("instantiate", {number(graph)});
}
Result cuGraphLaunch(GraphExec, Stream) { return call("cuGraphLaunch"); }
Result cuGraphAddEmptyNode(Node* out, CudaGraph graph, const Node* after, std::size_t count) {
    return add_node("empty", out, graph, after, count);
}
Result cuGraphAddKernelNode_v2(Node* out, CudaGraph graph, const Node* after, std::size_t count, const KernelNode*) {
    return add_node("kernel", out, graph, after, count);
}
Result cuGraphAddHostNode(Node* out, CudaGraph graph, const Node* after, std::size_t count, const HostNode*) {
    return add_node("host", out, graph, after, count);
}
Result cuGraphExecKernelNodeSetParams_v2(GraphExec, Node node, const KernelNode*) {
    return call("set kernel", {number(node)});
}
Result cuGraphAddDependencies_v2(CudaGraph graph, const Node* from, const Node* to, const EdgeData* data,
                                 std::size_t count) {
    Result out = Result::Success;
    for (std::size_t i = 0; i < count; ++i)
        out = call("edge", {number(graph), number(from[i]), number(to[i]), data[i].from_port, data[i].type});
    return out;
}
Result cuGraphConditionalHandleCreate(std::uint64_t* out, CudaGraph graph, Context, unsigned value, unsigned flags) {
    *out = 0x77;
    return call("handle", {number(graph), value, flags});
}
Result cuGraphAddNode_v2(Node* out, CudaGraph graph, const Node* after, const EdgeData*, std::size_t count,
                         NodeParameters* parameters) {
    static CudaGraph body;
    make_graph(&body);
    ConditionalNode& its = parameters->conditional;
    its.bodies = &body;
    if (parameters->type != NodeParameters::Type::Conditional || its.handle != 0x77 || its.size != 1 || !its.context)
        return Result::InvalidValue;
    return add_node(its.type == ConditionalNode::Type::If ? "if" : "while", out, graph, after, count);
}

}  // extern "C"
