// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/evaluate.hpp"

#include "codegen/ir/semantics.hpp"

namespace ikat::ir {
namespace {

/// The C++ type of a slot in an instruction at T.
template <class T, Slot slot>
using Argument = std::conditional_t<
    slot == Slot::Pred, bool,
    std::conditional_t<slot == Slot::U32, std::uint32_t, std::conditional_t<slot == Slot::Wide, sem::Wide<T>, T>>>;

template <class T, Op op>
Word apply(const auto& f, std::span<const Word> arguments) {
    constexpr Shape shape = info(op).shape;
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
        return to_word(f.template operator()<T>(from_word<Argument<T, shape.arguments[i]>>(arguments[i])...));
    }
    (std::make_index_sequence<shape.arity()>{});
}

Word convert(Type to, Type from, const FloatInfo& fp, Word x) {
    return with_type(to, [&]<class To>() -> Word {
        return with_type(from, [&]<class From>() -> Word {
            if constexpr (std::is_same_v<To, bool> || std::is_same_v<From, bool>)
                std::unreachable();
            else
                return to_word(sem::convert<To>(from_word<From>(x), fp.rounding, fp.sat));
        });
    });
}

// One case per row: an OP is its line of semantics.hpp, an EFFECT has no value of its own.
// clang-format off
#define EFFECT(name, ...) case Op::name: break;
#define OP(name, ...)                                                                                      \
    case Op::name:                                                                                         \
        return with_type(type, [&]<class T>() -> Word {                                                    \
            if constexpr (contains(info(Op::name).domain, type_of<T>)) return apply<T, Op::name>(sem::name, arguments); \
            else std::unreachable();                                                                       \
        });
// clang-format on

}  // namespace

Word evaluate(Op op, Type type, Type from, const FloatInfo& fp, std::span<const Word> arguments) {
    if (op == Op::Convert) return convert(type, from, fp, arguments[0]);
    if (op == Op::Bitcast) return arguments[0];
    switch (op) {
#include "codegen/ir/ops.def"
    }
    std::unreachable();  // a leaf or an effect has no operands to evaluate
}

bool folds(Op op, Type type, const FloatInfo& fp, std::span<const Word> arguments) {
    if (!is_pure(op) || info(op).shape.arity() == 0 || has(op, AlwaysApprox)) return false;
    if (fp.approx || fp.ftz || (fp.sat && op != Op::Convert)) return false;
    if (fp.rounding != Rounding::Nearest && op != Op::Convert) return false;
    const bool divides = (op == Op::Div || op == Op::Rem) && !is_float(type);
    return !(divides && arguments[1] == 0);
}

}  // namespace ikat::ir
