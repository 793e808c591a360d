// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/condition_setter.hpp"

namespace ikat::runtime::cuda {
namespace {

constexpr const char* text = R"(.version 7.0
.target sm_70
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry ikat_set_condition(.param .u64 handle, .param .u64 number)
{
    .reg .b32 %value;
    .reg .b64 %handle, %number;
    ld.param.u64 %handle, [handle];
    ld.param.u64 %number, [number];
    cvta.to.global.u64 %number, %number;
    ld.global.u32 %value, [%number];
    {
        .param .b64 of;
        .param .b32 to;
        st.param.b64 [of], %handle;
        st.param.b32 [to], %value;
        call.uni cudaGraphSetConditional, (of, to);
    }
    ret;
}
)";

}  // namespace

Function ConditionSetter::function() {
    if (!driver_->cuGraphConditionalHandleCreate || !driver_->cuGraphAddNode_v2)
        throw Error("the CUDA driver has no conditional nodes, which this graph needs",
                    "it is older than CUDA 12.4: update the driver, or let the program decide what it launches");
    const std::lock_guard lock(mutex_);
    if (!module_)
        driver_->check(driver_->cuModuleLoadDataEx(&module_, text, 0, nullptr, nullptr),
                       "loading the kernel that sets conditions");
    Function out = nullptr;
    driver_->check(driver_->cuModuleGetFunction(&out, module_, "ikat_set_condition"), "cuModuleGetFunction");
    return out;
}

}  // namespace ikat::runtime::cuda
