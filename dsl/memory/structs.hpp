// SPDX-License-Identifier: Apache-2.0
// Host structs in a kernel, if Hana knows their fields: as parameters, as variables, and in memory.
//
//     struct Body {
//         BOOST_HANA_DEFINE_STRUCT(Body, (float, x), (float, speed), (std::uint32_t, hits));
//     };
//     [](InOut<Body> bodies, Struct<Params> p, u32 n) {
//         u32 i = global_id().x;
//         Var<Body> mine = bodies[i];                              // three variables
//         mine[&Body::x] += mine[&Body::speed] * p[&Params::step];
//         bodies[i] = mine;                                        // three stores
// A field is named by its pointer to member. It is what the struct is: a value of a parameter, a variable, or an
// element in memory; the same holds for the fields of a field that is a struct. In memory a struct has the host
// compiler's layout, so a buffer of structs is what the host uploads.
//
//     bodies[i][&Body::hits]      bodies + i * sizeof(Body) + offsetof(Body, hits)
#pragma once
#include <array>

#include "dsl/lanes/registers.hpp"
#include "dsl/memory/fields.hpp"
#include "dsl/memory/memory.hpp"
#include "dsl/memory/view.hpp"
#include "dsl/record/capture.hpp"
#include "dsl/values/math.hpp"

namespace ikat {

template <class T>
class Field;
template <class S>
class Struct;
template <HostStruct S, trace::Direction direction>
class StructPlace;

namespace detail {

// ---- the representation of a field

/// ... in a value: the value of a number, the buffer of a handle.
template <class F>
struct FieldValue {
    using type = Field<DeviceTypeOf<F>>;
};
template <HostStruct S>
struct FieldValue<S> {
    using type = Struct<S>;
};
template <BufferHandle B>
struct FieldValue<B> {
    using Element = typename B::buffer_element;
    using type = Pointer<std::remove_const_t<Element>,
                         std::is_const_v<Element> ? trace::Direction::Read : trace::Direction::ReadWrite>;
};
template <ViewHandle B>
struct FieldValue<B> {
    using Element = typename B::view_element;
    using type = Pointer<std::remove_const_t<Element>,
                         std::is_const_v<Element> ? trace::Direction::Read : trace::Direction::ReadWrite, B::view_rank>;
};
struct Values {
    template <class F>
    using type = typename FieldValue<F>::type;
};

struct Variables {
    template <class F>  // Var<S> rejects anything but numbers
    using type = Var<std::conditional_t<Numbers<F>::only, DeviceTypeOf<F>, float>>;
};

/// ... in memory: a bool is a byte there.
template <trace::Direction direction>
class FlagPlace : public HostGuard {
public:
    using device_type = bool;
    explicit FlagPlace(const trace::Slot& slot) : byte_(slot) {}
    FlagPlace(const FlagPlace&) = default;
    trace::Recorded recorded() const { return (Leaf<std::uint8_t>(byte_.recorded()) != 0).recorded(); }
    FlagPlace& operator=(const FlagPlace&) requires(false);
    void operator=(const Incoming<bool>& v) && {
        std::move(byte_) = Incoming<std::uint8_t>(cast<std::uint8_t>(Leaf<bool>(trace::settled(v.value()))), v.where());
    }

private:
    Subscript<std::uint8_t, direction> byte_;
};
template <class F, trace::Direction direction>
struct PlaceOf {
    using type = Subscript<DeviceTypeOf<F>, direction>;
};
template <trace::Direction direction>
struct PlaceOf<bool, direction> {
    using type = FlagPlace<direction>;
};
template <HostStruct S, trace::Direction direction>
struct PlaceOf<S, direction> {
    using type = StructPlace<S, direction>;
};
template <trace::Direction direction>
struct Places {
    template <class F>
    using type = typename PlaceOf<F, direction>::type;
};

/// The type that can be assigned to a variable or element V.
template <class V>
struct AssignedTo {
    using type = Incoming<typename V::device_type>;
};
template <class V>
requires requires { typename V::struct_type; }
struct AssignedTo<V> {
    using type = Incoming<typename V::struct_type>;
};

}  // namespace detail

// ---- values

/// A field of a struct value.
template <class T>
class Field : public Leaf<T> {
public:
    using Leaf<T>::Leaf;
    Field(const Field&) = default;
    IKAT_REFUSED(
        "the fields of a struct parameter, and of a name for an element, are read-only: copy one to a variable, f32 "
        "scale = p[&Params::scale], or all of them, Var<Params> mine = p")
    void operator=(detail::Anything) const;
};

/// A host struct as a value: a kernel's parameter, or the right side of an assignment. p[&S::field] is the field's
/// value; for a nested struct, p[&S::inner][&Inner::field].
template <class S>
class Struct : public detail::Fields<S, detail::Values> {
    using Base = detail::Fields<S, detail::Values>;

public:
    /// Made from the next parameters of the PTX entry.
    explicit Struct(const trace::Argument*& next)
        : Base(std::in_place, [&]<class F>(std::type_identity<F>, auto) { return of_parameter<F>(next); }) {}
    /// The current value of a variable or an element.
    template <class Of>
    explicit Struct(const detail::Fields<S, Of>& fields)
        : Base(std::in_place, [&]<class F, class Number>(std::type_identity<F>, Number) {
              const auto& field = fields.template at<Number::value>();
              if constexpr (HostStruct<F>)
                  return Struct<F>(field);
              else
                  return Field<DeviceTypeOf<F>>(trace::settled(field.recorded()));
          }) {}
    /// Constants.
    explicit Struct(const S& host)
        : Base(std::in_place, [&]<class F, class Number>(std::type_identity<F>, Number) {
              const F& field = detail::field_of<Number::value>(host);
              if constexpr (HostStruct<F>)
                  return Struct<F>(field);
              else if constexpr (is_pair<F>)
                  return Field<F>(pack(Leaf<typename F::lane_type>(detail::literal<typename F::lane_type>(field.x)),
                                       Leaf<typename F::lane_type>(detail::literal<typename F::lane_type>(field.y)))
                                      .recorded());
              else
                  return Field<DeviceTypeOf<F>>(detail::literal<DeviceTypeOf<F>>(field));
          }) {}
    Struct(const Struct&) = default;

    template <class T>
    auto operator[](T S::*member) const {
        if (const auto* field = this->find(member)) return *field;
        trace::Argument nothing[detail::Numbers<T>::count];
        for (trace::Argument& each : nothing) each.value = trace::no_field();
        const trace::Argument* next = nothing;
        return of_parameter<T>(next);
    }

private:
    template <ViewHandle F>
    static typename detail::Values::type<F> of_view(const trace::Argument* first) {
        return {first->array, detail::view_shape<F::view_rank>(first)};
    }
    template <class F>
    static typename detail::Values::type<F> of_parameter(const trace::Argument*& next) {
        if constexpr (HostStruct<F>)
            return Struct<F>(next);
        else if constexpr (BufferHandle<F>)
            return typename detail::Values::type<F>((next++)->array);
        else if constexpr (ViewHandle<F>)
            return of_view<F>(std::exchange(next, next + 2 * F::view_rank));
        else if constexpr (std::is_same_v<F, bool>)
            return Field<bool>((Leaf<std::uint8_t>((next++)->value) != 0).recorded());
        else
            return Field<DeviceTypeOf<F>>((next++)->value);
    }
};

/// A struct that is assigned to a variable or stored.
template <HostStruct S>
class Incoming<S> {
public:
    template <class V>
    requires(!std::same_as<std::remove_cvref_t<V>, Incoming>)
        Incoming(const V& v, const trace::Where& where = trace::Where::current())
        : value_(take(v)), where_(where) {}

    const Struct<S>& value() const { return value_; }
    const trace::Where& where() const { return where_; }

private:
    template <class V>
    static const auto& take(const V& v) {
        constexpr bool fits = std::is_same_v<V, S> || requires { requires std::same_as<typename V::struct_type, S>; };
        static_assert(fits,
                      "a struct is assigned from a struct of the same type: a variable, an element, a parameter, or a "
                      "host struct");
        static_assert(detail::Numbers<S>::only,
                      "a struct in a variable or in memory has fields that are numbers, bool, or structs of these");
        if constexpr (fits) {
            return v;
        } else {
            static const S none{};
            return none;
        }
    }

    Struct<S> value_;
    trace::Where where_;
};

// ---- variables

/// A device variable for each field: v[&S::field] is an f32, u32 ...
template <HostStruct S>
class Var<S> : public detail::Fields<S, detail::Variables> {
    static_assert(detail::Numbers<S>::only,
                  "a struct in a variable or in memory has fields that are numbers, bool, or structs of these");
    using Base = detail::Fields<S, detail::Variables>;

public:
    /// Declared and not assigned yet.
    Var(const trace::Where& where = trace::Where::current())
        : Base(std::in_place, [&]<class F>(std::type_identity<F>, auto) { return detail::Variables::type<F>(where); }) {
    }
    template <class V>
    requires(!std::same_as<std::remove_cvref_t<V>, Var> && !std::same_as<std::remove_cvref_t<V>, Incoming<S>>)
        Var(V&& v, const trace::Where& where = trace::Where::current())
        : Var(Incoming<S>(v, where)) {}
    Var(const Var& other, const trace::Where& where = trace::Where::current()) : Var(Incoming<S>(other, where)) {}
    Var(const Incoming<S>& v)
        : Base(std::in_place, [&]<class F, class Number>(std::type_identity<F>, Number) {
              return detail::Variables::type<F>(v.value().template at<Number::value>(), v.where());
          }) {}
    Var(Var&& other) noexcept = default;

    Var& operator=(const Var&) requires(false);
    template <class V>
    requires std::same_as<V, const Var> Var& operator=(V& other) { return *this = Incoming<S>(other, trace::Where()); }
    Var& operator=(const Incoming<S>& v) {
        this->each_with(v.value(), [&]<class Field>(Field& field, const auto& value) {
            field = typename detail::AssignedTo<Field>::type(value, v.where());
        });
        return *this;
    }
    friend void swap(Var& a, Var& b, const trace::Where& where = trace::Where::current()) {
        const Struct<S> before(a);
        a = Incoming<S>(b, where);
        b = Incoming<S>(before, where);
    }

    template <class T>
    auto& operator[](T S::*member) {
        return detail::found(this->find(member));
    }
    template <class T>
    const auto& operator[](T S::*member) const {
        return detail::found(this->find(member));
    }
};

template <class V>
requires requires { typename std::remove_cvref_t<V>::struct_type; }
Var(V&&)->Var<typename std::remove_cvref_t<V>::struct_type>;

template <HostStruct S>
struct detail::RegisterOf<S> {
    using type = Var<S>;
};

// ---- memory

/// bodies[i]: bodies[i][&Body::x] is a subscript like any other, bodies[i] = v stores all fields.
template <HostStruct S, trace::Direction direction>
class StructPlace : public detail::Fields<S, detail::Places<direction>> {
    using Base = detail::Fields<S, detail::Places<direction>>;

public:
    /// Made from the next slots, one per number.
    explicit StructPlace(const trace::Slot*& next)
        : Base(std::in_place, [&]<class F>(std::type_identity<F>, auto) {
              if constexpr (HostStruct<F>)
                  return StructPlace<F, direction>(next);
              else
                  return typename detail::Places<direction>::template type<F>(*next++);
          }) {}
    StructPlace(const StructPlace&) = default;

    StructPlace& operator=(const StructPlace&) requires(false);
    void operator=(const Incoming<S>& v) && {
        this->each_with(v.value(), [&]<class Field>(Field& field, const auto& value) {
            std::move(field) = typename detail::AssignedTo<Field>::type(value, v.where());
        });
    }
    /// t = v, where auto t = bodies[i].
    IKAT_REFUSED(
        "this name refers to a struct that was read from memory: declare it as Var<Body> to change it, or write "
        "bodies[i] = ... to store")
    void operator=(detail::Anything) &;

    template <class T>
    auto operator[](T S::*member) && {
        return detail::found(this->find(member));
    }
    /// t[&Body::x], where auto t = bodies[i]: a value.
    template <class T>
    auto operator[](T S::*member) const& {
        const auto& field = detail::found(this->find(member));
        if constexpr (HostStruct<T>)
            return Struct<T>(field);
        else
            return Field<DeviceTypeOf<T>>(trace::settled(field.recorded()));
    }
};

namespace detail {

/// The recorder's type for the elements of a buffer or an array; for structs, integers as wide as their alignment.
template <class E>
inline constexpr ir::Type element_type = ir::type_of<E>;
template <HostStruct S>
inline constexpr ir::Type element_type<S> = alignof(S) == 1   ? ir::Type::U8
                                            : alignof(S) == 2 ? ir::Type::U16
                                            : alignof(S) == 4 ? ir::Type::U32
                                                              : ir::Type::U64;

/// Element `index` of structs in memory.
template <class S, trace::Direction direction>
StructPlace<S, direction> struct_at(const trace::Array& array, const trace::Position& index) {
    static_assert(Numbers<S>::only,
                  "a struct in a variable or in memory has fields that are numbers, bool, or structs of these");
    static_assert(alignof(S) >= Numbers<S>::alignment,
                  "a struct in memory is not packed: each of its fields is read and stored at a multiple of its width; "
                  "leave out #pragma pack, or take the bytes as In<std::uint8_t>");
    constexpr std::size_t count = Numbers<S>::count;
    static const auto fields = [] {
        static const S probe{};
        std::array<trace::FieldPlace, count> out;
        std::size_t next = 0;
        each_number(probe, [&]<class F>(const F& field) {
            const auto offset = reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&probe);
            out[next++] = {ir::type_of<DeviceTypeOf<PassedAs<F>>>, std::uint32_t(offset)};
        });
        return out;
    }();
    trace::Slot slots[count];
    trace::subscript(array, index, {fields.data(), count, sizeof(S)}, slots);
    const trace::Slot* next = slots;
    return StructPlace<S, direction>(next);
}

/// Memory of a block or of a thread that holds structs.
template <HostStruct S, std::size_t... N>
class StructArray : public ArrayGuard {
    static_assert(sizeof...(N) >= 1 && sizeof...(N) <= 4, "an array has one to four extents");
    static_assert(((N > 0) && ...), "an extent is at least 1");

public:
    using element_type = S;
    static constexpr std::size_t rank = sizeof...(N), size = (N * ...);
    static constexpr std::uint64_t extents[] = {N...};

    StructArray(ir::Space space, const trace::Where& where)
        : array_(trace::declare_array(space, detail::element_type<S>,
                                      size * (sizeof(S) / ir::info(detail::element_type<S>).bytes), where)) {}
    StructArray(const StructArray&) = default;
    StructArray& operator=(const StructArray&) = delete;

    auto operator[](const Index& i) const requires(rank == 1) { return at(i); }
    auto operator[](const Index& i, const Index& j) const requires(rank == 2) { return at(i, j); }
    auto operator[](const Index& i, const Index& j, const Index& k) const requires(rank == 3) { return at(i, j, k); }
    auto operator[](const Index& i, const Index& j, const Index& k, const Index& l) const requires(rank == 4) {
        return at(i, j, k, l);
    }

private:
    auto at(const auto&... i) const {
        const trace::Position indices[] = {i.position()...};
        return struct_at<S, trace::Direction::ReadWrite>(array_, trace::flattened(indices, extents, rank));
    }

    trace::Array array_;
};

}  // namespace detail

/// A pointer parameter to structs.
template <HostStruct S, trace::Direction direction>
class Pointer<S, direction, 1> : public ArrayGuard {
public:
    using element_type = S;
    explicit Pointer(const trace::Array& array) : array_(array) {}
    template <trace::Direction other_direction>
    requires(direction == trace::Direction::Read && other_direction == trace::Direction::ReadWrite)
        Pointer(const Pointer<S, other_direction>& other)
        : array_(other.array()) {}

    const trace::Array& array() const { return array_; }
    StructPlace<S, direction> operator[](const Index& i) const {
        return detail::struct_at<S, direction>(array_, i.position());
    }
    /// The array from element `first` on.
    Pointer slice(const Index& first) const { return Pointer(trace::slice(array_, first.position())); }

private:
    trace::Array array_;  // indices count structs
};

template <HostStruct S, std::size_t... N>
class Shared<S, N...> : public detail::StructArray<S, N...> {
public:
    explicit Shared(const trace::Where& where = trace::Where::current())
        : detail::StructArray<S, N...>(ir::Space::Shared, where) {}
};
template <HostStruct S, std::size_t... N>
class Local<S, N...> : public detail::StructArray<S, N...> {
public:
    explicit Local(const trace::Where& where = trace::Where::current())
        : detail::StructArray<S, N...>(ir::Space::Local, where) {}
};

}  // namespace ikat
