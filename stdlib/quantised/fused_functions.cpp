// SPDX-License-Identifier: Apache-2.0
// The functions of fused.hpp by the names of formats.
#include <fmt/format.h>

#include "stdlib/quantised/fused.hpp"
#include "stdlib/quantised/product_settings.hpp"
#include "stdlib/spec/named_functions.hpp"

namespace ikat::stdlib {
namespace {

using runtime::Quantised;

constexpr NamedFunction::Setting norm_settings[] = {{"epsilon", "what is added under the root, such as 1e-5"}};

std::string_view format_name(Quantised format) { return runtime::find_info(format)->name; }
/// "q4_k" for equal formats, "q4_k_q6_k" for others.
std::string names_of(Quantised a, Quantised b) {
    return a == b ? std::string(format_name(a)) : fmt::format("{}_{}", format_name(a), format_name(b));
}

constexpr NamedFunction::Size fused_sizes[] = {{"tokens", 1}, {"rows", 4096}, {"columns", 4096}};

constexpr auto swiglu_family =
    family_of("gate_up_swiglu_FORMAT[_FORMAT]", "Y = silu(X Wg') (X Wu'), W of quantised weights",
              "Wg and Wu are rows x columns quantised weights of the first format and of the second, or of one. X is\n"
              "tokens x columns, and Y tokens x rows. X and Y are f32, f16 or bf16, of one type. Up to eight tokens\n"
              "are one launch; more are products on tensor cores. The formats are those of gemm_*.",
              product_settings, fused_sizes);

NamedFunction swiglu_function(Quantised gate, Quantised up) {
    NamedFunction out{.name = "gate_up_swiglu_" + names_of(gate, up), .family = &swiglu_family};
    out.formula =
        fmt::format("Y = silu(X Wg') (X Wu'), Wg of {} weights, Wu of {}", format_name(gate), format_name(up));
    out.call = "gate_up_swiglu(queue, Wg, Wu, X, Y)";
    out.arrays = {blocks_of(gate, "Wg", "rows columns"), blocks_of(up, "Wu", "rows columns"),
                  input("X", "tokens columns"), output("Y", "tokens rows")};
    out.run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings& settings) {
        gate_up_swiglu(queue, arrays[0], arrays[1], arrays[2], arrays[3], {.activations = activations_of(settings)});
    };
    // By the name that other systems have for it.
    if (gate == Quantised::Q4_K && up == gate) out.other_names = {"q4k_ffn_swiglu"};
    return out;
}

constexpr auto norm_family = family_of(
    "rmsnorm_gemv_FORMAT", "y = W rmsnorm(x), W of quantised weights",
    "W is rows x columns quantised weights, x is tokens x columns, and y tokens x rows; gamma has an element\n"
    "for each column. x and y are f32, f16 or bf16, of one type, gamma of any of these. The norm stays in the\n"
    "kernel, in f32. A launch is for up to eight tokens. The formats are those of gemm_*.",
    norm_settings, fused_sizes);

NamedFunction norm_function(Quantised format) {
    NamedFunction out{.name = fmt::format("rmsnorm_gemv_{}", format_name(format)), .family = &norm_family};
    out.formula = fmt::format("y = W (x / sqrt(mean of x^2 + epsilon) gamma), W of {} weights", format_name(format));
    out.call = "rmsnorm_gemv(queue, W, x, gamma, y, epsilon)";
    NamedFunction::Array gamma = input("gamma", "columns");
    gamma.is_of_any_type = true;
    out.arrays = {blocks_of(format, "W", "rows columns"), input("x", "tokens columns"), gamma,
                  output("y", "tokens rows")};
    out.run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings& settings) {
        rmsnorm_gemv(queue, arrays[0], arrays[1], arrays[2], arrays[3], settings.required("epsilon"));
    };
    return out;
}

constexpr NamedFunction::Size parts_sizes[] = {
    {"tokens", 1}, {"q_rows", 4096}, {"k_rows", 1024}, {"v_rows", 1024}, {"columns", 4096}};
constexpr auto parts_family =
    family_of("qkv_FORMAT[_FORMAT]", "Q = X Wq', K = X Wk', V = X Wv', W of quantised weights",
              "Wq and Wk are quantised weights of the first format, Wv of the second, or all of one. X is tokens x\n"
              "columns; X, Q, K and V are f32, f16 or bf16, of one type. Up to eight tokens are one launch; more are\n"
              "three products on tensor cores. The formats are those of gemm_*.",
              product_settings, parts_sizes);

NamedFunction parts_function(Quantised format, Quantised of_v) {
    NamedFunction out{.name = "qkv_" + names_of(format, of_v), .family = &parts_family};
    out.formula = fmt::format("Q = X Wq', K = X Wk', V = X Wv', Wq and Wk of {} weights, Wv of {}", format_name(format),
                              format_name(of_v));
    out.call = "gemm_parts(queue, X, {{Wq, Q}, {Wk, K}, {Wv, V}})";
    out.arrays = {blocks_of(format, "Wq", "q_rows columns"),
                  blocks_of(format, "Wk", "k_rows columns"),
                  blocks_of(of_v, "Wv", "v_rows columns"),
                  input("X", "tokens columns"),
                  output("Q", "tokens q_rows"),
                  output("K", "tokens k_rows"),
                  output("V", "tokens v_rows")};
    out.run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings& settings) {
        gemm_parts(queue, arrays[3], {{arrays[0], arrays[4]}, {arrays[1], arrays[5]}, {arrays[2], arrays[6]}},
                   {.activations = activations_of(settings)});
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> fused_functions() {
    std::vector<NamedFunction> out;
    const std::size_t count = std::size(runtime::quantised_formats);
    for (std::size_t a = 0; a < count; ++a) {
        out.push_back(norm_function(Quantised(a)));
        for (std::size_t b = 0; b < count; ++b) {
            out.push_back(swiglu_function(Quantised(a), Quantised(b)));
            out.push_back(parts_function(Quantised(a), Quantised(b)));
        }
    }
    return out;
}

}  // namespace ikat::stdlib
