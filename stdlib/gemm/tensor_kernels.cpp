// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/tensor_kernels.hpp"

#include "stdlib/spec/kernels.hpp"

namespace ikat::stdlib {

std::string TensorKernel::name() const {
    const char* const letters[] = {"n", "t"};
    std::string out = "gemm_tensor_core_";
    out += type == ir::Type::F32 ? "tf32" : type == ir::Type::I8 ? "s8" : type == ir::Type::F16 ? "f16" : "bf16";
    if (step != Step::Finish && step != Step::Join && step != Step::Scale) {
        if (a != MatrixOrder::Rows || b != MatrixOrder::Rows)
            out += std::string("_") + letters[int(a)] + letters[int(b)];
    }
    const char* const activations[] = {"", "_relu", "_gelu", "_gelu_tanh", "_silu"};
    if (has_bias) out += "_bias";
    out += activations[int(activation)];
    if (has_residual) out += "_residual";
    if (epilogue) out += "_" + epilogue.name();
    const char* const steps[] = {"",      "_persistent", "_part",  "_finish", "_stream",
                                 "_join", "_scale",      "_wgmma", "_wgmma",  "_wgmma_part"};
    return out + steps[int(step)];
}

KernelHandle TensorKernel::make() const {
    switch (type) {
        case ir::Type::F16: return made_of_f16(*this);
        case ir::Type::BF16: return made_of_bf16(*this);
        case ir::Type::I8: return made_of_i8(*this);
        default: return made_of_tf32(*this);
    }
}

const KernelHandle& TensorKernel::handle() const { return Kernels<TensorKernel>::of(*this); }

}  // namespace ikat::stdlib
