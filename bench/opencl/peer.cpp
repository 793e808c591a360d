// SPDX-License-Identifier: Apache-2.0
#include "bench/opencl/peer.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "codegen/support/diagnostic.hpp"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

namespace ikat::bench {
namespace {

void check(cl_int result, const char* what) {
    if (result != CL_SUCCESS) throw Error(fmt::format("{} failed: {}", what, result), "CL/cl.h has the number's name");
}

cl_device_id find_device() {
    std::array<cl_platform_id, 16> platforms{};
    cl_uint count = 0;
    if (clGetPlatformIDs(cl_uint(platforms.size()), platforms.data(), &count) != CL_SUCCESS) count = 0;
    for (cl_uint i = 0; i < std::min<cl_uint>(count, cl_uint(platforms.size())); ++i) {
        cl_device_id device = nullptr;
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, nullptr) == CL_SUCCESS) return device;
    }
    throw Error("there is no OpenCL device of a CPU", "install PoCL: apt install pocl-opencl-icd");
}

std::string source() {
    std::ifstream file(IKAT_SOURCE_DIR "/bench/opencl/kernels.cl");
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string Form::name() const {
    const std::string by = group[0] ? fmt::format("{} x {}", group[0], group[1]) : std::string("its own choice");
    return fmt::format("{}{}, {}", kernel, is_native ? ", native_rsqrt" : "", by);
}

struct Peer::State {
    State() : device(find_device()) {
        cl_int result = 0;
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &result);
        check(result, "clCreateContext");
        queue = clCreateCommandQueue(context, device, 0, &result);
        check(result, "clCreateCommandQueue");
        const std::string text = source();
        const char* begin = text.c_str();
        for (const bool is_native : {false, true}) {
            programs[is_native] = clCreateProgramWithSource(context, 1, &begin, nullptr, &result);
            check(result, "clCreateProgramWithSource");
            result = clBuildProgram(programs[is_native], 1, &device, is_native ? "-D NATIVE" : "", nullptr, nullptr);
            check(result, "clBuildProgram");
        }
    }
    ~State() {
        release_buffers();
        for (const auto& [name, kernel] : kernels) clReleaseKernel(kernel);
        for (const cl_program program : programs) clReleaseProgram(program);
        clReleaseCommandQueue(queue);
        clReleaseContext(context);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    void release_buffers() {
        for (const cl_mem buffer : buffers) clReleaseMemObject(buffer);
        buffers.clear(), sizes.clear();
    }
    cl_kernel kernel(const Form& form) {
        cl_kernel& found = kernels[{form.kernel, form.is_native}];
        cl_int result = CL_SUCCESS;
        if (!found) found = clCreateKernel(programs[form.is_native], form.kernel, &result);
        check(result, "clCreateKernel");
        return found;
    }

    cl_device_id device;
    cl_context context = nullptr;
    cl_command_queue queue = nullptr;
    std::array<cl_program, 2> programs{};  // without and with native_rsqrt
    std::map<std::pair<std::string, bool>, cl_kernel> kernels;
    std::vector<cl_mem> buffers;
    std::vector<std::size_t> sizes;  // in elements
};

Peer::Peer(unsigned threads) {
    for (const char* variable : {"POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT"})  // before 5.0, and since
        setenv(variable, std::to_string(threads).c_str(), 1);
    state_ = std::make_unique<State>();
}
Peer::~Peer() = default;

std::string Peer::name() const {
    const auto read = [&](cl_device_info which) {
        std::array<char, 300> text{};
        clGetDeviceInfo(state_->device, which, text.size() - 1, text.data(), nullptr);
        return std::string(text.data());
    };
    cl_uint units = 0;
    clGetDeviceInfo(state_->device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr);
    return fmt::format("{}, {}, threads: {}", read(CL_DEVICE_VERSION), read(CL_DEVICE_NAME), units);
}

void Peer::upload(const std::vector<std::vector<float>>& buffers) {
    state_->release_buffers();
    for (const std::vector<float>& values : buffers) {
        cl_int result = 0;
        state_->buffers.push_back(clCreateBuffer(state_->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                                 values.size() * sizeof(float), const_cast<float*>(values.data()),
                                                 &result));
        check(result, "clCreateBuffer");
        state_->sizes.push_back(values.size());
    }
}

std::vector<float> Peer::download(std::size_t buffer) const {
    std::vector<float> out(state_->sizes[buffer]);
    check(clEnqueueReadBuffer(state_->queue, state_->buffers[buffer], CL_TRUE, 0, out.size() * sizeof(float),
                              out.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
    return out;
}

void Peer::run(const Form& form, const float* factor, unsigned n) {
    const cl_kernel kernel = state_->kernel(form);
    cl_uint index = 0;
    const auto set = [&](std::size_t bytes, const void* value) {
        check(clSetKernelArg(kernel, index++, bytes, value), "clSetKernelArg");
    };
    for (const cl_mem& buffer : state_->buffers) set(sizeof buffer, &buffer);
    if (factor) set(sizeof *factor, factor);
    set(sizeof n, &n);
    if (form.has_tile) set(form.group[0] * 16, nullptr);
    check(clEnqueueNDRangeKernel(state_->queue, kernel, 2, nullptr, form.items.data(),
                                 form.group[0] ? form.group.data() : nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
    check(clFinish(state_->queue), "clFinish");
}

}  // namespace ikat::bench
