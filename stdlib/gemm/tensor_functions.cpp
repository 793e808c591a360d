// SPDX-License-Identifier: Apache-2.0
// gemm_tensor_core() by the names of its kernels.
#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"
#include "stdlib/spec/functions.hpp"

namespace ikat::stdlib {
namespace {

using Family = NamedFunction::Family;

constexpr std::string_view paths[] = {"chosen", "mma_sync", "wgmma"};
constexpr std::string_view schedules[] = {"chosen", "block_per_tile", "persistent", "split_k", "stream_k", "ping_pong"};
constexpr std::string_view rasters[] = {"grouped", "hilbert"};
constexpr std::string_view tiles[] = {"chosen", "small", "medium", "large"};

constexpr NamedFunction::Setting gemm_settings[] = {
    {"alpha", "a number, 1 if it is not set"},
    {"beta", "a number, 0 if it is not set: then C is not read"},
    {"path", "mma_sync, or wgmma, for sm_90a; chosen if it is not set"},
    {"tile", "of a block: small, medium or large; chosen if it is not set"},
    {"schedule", "of tiles: block_per_tile, persistent, split_k, stream_k or ping_pong; chosen if it is not set"},
    {"raster", "the order of tiles: grouped, or hilbert, along a Hilbert curve; grouped if it is not set"},
    {"parts", "into how many parts k is divided; chosen if it is not set"},
};
constexpr NamedFunction::Size gemm_sizes[] = {{"m", 4096}, {"n", 4096}, {"k", 4096}, {"planes", 0}};

constexpr Family gemm_family{
    .prefix = "gemm_tensor_core",
    .form = "gemm_tensor_core_TYPE[_f32][_nt|_tn|_tt][_bias][_relu|_gelu|_gelu_tanh|_silu][_residual]",
    .summary = "C = activation(alpha A B + beta C + bias) + residual on tensor cores",
    .document =
        "TYPE is f16, bf16, tf32 (arrays of f32) or s8 (arrays of i8, C is i32). With _f32 behind f16 or bf16,\n"
        "C, bias and residual are f32. t is for a factor that is stored by columns: of _nt, B is n x k.\n"
        "Without orders both are by rows. Any sizes; with `planes` there are several products. Integers have\n"
        "_relu or no activation. The function chooses its kernels by sizes, alignment and device.",
    .settings = gemm_settings,
    .sizes = gemm_sizes};

constexpr std::string_view activation_names[] = {"", "relu", "gelu", "gelu_tanh", "silu"};

std::string formula(const TensorKernel& is) {
    std::string out = "alpha A B + beta C";
    if (is.has_bias) out += " + bias";
    if (is.activation != Activation::none) out = fmt::format("{}({})", activation_names[int(is.activation)], out);
    if (is.has_residual) out += " + residual";
    return "C = " + out;
}

std::string call(const TensorKernel& is) {
    std::string options;
    const auto add = [&](bool is_there, const std::string& option) {
        if (is_there) options += (options.empty() ? "" : ", ") + option;
    };
    add(is.a == MatrixOrder::Columns, ".a = MatrixOrder::Columns");
    add(is.b == MatrixOrder::Columns, ".b = MatrixOrder::Columns");
    add(is.activation != Activation::none,
        fmt::format(".activation = Activation::{}", activation_names[int(is.activation)]));
    add(is.has_bias, ".bias = bias");
    add(is.has_residual, ".residual = residual");
    return fmt::format("gemm_tensor_core(queue, A, B, C{})", options.empty() ? "" : ", {" + options + "}");
}

void run_gemm(const TensorKernel& is, const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings& settings) {
    GemmOptions options{.alpha = settings.number("alpha").value_or(1), .beta = settings.number("beta").value_or(0)};
    options.a = is.a, options.b = is.b;
    options.activation = is.activation;
    options.path = GemmPath(settings.one_of("path", paths));
    options.tile = TileSize(settings.one_of("tile", tiles));
    options.schedule = GemmSchedule(settings.one_of("schedule", schedules));
    options.raster = Raster(settings.one_of("raster", rasters));
    options.parts = settings.count("parts").value_or(0);
    std::size_t next = 2;
    if (is.has_bias) options.bias = arrays[next++];
    if (is.has_residual) options.residual = arrays[next++];
    gemm_tensor_core(queue, arrays[0], arrays[1], arrays[next], options);
}

NamedFunction gemm_function(const TensorKernel& is) {
    const ir::Type of_c = is.type_of_c();
    const bool a = is.a == MatrixOrder::Rows, b = is.b == MatrixOrder::Rows;
    NamedFunction out{.name = is.name(), .family = &gemm_family, .formula = formula(is), .call = call(is)};
    out.arrays = {{"A", is.type, a ? OperandShape("[planes] m k") : OperandShape("[planes] k m")},
                  {"B", is.type, b ? OperandShape("[planes] k n") : OperandShape("[planes] n k")}};
    if (is.has_bias) out.arrays.push_back({"bias", of_c, "n"});
    if (is.has_residual) out.arrays.push_back({"residual", of_c, "[planes] m n"});
    out.arrays.push_back({"C", of_c, "[planes] m n", Access::Out, "beta"});
    const bool is_plain = a && b && is.activation == Activation::none && !is.has_bias && !is.has_residual;
    if (is_plain && !is.c_is_f32) out.other_names = {"gemm_tensor_core", "ffn_gemm"};
    out.run = [is](const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
        run_gemm(is, queue, arrays, settings);
    };
    return out;
}

/// Those of the types of this one.
void add_functions(std::vector<NamedFunction>& to, TensorKernel is) {
    using enum MatrixOrder;
    for (const MatrixOrder a : {Rows, Columns})
        for (const MatrixOrder b : {Rows, Columns})
            for (int activation = 0; activation < (is.type == ir::Type::I8 ? 2 : 5); ++activation)
                for (const bool has_bias : {false, true})
                    for (const bool has_residual : {false, true}) {
                        is.a = a, is.b = b, is.activation = Activation(activation);
                        is.has_bias = has_bias, is.has_residual = has_residual;
                        to.push_back(gemm_function(is));
                    }
}

}  // namespace

std::vector<NamedFunction> tensor_core_functions() {
    std::vector<NamedFunction> out;
    for (const ir::Type type : {ir::Type::F16, ir::Type::BF16, ir::Type::F32, ir::Type::I8}) {
        TensorKernel is{.type = type};
        add_functions(out, is);
        is.c_is_f32 = true;
        if (is.can_give_f32()) add_functions(out, is);
    }
    return out;
}

}  // namespace ikat::stdlib
