// SPDX-License-Identifier: Apache-2.0
// The scalar operators and functions for values with lanes: Vec, Regs and trees over them, mixed with single values.
// Each applies the scalar one to each lane; dsl/lanes/lanes.hpp defines how and when the lanes are evaluated.
//
//     Regs<f32, 4> sums(0);
//     sums = fma(p, row.vec<4>(i), sums);
//     y.vec<4>(i) = select(sums < 0, 0, sums);
#pragma once
#include "dsl/lanes/lanes.hpp"
#include "dsl/values/bits.hpp"

namespace ikat {
namespace detail {

template <class V>
concept LaneOperand = Operand<V> || Lanewise<V>;
template <class... V>
concept HasLanes = (Lanewise<V> || ...);

}  // namespace detail

// ---- operators

#define IKAT_OPERATOR(symbol, Name)                                                             \
    namespace detail {                                                                          \
    struct Name##Lanes {                                                                        \
        template <class A, class B>                                                             \
        auto operator()(A&& a, B&& b) const {                                                   \
            return std::forward<A>(a) symbol std::forward<B>(b);                                \
        }                                                                                       \
    };                                                                                          \
    }                                                                                           \
    template <detail::LaneOperand A, detail::LaneOperand B>                                     \
    requires detail::HasLanes<A, B>                                                             \
    auto operator symbol(A&& a, B&& b) {                                                        \
        return detail::lanewise(detail::Name##Lanes{}, std::forward<A>(a), std::forward<B>(b)); \
    }
IKAT_OPERATOR(+, Add)
IKAT_OPERATOR(-, Sub)
IKAT_OPERATOR(*, Mul)
IKAT_OPERATOR(/, Div)
IKAT_OPERATOR(%, Rem)
IKAT_OPERATOR(&, And)
IKAT_OPERATOR(|, Or)
IKAT_OPERATOR(^, Xor)
IKAT_OPERATOR(<<, Shl)
IKAT_OPERATOR(>>, Shr)
IKAT_OPERATOR(==, Eq)
IKAT_OPERATOR(!=, Ne)
IKAT_OPERATOR(<, Lt)
IKAT_OPERATOR(<=, Le)
IKAT_OPERATOR(>, Gt)
IKAT_OPERATOR(>=, Ge)
#undef IKAT_OPERATOR

#define IKAT_OPERATOR(symbol, Name)                                         \
    namespace detail {                                                      \
    struct Name##Lanes {                                                    \
        template <class A>                                                  \
        auto operator()(A&& a) const {                                      \
            return symbol std::forward<A>(a);                               \
        }                                                                   \
    };                                                                      \
    }                                                                       \
    template <Lanewise A>                                                   \
    auto operator symbol(A&& a) {                                           \
        return detail::lanewise(detail::Name##Lanes{}, std::forward<A>(a)); \
    }
IKAT_OPERATOR(-, Neg)
IKAT_OPERATOR(~, Not)
IKAT_OPERATOR(!, LogicalNot)
#undef IKAT_OPERATOR

// ---- functions

#define IKAT_FUNCTION(name)                           \
    namespace detail {                                \
    struct name##_lanes {                             \
        template <class... V>                         \
        auto operator()(V&&... v) const {             \
            return ikat::name(std::forward<V>(v)...); \
        }                                             \
    };                                                \
    }                                                 \
    template <class... V>                             \
    requires detail::HasLanes<V...>                   \
    auto name(V&&... v) { return detail::lanewise(detail::name##_lanes{}, std::forward<V>(v)...); }
/// The condition is a pred, for all lanes or for each.
IKAT_FUNCTION(select)
/// The functions of values, lane by lane: of Vec, Regs and expressions of lanes, mixed with single values.
IKAT_FUNCTION(min)
IKAT_FUNCTION(max)
IKAT_FUNCTION(fma)
IKAT_FUNCTION(abs)
IKAT_FUNCTION(sqrt)
IKAT_FUNCTION(rcp)
IKAT_FUNCTION(mul_hi)
IKAT_FUNCTION(copysign)
IKAT_FUNCTION(is_finite)
IKAT_FUNCTION(is_infinite)
IKAT_FUNCTION(is_nan)
IKAT_FUNCTION(is_subnormal)
IKAT_FUNCTION(is_normal)
IKAT_FUNCTION(saturate)
IKAT_FUNCTION(lanes_equal)
IKAT_FUNCTION(lanes_not_equal)
IKAT_FUNCTION(lanes_less)
IKAT_FUNCTION(lanes_less_equal)
IKAT_FUNCTION(lanes_greater)
IKAT_FUNCTION(lanes_greater_equal)
IKAT_FUNCTION(pack)
// bits.hpp
IKAT_FUNCTION(popcount)
IKAT_FUNCTION(leading_zeros)
IKAT_FUNCTION(ffs)
IKAT_FUNCTION(highest_bit)
IKAT_FUNCTION(highest_bit_shift)
IKAT_FUNCTION(bit_reverse)
IKAT_FUNCTION(bit_extract)
IKAT_FUNCTION(bit_insert)
IKAT_FUNCTION(byte_permute)
IKAT_FUNCTION(funnel_left)
IKAT_FUNCTION(funnel_right)
IKAT_FUNCTION(dp4a)
IKAT_FUNCTION(dp2a_low)
IKAT_FUNCTION(dp2a_high)
IKAT_FUNCTION(sad)
IKAT_FUNCTION(add_sat)
IKAT_FUNCTION(sub_sat)
IKAT_FUNCTION(mul24)
IKAT_FUNCTION(mul24_hi)
IKAT_FUNCTION(mul_wide)
IKAT_FUNCTION(mad_wide)
namespace approx {
#define IKAT_APPROXIMATION(name)                              \
    struct name##_lanes {                                     \
        template <class... V>                                 \
        auto operator()(V&&... v) const {                     \
            return ikat::approx::name(std::forward<V>(v)...); \
        }                                                     \
    };                                                        \
    template <class... V>                                     \
    requires ikat::detail::HasLanes<V...>                     \
    auto name(V&&... v) { return ikat::detail::lanewise(name##_lanes{}, std::forward<V>(v)...); }
/// The approximations of values, lane by lane. A name that ends in _lanes is the function as an object.
IKAT_APPROXIMATION(sqrt)
IKAT_APPROXIMATION(rcp)
IKAT_APPROXIMATION(div)
IKAT_APPROXIMATION(exp2)
IKAT_APPROXIMATION(log2)
IKAT_APPROXIMATION(rsqrt)
IKAT_APPROXIMATION(sin)
IKAT_APPROXIMATION(cos)
IKAT_APPROXIMATION(tanh)
#undef IKAT_APPROXIMATION
}  // namespace approx
#undef IKAT_FUNCTION

// Functions with a type or a table as template argument: cast<f16>(v), lop3<0xe8>(a, b, c).

#define IKAT_FUNCTION(Given, name)                           \
    namespace detail {                                       \
    template <Given given>                                   \
    struct name##_given_lanes {                              \
        template <class... V>                                \
        auto operator()(V&&... v) const {                    \
            return ikat::name<given>(std::forward<V>(v)...); \
        }                                                    \
    };                                                       \
    }                                                        \
    template <Given given, class... V>                       \
    requires detail::HasLanes<V...>                          \
    auto name(V&&... v) { return detail::lanewise(detail::name##_given_lanes<given>{}, std::forward<V>(v)...); }
IKAT_FUNCTION(class, cast)
IKAT_FUNCTION(class, saturate_cast)
IKAT_FUNCTION(class, bit_cast)
IKAT_FUNCTION(class, pack)
IKAT_FUNCTION(unsigned, lop3)
#undef IKAT_FUNCTION

}  // namespace ikat
