// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/op/evaluate.hpp"

#include <algorithm>

#include "codegen/ir/op/effects.hpp"
#include "codegen/ir/op/semantics.hpp"

namespace ikat::ir {
namespace {

/// The C++ type of a slot in an instruction at T.
template <class T, Slot slot, class From = void>
constexpr auto argument() {
    if constexpr (slot == Slot::Pred)
        return bool{};
    else if constexpr (slot == Slot::U32)
        return std::uint32_t{};
    else if constexpr (slot == Slot::Wide)
        return sem::Wide<T>{};
    else if constexpr (slot == Slot::From)
        return From{};
    else if constexpr (slot == Slot::Sum)
        return sem::Sum<T, From>{};
    else if constexpr (slot == Slot::Lane)
        return sem::Lane<T>{};
    else
        return T{};
}

/// Whether an op works on each lane of packed operands.
constexpr bool is_lanewise(Op op) {
    const Shape& shape = info(op).shape;
    const auto at_type = [](Slot slot) { return slot == Slot::T || slot == Slot::None; };
    return info(op).attribute == Attribute::None && at_type(shape.result) &&
           std::ranges::all_of(shape.arguments, at_type);
}

/// What the instruction specifies besides its operands, and which of its results is wanted.
struct Asked {
    Form attribute;
    std::uint32_t result;
};

template <class T>
Word chosen(const T& value, const Asked&) {
    return to_word(value);
}
template <class T>
Word chosen(const sem::Carried<T>& both, const Asked& asked) {
    return asked.result == 0 ? to_word(both.value) : to_word(both.carry);
}

/// Calls the line of a row, which takes the op's mode or table last. A row with a second type has a line of two types.
template <Op op, const auto& f, class T, class... From>
Word apply(std::span<const Word> arguments, const Asked& asked) {
    constexpr OpInfo row = info(op);
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
        const auto call = [&](auto... last) {
            return chosen(
                f.template operator()<T, From...>(
                    from_word<decltype(argument<T, row.shape.arguments[i], From...>())>(arguments[i])..., last...),
                asked);
        };
        if constexpr (is_pair<T> && is_lanewise(op))
            return to_word(sem::lanewise<f>(from_word<T>(arguments[i])...));
        else if constexpr (row.attribute == Attribute::Mode || row.attribute == Attribute::Table)
            return call(std::uint32_t(asked.attribute));
        else if constexpr (row.attribute == Attribute::Address)
            return call(Word{asked.attribute});
        else
            return call();
    }
    (std::make_index_sequence<row.shape.arity()>{});
}

/// The same for a row that has a second type, `from`.
template <Op op, const auto& f, class T>
Word apply_from(Type from, std::span<const Word> arguments, const Asked& asked) {
    return with_type(from, [&]<class From>() -> Word {
        if constexpr (contains(info(op).from, type_of<From>))
            return apply<op, f, T, From>(arguments, asked);
        else
            std::unreachable();
    });
}

Word convert(Type to, Type from, const FloatInfo& fp, Word x) {
    return with_type(to, [&]<class To>() -> Word {
        return with_type(from, [&]<class From>() -> Word {
            if constexpr (std::is_same_v<To, bool> || std::is_same_v<From, bool> || is_pair<To> != is_pair<From>)
                std::unreachable();
            else
                return to_word(sem::convert<To>(from_word<From>(x), fp.rounding, fp.sat));
        });
    });
}

/// Two f32, the upper lane's first, as one packed value.
Word convert_pair(Type to, const FloatInfo& fp, std::span<const Word> x) {
    const Type each = lane(to);
    return convert(each, Type::F32, fp, x[0]) << bits(each) | convert(each, Type::F32, fp, x[1]);
}

// One case per row: an OP is its line of semantics.hpp, an EFFECT has no value of its own.
// clang-format off
#define EFFECT(name, ...) case Op::name: break;
#define OP(name, ...)                                                                                      \
    case Op::name:                                                                                         \
        return with_type(type, [&]<class T>() -> Word {                                                    \
            if constexpr (contains(info(Op::name).domain, type_of<T>)) { \
                if constexpr (info(Op::name).from != 0) return apply_from<Op::name, sem::name, T>(from, arguments, asked); \
                else return apply<Op::name, sem::name, T>(arguments, asked);                               \
            } else std::unreachable();                                                                     \
        });
// clang-format on

}  // namespace

Word evaluate(Op op, Type type, Type from, const FloatInfo& fp, std::span<const Word> arguments, Form attribute,
              std::uint32_t result) {
    const Asked asked{attribute, result};
    if (op == Op::Convert) return convert(type, from, fp, arguments[0]);
    if (op == Op::ConvertPair) return convert_pair(type, fp, arguments);
    if (op == Op::Bitcast) return arguments[0];
    if (op == Op::Unpack) op = result == 0 ? Op::Low : Op::High;
    switch (op) {
#include "codegen/ir/op/ops.def"
    }
    std::unreachable();  // a leaf or an effect has no operands to evaluate
}

bool folds(Op op, Type type, const FloatInfo& fp, std::span<const Word> arguments) {
    if (!effects(op).none() || info(op).shape.arity() == 0 || has(op, AlwaysApprox)) return false;
    if (fp.approx || fp.ftz || (fp.sat && op != Op::Convert)) return false;
    if (fp.rounding != Rounding::Nearest && op != Op::Convert) return false;
    const bool divides = (op == Op::Div || op == Op::Rem) && !is_float(type);
    return !(divides && arguments[1] == 0);
}

}  // namespace ikat::ir
