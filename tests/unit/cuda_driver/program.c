/* SPDX-License-Identifier: Apache-2.0 */
/* A program of the CUDA driver API as one finds them: PTX in a string, a context, buffers, a launch, a check of the
   result, and a look at an error. It knows nothing of ikat. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                        \
    do {                                                                   \
        CUresult result = (call);                                          \
        if (result != CUDA_SUCCESS) {                                      \
            const char* name = "?";                                        \
            cuGetErrorName(result, &name);                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, name); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry scale(.param .u64 x, .param .f32 a, .param .u32 n) {\n"
    "  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .f32 %f<3>;\n"
    "  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
    "  mad.lo.u32 %r0, %r0, %r1, %r2; ld.param.u32 %r3, [n];\n"
    "  setp.ge.u32 %p, %r0, %r3; @%p ret;\n"
    "  ld.param.u64 %d0, [x]; cvta.to.global.u64 %d0, %d0; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;\n"
    "  ld.param.f32 %f0, [a]; ld.global.f32 %f1, [%d2]; mul.f32 %f2, %f0, %f1; st.global.f32 [%d2], %f2; ret;\n"
    "}\n";

enum { count = 1000 };

int main(void) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction scale;
    CUdeviceptr x;
    CUstream stream;
    CUevent start, stop;
    CUlaunchConfig config = {0};
    float host[count], factor = 3, milliseconds;
    unsigned n = count;
    void* parameters[] = {&x, &factor, &n};
    int i, version, major;

    CHECK(cuInit(0));
    CHECK(cuDriverGetVersion(&version));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&scale, module, "scale"));
    CHECK(cuMemAlloc(&x, sizeof host));
    for (i = 0; i < count; ++i) host[i] = (float)i;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&stop, CU_EVENT_DEFAULT));
    CHECK(cuMemcpyHtoDAsync(x, host, sizeof host, stream));
    CHECK(cuEventRecord(start, stream));
    CHECK(cuLaunchKernel(scale, (count + 127) / 128, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
    config.gridDimX = (count + 255) / 256, config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 256, config.blockDimY = config.blockDimZ = 1, config.hStream = stream;
    CHECK(cuLaunchKernelEx(&config, scale, parameters, NULL));
    CHECK(cuEventRecord(stop, stream));
    CHECK(cuMemcpyDtoHAsync(host, x, sizeof host, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuEventElapsedTime(&milliseconds, start, stop));
    for (i = 0; i < count; ++i)
        if (host[i] != 9.0f * (float)i) {
            fprintf(stderr, "element %d is %g\n", i, host[i]);
            return 1;
        }
    if (cuMemFree(x + 4) != CUDA_ERROR_INVALID_VALUE) return 1;
    CHECK(cuMemFree(x));
    CHECK(cuEventDestroy(start));
    CHECK(cuEventDestroy(stop));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    printf("CUDA %d, sm_%d0: %d elements are right\n", version, major, count);
    return 0;
}
