// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/example.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "codegen/ir/op/evaluate.hpp"
#include "codegen/kernel/kernel_info.hpp"
#include "codegen/support/diagnostic.hpp"
#include "codegen/support/half.hpp"

namespace ikat::stdlib {
namespace {

template <class T, class Number>
std::vector<Number> numbers(std::span<const std::byte> bytes) {
    std::vector<Number> out(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < out.size(); ++i) {
        T element;
        std::memcpy(&element, &bytes[i * sizeof(T)], sizeof(T));
        out[i] = Number(element);
    }
    return out;
}

double rounded(double x, ir::Type type) {
    if (type == ir::Type::F16) return double(float(half(float(x))));
    if (type == ir::Type::BF16) return double(float(bfloat16(float(x))));
    return double(float(x));
}

}  // namespace

double Example::Expected::bound(std::size_t i, ir::Type type) const {
    // The rounding to the type: half a unit in the last place, which is constant below the smallest normal number.
    struct Rounding {
        double relative, absolute;
    };
    const Rounding rounding = type == ir::Type::F16    ? Rounding{0x1p-11, 0x1p-25}
                              : type == ir::Type::BF16 ? Rounding{0x1p-8, 0x1p-134}
                                                       : Rounding{0x1p-24, 0x1p-150};
    const double own = absolute.size() == 1 ? absolute[0] : absolute[i];
    if (!std::isfinite(wanted[i]) || (relative == 0 && own == 0)) return 0;
    return std::abs(wanted[i]) * (relative + rounding.relative) + own + rounding.absolute;
}

std::size_t Example::position(std::string_view name) const {
    const auto found = std::ranges::find(kernel_.parameters, name, &ir::Parameter::name);
    return std::size_t(found - kernel_.parameters.begin());
}

std::vector<float> Example::floats(std::size_t position) const {
    if (position >= arguments_.size()) return {};
    const auto& [type, is_number, bits, bytes] = arguments_[position];
    if (type == ir::Type::F16) return numbers<half, float>(bytes);
    if (type == ir::Type::BF16) return numbers<bfloat16, float>(bytes);
    return numbers<float, float>(bytes);
}

std::vector<float> Example::operator[](std::string_view name) const { return floats(position(name)); }

std::vector<float> Example::input(std::size_t i) const {
    for (std::size_t at = 0; at < arguments_.size(); ++at)
        if (kernel_.parameters[at].access == ir::Access::In && i-- == 0) return floats(at);
    return {};
}

float Example::real(std::size_t i) const {
    for (const Argument& argument : arguments_)
        if (argument.type == ir::Type::F32 && argument.is_number && i-- == 0)
            return std::bit_cast<float>(std::uint32_t(argument.bits));
    return 0;
}

std::vector<std::uint32_t> Example::words(std::string_view name) const {
    return numbers<std::uint32_t, std::uint32_t>(arguments_[position(name)].bytes);
}

std::vector<std::uint8_t> Example::bytes(std::string_view name) const {
    return numbers<std::uint8_t, std::uint8_t>(arguments_[position(name)].bytes);
}

std::string_view Example::name() const { return kernel_.name; }

std::uint32_t Example::number(std::string_view name) const { return std::uint32_t(arguments_[position(name)].bits); }
float Example::real(std::string_view name) const { return std::bit_cast<float>(number(name)); }

void Example::expect(std::string_view name, std::vector<double> wanted, double relative, std::vector<double> absolute) {
    expected_.push_back({position(name), std::move(wanted), relative, std::move(absolute)});
}

std::vector<double> Example::expect_rounded(std::string_view name, std::vector<double> wanted) {
    for (double& x : wanted) x = rounded(x, arguments_[position(name)].type);
    expect(name, wanted);
    return wanted;
}

}  // namespace ikat::stdlib
