// SPDX-License-Identifier: Apache-2.0
// Words of the device, kernels that change them, and graphs of these, for tests.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/cuda_driver/said.hpp"
#include "tests/unit/cuda_driver/stand_in.hpp"
#include "tools/cuda_driver/graphs/abi.hpp"

namespace ikat::tests {

#define WORKS(...) CHECK((__VA_ARGS__) == CUDA_SUCCESS)

using Nodes = std::vector<CUgraphNode>;

/// A kernel with parameters p and n: *p = *p * 10 + n, which shows the order of several. A warning is said once for
/// each pair of kernels, so that each has its own name.
inline CUfunction appending_kernel(std::string* name = nullptr) {
    static int number = 0;
    const std::string own = "append_" + std::to_string(++number);
    if (name) *name = own;
    const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " + own +
                             "(.param .u64 p, .param .u32 n) {\n.reg .b64 %d; .reg .b32 %r<3>; ld.param.u64 %d, [p];\n"
                             "ld.param.u32 %r1, [n]; ld.global.u32 %r0, [%d]; mad.lo.u32 %r0, %r0, 10, %r1;\n"
                             "st.global.u32 [%d], %r0; ret;\n}\n";
    CUmodule module = nullptr;
    CUfunction out = nullptr;
    REQUIRE(call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str())) == CUDA_SUCCESS);
    REQUIRE(call("cuModuleGetFunction", &out, module, own.c_str()) == CUDA_SUCCESS);
    return out;
}

struct Words {
    OwnContext context;
    CUdeviceptr at = 0;

    explicit Words(unsigned count = 4) {
        WORKS(call("cuMemAlloc_v2", &at, std::size_t{4} * count));
        WORKS(call("cuMemsetD32_v2", at, 0u, std::size_t{count}));
        WORKS(call("cuCtxSynchronize"));
    }
    CUdeviceptr word(unsigned i) const { return at + 4 * i; }
    unsigned value(unsigned i = 0) const {
        unsigned out = 0;
        WORKS(call("cuCtxSynchronize"));
        WORKS(call("cuMemcpyDtoH_v2", static_cast<void*>(&out), word(i), sizeof out));
        return out;
    }
};

struct TestStream {
    explicit TestStream(unsigned flags = 1) { WORKS(call("cuStreamCreate", &handle, flags)); }
    ~TestStream() { call("cuStreamDestroy_v2", handle); }
    TestStream(const TestStream&) = delete;
    TestStream& operator=(const TestStream&) = delete;
    operator CUstream() const { return handle; }
    CUstream handle = nullptr;
};

struct TestEvent {
    TestEvent() { WORKS(call("cuEventCreate", &handle, 0u)); }
    ~TestEvent() { call("cuEventDestroy_v2", handle); }
    TestEvent(const TestEvent&) = delete;
    TestEvent& operator=(const TestEvent&) = delete;
    operator CUevent() const { return handle; }
    CUevent handle = nullptr;
};

inline CUresult append(CUfunction kernel, CUdeviceptr word, unsigned digit, CUstream stream) {
    void* parameters[] = {&word, &digit};
    return launch(kernel, {}, parameters, stream);
}

inline CUDA_KERNEL_NODE_PARAMS appending(CUfunction kernel, void** parameters) {
    CUDA_KERNEL_NODE_PARAMS out{};
    out.func = kernel;
    out.gridDimX = out.gridDimY = out.gridDimZ = out.blockDimX = out.blockDimY = out.blockDimZ = 1;
    out.kernelParams = parameters;
    return out;
}

struct TestGraph {
    TestGraph() { WORKS(call("cuGraphCreate", &handle, 0u)); }
    explicit TestGraph(CUgraph of) : handle(of) {}
    ~TestGraph() { call("cuGraphDestroy", handle); }
    TestGraph(const TestGraph&) = delete;
    TestGraph& operator=(const TestGraph&) = delete;
    operator CUgraph() const { return handle; }

    CUgraphNode append(CUfunction kernel, CUdeviceptr word, unsigned digit, const Nodes& after = {}) {
        CUgraphNode out = nullptr;
        void* parameters[] = {&word, &digit};
        const CUDA_KERNEL_NODE_PARAMS params = appending(kernel, parameters);
        WORKS(call("cuGraphAddKernelNode_v2", &out, handle, after.data(), after.size(), &params));
        return out;
    }
    CUgraphNode empty(const Nodes& after = {}) {
        CUgraphNode out = nullptr;
        WORKS(call("cuGraphAddEmptyNode", &out, handle, after.data(), after.size()));
        return out;
    }
    CUgraphNode fill(CUdeviceptr word, unsigned value, const Nodes& after = {}) {
        CUgraphNode out = nullptr;
        CUcontext context = nullptr;
        call("cuCtxGetCurrent", &context);
        const CUDA_MEMSET_NODE_PARAMS params{word, 0, value, 4, 1, 1};
        WORKS(call("cuGraphAddMemsetNode", &out, handle, after.data(), after.size(), &params, context));
        return out;
    }
    CUgraphNode host(CUhostFn function, void* data, const Nodes& after = {}) {
        CUgraphNode out = nullptr;
        const CUDA_HOST_NODE_PARAMS params{function, data};
        WORKS(call("cuGraphAddHostNode", &out, handle, after.data(), after.size(), &params));
        return out;
    }
    CUgraphNode allocate(std::size_t bytes, CUdeviceptr* address, const Nodes& after = {}) {
        CUgraphNode out = nullptr;
        CUDA_MEM_ALLOC_NODE_PARAMS params{};
        params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        params.bytesize = bytes;
        WORKS(call("cuGraphAddMemAllocNode", &out, handle, after.data(), after.size(), &params));
        *address = params.dptr;
        return out;
    }
    CUgraphNode free(CUdeviceptr address, const Nodes& after = {}) {
        CUgraphNode out = nullptr;
        WORKS(call("cuGraphAddMemFreeNode", &out, handle, after.data(), after.size(), address));
        return out;
    }
    std::size_t nodes() const {
        std::size_t count = 0;
        WORKS(call("cuGraphGetNodes", handle, static_cast<CUgraphNode*>(nullptr), &count));
        return count;
    }

    CUgraph handle = nullptr;
};

struct TestExec {
    explicit TestExec(CUgraph graph, unsigned long long flags = 0) {
        WORKS(call("cuGraphInstantiateWithFlags", &handle, graph, flags));
    }
    ~TestExec() { call("cuGraphExecDestroy", handle); }
    TestExec(const TestExec&) = delete;
    TestExec& operator=(const TestExec&) = delete;
    operator CUgraphExec() const { return handle; }
    CUresult launch(CUstream stream) const { return call("cuGraphLaunch", handle, stream); }
    CUgraphExec handle = nullptr;
};

/// A row of a copy from the host or the device to the other.
inline CUDA_MEMCPY3D row(void* to_host, CUdeviceptr to, const void* from_host, CUdeviceptr from, std::size_t bytes) {
    CUDA_MEMCPY3D out{};
    out.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    out.dstHost = to_host, out.dstDevice = to;
    out.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    out.srcHost = from_host, out.srcDevice = from;
    out.WidthInBytes = bytes, out.Height = out.Depth = 1;
    return out;
}

}  // namespace ikat::tests
