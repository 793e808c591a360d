// SPDX-License-Identifier: Apache-2.0
// quantised_gemm() and quantise() by the names of formats.
#include <fmt/format.h>

#include "stdlib/quantised/product_settings.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/spec/named_functions.hpp"

namespace ikat::stdlib {
namespace {

constexpr NamedFunction::Setting gemm_settings[] = {
    product_settings[0],
    {"schedule", "of tiles of more than eight tokens: stream_k; chosen if it is not set"},
    {"multiprocessors", "for how many stream_k divides tiles; those of the device if it is not set"},
};
QuantisedGemmOptions options_of(const FunctionSettings& settings) {
    constexpr std::string_view schedules[] = {"chosen", "stream_k"};
    constexpr GemmSchedule values[] = {GemmSchedule::chosen, GemmSchedule::stream_k};
    return {.activations = activations_of(settings),
            .schedule = values[settings.one_of("schedule", schedules)],
            .multiprocessors = settings.count("multiprocessors").value_or(0)};
}

constexpr NamedFunction::Size product_sizes[] = {{"tokens", 8}, {"rows", 4096}, {"columns", 4096}};

#define IKAT_ROW(format, name, weights, bytes) "|" #name
constexpr std::string_view formats = IKAT_QUANTISED_FORMATS(IKAT_ROW);
#undef IKAT_ROW

const NamedFunction::Family& product_family() {
    static const std::string form = fmt::format("gemm_({})", formats.substr(1));
    static const NamedFunction::Family out = family_of(
        form, "Y = X W', W of quantised weights",
        "W is rows x columns quantised weights, X is tokens x columns, and Y tokens x rows. X and Y are f32,\n"
        "f16 or bf16; Y has the type of X. A block of weights is read and decoded once for up to eight tokens; "
        "more\n"
        "are multiplied on tensor cores.",
        gemm_settings, product_sizes);
    return out;
}

/// Names that other systems have for it.
std::vector<std::string_view> other_names(runtime::Quantised format) {
    switch (format) {
        case runtime::Quantised::Q4_K: return {"q4k_gemm_fused", "q4k_inference"};
        case runtime::Quantised::Q5_K: return {"q5k_gemm"};
        case runtime::Quantised::Q6_K: return {"q6k_gemm"};
        default: return {};
    }
}

NamedFunction product_function(runtime::Quantised format) {
    const std::string_view name = runtime::find_info(format)->name;
    NamedFunction out{.name = fmt::format("gemm_{}", name), .family = &product_family()};
    out.formula = fmt::format("Y = X W', W of {} weights", name);
    out.call = "gemm(queue, W, X, Y)";
    out.arrays = {blocks_of(format, "W", "rows columns"), input("X", "tokens columns"), output("Y", "tokens rows")};
    out.run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings& settings) {
        quantised_gemm(queue, arrays[0], arrays[1], arrays[2], options_of(settings));
    };
    out.other_names = other_names(format);
    return out;
}

constexpr NamedFunction::Size quantiser_sizes[] = {{"rows", 4096}, {"columns", 4096}};
constexpr auto quantiser_family = family_of(
    "quantise_(q4_0|q8_0|mxfp4)", "W = blocks of the numbers x",
    "x is rows x columns of f32, f16 or bf16, and W gets as many weights, with the bytes of GGML's reference.\n"
    "A block that has a NaN or an infinity decodes to NaN, of mxfp4 to infinity.",
    {}, quantiser_sizes);

NamedFunction quantiser_function(runtime::Quantised format) {
    const std::string_view name = runtime::find_info(format)->name;
    NamedFunction out{.name = fmt::format("quantise_{}", name), .family = &quantiser_family};
    out.formula = fmt::format("W = {} weights of the numbers x", name);
    out.call = "quantise(queue, x, W)";
    out.arrays = {input("x", "rows columns"), blocks_of(format, "W", "rows columns", Access::Out)};
    out.run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings&) {
        quantise(queue, arrays[0], arrays[1]);
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> quantiser_functions() {
    using enum runtime::Quantised;
    return {quantiser_function(Q4_0), quantiser_function(Q8_0), quantiser_function(MXFP4)};
}

std::vector<NamedFunction> product_functions() {
    std::vector<NamedFunction> out;
    for (std::size_t format = 0; format < std::size(runtime::quantised_formats); ++format)
        out.push_back(product_function(runtime::Quantised(format)));
    return out;
}

}  // namespace ikat::stdlib
