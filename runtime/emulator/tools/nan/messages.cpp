// SPDX-License-Identifier: Apache-2.0
// What is said about a NaN or an infinity.
#include <fmt/format.h>

#include <cmath>

#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/tools/nan/nan.hpp"
#include "runtime/emulator/tools/nan/numbers.hpp"

namespace ikat::emulator::nans {

namespace {

/// With as many digits as tell it from all others of its type.
std::string text_of(Type type, std::uint64_t number) {
    return with_number(type, [&]<class T>() {
        if constexpr (is_small_float<T>)
            return fmt::format("{}", float(T::from_bits(decltype(T::bits)(number))));
        else if constexpr (std::is_same_v<T, float>)
            return fmt::format("{}", std::bit_cast<float>(std::uint32_t(number)));
        else if constexpr (std::is_same_v<T, double>)
            return fmt::format("{}", std::bit_cast<double>(number));
        else
            return fmt::format("{}", T(number));
    });
}

std::string_view name_of(double result) { return result != result ? "NaN" : result > 0 ? "inf" : "-inf"; }

/// What was computed.
std::string computed(const Found& found, std::string_view opcode) {
    std::array<std::string, 3> x;
    for (unsigned i = 0; i < found.count; ++i) {
        x[i] = text_of(found.from[i], found.operands[i]);
        if (i && x[i].starts_with('-')) x[i] = "(" + x[i] + ")";
    }
    switch (found.operation.of_ir().value_or(Op::Abs)) {
        case Op::Add: return fmt::format("{} + {}", x[0], x[1]);
        case Op::Sub: return fmt::format("{} - {}", x[0], x[1]);
        case Op::Mul: return fmt::format("{} * {}", x[0], x[1]);
        case Op::Fma: return fmt::format("{} * {} + {}", x[0], x[1], x[2]);
        case Op::Div: return fmt::format("{} / {}", x[0], x[1]);
        case Op::Rcp: return fmt::format("1 / {}", x[0]);
        case Op::Sqrt: return fmt::format("sqrt({})", x[0]);
        case Op::Rsqrt: return fmt::format("1 / sqrt({})", x[0]);
        case Op::Exp2: return fmt::format("exp2({})", x[0]);
        case Op::Log2: return fmt::format("log2({})", x[0]);
        case Op::Convert: return fmt::format("{}, converted to {},", x[0], ir::info(found.to).name);
        default: return fmt::format("{}({})", opcode, x[0]);
    }
}

}  // namespace

bool BlockNans::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    if (!found_ || (fault.code != FaultCode::MadeNan && fault.code != FaultCode::MadeInfinity)) return false;
    const Found& found = *found_;
    const std::string_view result = name_of(found.result), type = ir::info(found.to).name;
    const ptx::Module& module = block_.launch_state().module;
    if (found.is_of_matrices)
        diagnostic.message =
            fmt::format("a product of matrices is {} in {}, by {}: the numbers of a are up to {}, of b {}, of c {}",
                        result, type, by, std::bit_cast<double>(found.operands[0]),
                        std::bit_cast<double>(found.operands[1]), std::bit_cast<double>(found.operands[2]));
    else
        diagnostic.message = fmt::format("{} is {}{}, by {}", computed(found, module.text(found.instruction->spelling)),
                                         result, found.operation == Op::Convert ? "" : fmt::format(" in {}", type), by);
    return true;
}

}  // namespace ikat::emulator::nans
