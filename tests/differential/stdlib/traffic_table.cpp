// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/stdlib/traffic_table.hpp"

#include <algorithm>

#include "codegen/ast/ast.hpp"

namespace ikat::test {
namespace {

const Numbers usual{{"rows", 32},       {"columns", 1024},      {"batch", 1},
                    {"tokens", 32},     {"heads", 8},           {"head_dim", 128},
                    {"rotary", 128},    {"width", 1024},        {"cache_rows", 32},
                    {"table_rows", 32}, {"base", 10000},        {"sign", 1},
                    {"seed_low", 1},    {"seed_high", 2},       {"offset_low", 3},
                    {"offset_high", 4}, {"threshold", 1 << 30}, {"scale", 2},
                    {"low", 1},         {"range", 1},           {"mean", 0},
                    {"deviation", 1},   {"offsets", 1},         {"high", 1},
                    {"epsilon", 1e-5}};
const Numbers of_gemm{{"m", 30}, {"n", 70}, {"k", 20}};
const Numbers of_convolution{{"batch", 1},      {"channels", 3}, {"height", 8},   {"width", 9},
                             {"filters", 4},    {"kernel_h", 3}, {"kernel_w", 3}, {"stride_h", 1},
                             {"stride_w", 1},   {"pad_h", 1},    {"pad_w", 1},    {"dilation_h", 1},
                             {"dilation_w", 1}, {"groups", 1},   {"out_h", 8},    {"out_w", 9}};
constexpr double elements_of_arrays = 32 * 1024;

bool is_array(const ir::Parameter& parameter) { return parameter.access != ir::Access::Value; }

/// A parameter that is part of a matrix is called from_extent0, from_extent1 or from_pitch.
std::string role(const std::string& name) {
    return name.ends_with("_extent0")                               ? "rows"
           : name.ends_with("_extent1") || name.ends_with("_pitch") ? "columns"
                                                                    : name;
}

/// The elements of each array, by its parameter; 0 of a number.
std::vector<double> sizes(const stdlib::Entry& entry, const Numbers& numbers) {
    const KernelInfo& kernel = entry.info();
    std::vector<runtime::Argument> arguments;
    for (const ir::Parameter& parameter : kernel.parameters)
        arguments.push_back(
            {.type = parameter.type, .bits = is_array(parameter) ? 0 : std::uint64_t(numbers.at(parameter.name))});
    const stdlib::Call call(kernel, arguments);
    std::vector<double> out;
    for (std::uint32_t i = 0; i < kernel.parameters.size(); ++i) {
        const std::string& name = kernel.parameters[i].name;
        if (!is_array(kernel.parameters[i]))
            out.push_back(0);
        else if (kernel.view_at(i))
            out.push_back(double(call[name + "_extent0"]) * call[name + "_pitch"]);
        else
            out.push_back(call.elements(entry.recipe->sizes_of(*entry.variant), name).value_or(1));
    }
    return out;
}

Numbers numbers_of(const stdlib::Entry& entry, const Numbers& instead) {
    const auto& parameters = entry.info().parameters;
    const auto has = [&](const char* name) { return std::ranges::count(parameters, name, &ir::Parameter::name) != 0; };
    Numbers of = has("m") ? of_gemm : has("filters") ? of_convolution : usual, out;
    if (!has("m")) of["columns"] = std::min(of["columns"], double(entry.variant->max_columns));
    for (const auto& [name, number] : instead)
        if (!has("m")) of[name] = number;
    for (const ir::Parameter& parameter : parameters) {
        if (is_array(parameter)) continue;
        const auto found = of.find(role(parameter.name));
        out[parameter.name] = found != of.end() ? found->second : parameter.type == ir::Type::U32 ? 1 : 0.5;
    }
    // n is what is left: the blocks or the elements of the largest array.
    if (has("n") && !of.contains("n")) {
        const double max_elements = instead.contains("elements") ? instead.at("elements") : elements_of_arrays;
        out["n"] = double(std::uint64_t(max_elements / std::ranges::max(sizes(entry, out))));
    }
    return out;
}

/// With how many of its numbers the size of each array grows.
std::vector<int> dimensions(const stdlib::Entry& entry, const Numbers& numbers) {
    const std::vector<double> now = sizes(entry, numbers);
    std::vector<int> out(now.size());
    for (const auto& [name, number] : numbers) {
        Numbers twice = numbers;
        twice[name] = 2 * number;
        const std::vector<double> then = sizes(entry, twice);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += then[i] > now[i];
    }
    return out;
}

}  // namespace

TrafficRow traffic_row(const stdlib::Entry& entry, const Numbers& instead) {
    const auto& parameters = entry.info().parameters;
    const Numbers numbers = numbers_of(entry, instead);
    const std::vector<double> elements = sizes(entry, numbers);
    const std::vector<int> grows = dimensions(entry, numbers);
    const int max_growth = std::ranges::max(grows);
    TrafficRow out;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (is_array(parameters[i]))
            out.push_back({grows[i] == max_growth ? Given::Kind::Streamed : Given::Kind::Small, elements[i]});
        else
            out.push_back({Given::Kind::Number, numbers.at(parameters[i].name)});
    return out;
}

}  // namespace ikat::test
