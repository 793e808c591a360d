// SPDX-License-Identifier: Apache-2.0
// The fields of host structs, as Hana knows them: their types, how many numbers they are, and an object for each, such
// as a variable, found by a pointer to member.
//
//     struct Body {
//         BOOST_HANA_DEFINE_STRUCT(Body, (float, x), (std::uint32_t, hits));
//     };
//     Fields<Body, Of>                 one Of::type<float>, one Of::type<std::uint32_t>
#pragma once
#include <boost/hana/accessors.hpp>
#include <boost/hana/at.hpp>
#include <boost/hana/concept/struct.hpp>
#include <boost/hana/define_struct.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "dsl/record/trace.hpp"
#include "dsl/values/value.hpp"

namespace ikat {

/// A struct whose fields BOOST_HANA_DEFINE_STRUCT lists.
template <class S>
concept HostStruct = boost::hana::Struct<S>::value;

/// A host handle of device memory, such as BufferSlice<const float>, with its element type. As a field of a struct
/// parameter it is an In<float>, or an InOut<float> if its elements are not const.
template <class B>
concept BufferHandle = requires {
    typename B::buffer_element;
};

/// ... or of an array with extents and pitches, such as BufferView<const float, 2>: an In<float, 2>.
template <class B>
concept ViewHandle = requires {
    typename B::view_element;
    B::view_rank;
};

namespace detail {

namespace hana = boost::hana;

template <class... F>
struct TypeList {};

/// The types of a struct's fields, in order; none if Hana does not know them.
template <class S>
struct FieldsFound {
    using type = TypeList<>;
};
template <HostStruct S>
struct FieldsFound<S> {
    using type = decltype(hana::unpack(hana::accessors<S>(), [](auto... field) {
        return TypeList<std::remove_cvref_t<decltype(hana::second(field)(std::declval<const S&>()))>...>{};
    }));
};
template <class S>
using FieldsOf = typename FieldsFound<S>::type;
template <class... F>
constexpr auto numbers_of(TypeList<F...>) {
    return std::index_sequence_for<F...>{};
}

/// How many numbers a struct holds, what alignment they need, and whether they are only numbers and bools, as variables
/// and memory require.
template <class F>
struct Numbers {
    static constexpr std::size_t count = 1, alignment = alignof(F);
    static constexpr bool only =
        ir::contains(ir::AnyNum | ir::Packed | ir::set(ir::Type::Pred), ir::type_of<DeviceTypeOf<F>>);
};
template <ViewHandle B>
struct Numbers<B> {
    static constexpr std::size_t count = 2 * B::view_rank, alignment = alignof(B);
    static constexpr bool only = false;
};
template <class... F>
struct Numbers<TypeList<F...>> {
    struct alignas(Numbers<F>::alignment...) Strictest {};
    static constexpr std::size_t count = (Numbers<F>::count + ... + 0), alignment = alignof(Strictest);
    static constexpr bool only = (Numbers<F>::only && ...);
};
template <HostStruct S>
struct Numbers<S> : Numbers<FieldsOf<S>> {};

/// The type of a field in parameters and in memory: a bool is a byte.
template <class T>
using PassedAs = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// Field number n of a host struct.
template <std::size_t n, HostStruct S>
const auto& field_of(const S& given) {
    return hana::second(hana::at_c<n>(hana::accessors<S>()))(given);
}

/// Calls f with each number in a host struct, in the order of its fields.
template <HostStruct S>
void each_number(const S& given, auto&& f) {
    hana::for_each(hana::accessors<S>(), [&](auto field) {
        const auto& value = hana::second(field)(given);
        if constexpr (HostStruct<std::remove_cvref_t<decltype(value)>>)
            each_number(value, f);
        else
            f(value);
    });
}

/// The representation of one field. The number distinguishes fields of the same type.
template <std::size_t number, class T>
struct Held {
    T it;
};

/// An Of::type<F> for each field F of a struct: Of determines how the struct is represented.
template <class S, class Of, class List = FieldsOf<S>, class = decltype(numbers_of(List{}))>
class Fields;
template <class S, class Of, class... F, std::size_t... number>
class Fields<S, Of, TypeList<F...>, std::index_sequence<number...>> : Held<number, typename Of::template type<F>>... {
public:
    using struct_type = S;

    /// Makes each by make(std::type_identity<F>, std::integral_constant<std::size_t, number>), in order.
    template <class Make>
    explicit Fields(std::in_place_t, Make&& make)
        : Held<number, typename Of::template type<F>>{
              make(std::type_identity<F>{}, std::integral_constant<std::size_t, number>{})}... {}

    template <std::size_t n>
    auto& at() {
        return held<n>(*this);
    }
    template <std::size_t n>
    const auto& at() const {
        return held<n>(*this);
    }
    /// Calls f(field, other's field) for each.
    template <class Other>
    void each_with(const Other& other, auto&& f) {
        (f(at<number>(), other.template at<number>()), ...);
    }

protected:
    template <class T>
    auto* find(T S::*member) {
        return find_in<typename Of::template type<T>>(*this, member);
    }
    template <class T>
    const auto* find(T S::*member) const {
        return find_in<const typename Of::template type<T>>(*this, member);
    }

private:
    template <std::size_t n, class T>
    static T& held(Held<n, T>& held) {
        return held.it;
    }
    template <std::size_t n, class T>
    static const T& held(const Held<n, T>& held) {
        return held.it;
    }

    /// Null for a member that Hana does not know.
    template <class Wanted, class Self, class T>
    static Wanted* find_in(Self& self, T S::*member) {
        static const S probe{};
        Wanted* found = nullptr;
        const auto look = [&](const auto& value, auto& held) {
            if constexpr (std::is_same_v<Wanted&, decltype(held)>)
                if (static_cast<const void*>(&value) == &(probe.*member)) found = &held;
        };
        (look(field_of<number>(probe), self.template at<number>()), ...);
        return found;
    }
};

/// The result of find(); throws Error if it is null.
auto& found(auto* field) {
    if (!field) trace::refuse_member();
    return *field;
}

}  // namespace detail
}  // namespace ikat
