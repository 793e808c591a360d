// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/tensor_kernels.hpp"

#include "stdlib/spec/kernels.hpp"

namespace ikat::stdlib {

/// sum + x, of argument number `number`. In kernels that add parts of k, ptxas takes up to five registers less for
/// 1 * x than for x.
template <class Sum>
static EpilogueStep with_argument(std::size_t number, auto where) {
    return {
        .function =
            [=](const GivenNumber& sum, const EpiloguePlace& at, const EpilogueSource& source) {
                return GivenNumber::of(value(sum.as<Sum>() + Sum{1} * EpilogueArray<Sum>(source, number)[where(at)]));
            },
        .first = number,
        .count = 1,
        .is_short = true};
}

/// activation(sum + bias[at.column]) + residual[at], of sums of type Sum.
template <class Sum>
static std::vector<EpilogueStep> layer(Activation activation, bool has_bias, bool has_residual) {
    std::vector<EpilogueStep> out;
    if (has_bias) out.push_back(with_argument<Sum>(0, [](const EpiloguePlace& at) { return at.column; }));
    out.push_back({.function = [activation](const GivenNumber& sum, const EpiloguePlace&, const EpilogueSource&) {
        return GivenNumber::of(activated<Sum>(activation, sum.as<Sum>()));
    }});
    if (has_residual) out.push_back(with_argument<Sum>(has_bias, [](const EpiloguePlace& at) { return at; }));
    return out;
}

ir::Type TensorKernel::type_of_c() const {
    if (type == ir::Type::I8) return ir::Type::I32;
    return c_is_f32 ? ir::Type::F32 : type;
}

EpilogueCode TensorKernel::code() const {
    if (epilogue) return epilogue;
    const bool is_of_integers = type == ir::Type::I8;
    const ir::Type sum = is_of_integers ? ir::Type::I32 : ir::Type::F32;
    const EpilogueParameter array{
        .name = {}, .type = type_of_c(), .is_array = true, .read = sum, .is_aligned = c_is_aligned};
    std::vector<EpilogueParameter> parameters;
    if (has_bias) {
        parameters.push_back(array);
        parameters.back().name = "bias", parameters.back().is_by_column = true;
    }
    if (has_residual) {
        parameters.push_back(array);
        parameters.back().name = "residual", parameters.back().is_by_place = true;
    }
    const auto steps = is_of_integers ? layer<std::int32_t> : layer<float>;
    return {sum, std::move(parameters), steps(activation, has_bias, has_residual)};
}

std::string TensorKernel::name() const {
    const char* const letters[] = {"n", "t"};
    std::string out = "gemm_tensor_core_";
    out += type == ir::Type::F32 ? "tf32" : type == ir::Type::I8 ? "s8" : type == ir::Type::F16 ? "f16" : "bf16";
    if (c_is_f32) out += "_f32";
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
    out += steps[int(step)];
    if (takes_turns) out += "_ping_pong";
    if (raster == Raster::hilbert && step != Step::Finish && step != Step::Scale) out += "_hilbert";
    return out;
}

KernelHandle TensorKernel::make() const {
    switch (type) {
        case ir::Type::F16: return c_is_f32 ? made_of_f16_to_f32(*this) : made_of_f16(*this);
        case ir::Type::BF16: return c_is_f32 ? made_of_bf16_to_f32(*this) : made_of_bf16(*this);
        case ir::Type::I8: return made_of_i8(*this);
        default: return made_of_tf32(*this);
    }
}

const KernelHandle& TensorKernel::handle() const { return Kernels<TensorKernel>::of(*this); }

}  // namespace ikat::stdlib
