// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/text/layout.hpp"

#include <algorithm>

namespace ikat::ptx {

unsigned element_bytes(std::string_view type) {
    if (type.ends_with("x2")) return 2 * element_bytes(type.substr(0, type.size() - 2));
    const std::size_t digits = type.find_first_of("0123456789");
    unsigned bits = 0;
    if (digits != type.npos)
        for (const char c : type.substr(digits)) bits = bits * 10 + unsigned(c - '0');
    return bits / 8;
}

std::uint64_t variable_bytes(const Module& module, const Variable& variable, const Variable::Declarator& declarator) {
    std::uint64_t bytes = element_bytes(module.text(variable.type));
    const std::string_view vector = module.text(variable.vector);
    if (vector.size() > 2) bytes *= unsigned(vector[2] - '0');
    constexpr std::uint64_t max_bytes = std::uint64_t{1} << 40;  // far more than fits anywhere
    for (const std::int64_t extent : declarator.extents)
        if (__builtin_mul_overflow(bytes, extent < 0 ? 0 : std::uint64_t(extent), &bytes)) bytes = max_bytes;
    return std::min(bytes, max_bytes);
}

std::uint64_t variable_alignment(const Module& module, const Variable& variable) {
    if (variable.alignment) return variable.alignment;
    std::uint64_t bytes = std::max(1u, element_bytes(module.text(variable.type)));
    const std::string_view vector = module.text(variable.vector);
    return vector.size() > 2 ? bytes * unsigned(vector[2] - '0') : bytes;
}

std::vector<std::uint64_t> parameter_offsets(const Module& module, const Function& function) {
    std::vector<std::uint64_t> out;
    std::uint64_t end = 0;
    for (const Variable& parameter : function.parameters) {
        const std::uint64_t alignment = variable_alignment(module, parameter);
        out.push_back((end + alignment - 1) / alignment * alignment);
        end = out.back() + variable_bytes(module, parameter, parameter.declarators.front());
    }
    return out;
}

}  // namespace ikat::ptx
