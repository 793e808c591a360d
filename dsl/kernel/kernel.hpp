// SPDX-License-Identifier: Apache-2.0
// kernel("name", params("a", "b"), [](f32 a, In<float> b) { ... }): a lambda and the typed list of its parameters.
// Nothing runs until the kernel is used for the first time (a launch, .ast(), .check()): then the lambda is called
// once, and what it records is kept. Kernels may be defined at namespace scope.
// A host struct can be a parameter, too, as Struct<S> (dsl/memory/structs.hpp): in PTX it is one parameter per field,
// in order: p_scale, p_n. Fields may be structs: p_inner_x.
#pragma once
#include <array>
#include <boost/hana/accessors.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#include <boost/hana/unpack.hpp>
#include <span>

#include "dsl/memory/memory.hpp"
#include "dsl/memory/structs.hpp"
#include "dsl/memory/view.hpp"
#include "dsl/record/capture.hpp"

namespace ikat {

namespace detail {

constexpr std::size_t length_of(const char* text) {
    std::size_t out = 0;
    while (text[out]) ++out;
    return out;
}
/// "inner_x": the name of a field, prefixed with those of the fields that contain it.
template <class... Name>
struct FieldPath {
    static constexpr auto text = [] {
        std::array<char, (length_of(Name::c_str()) + ...) + sizeof...(Name)> out{};
        std::size_t at = 0;
        const auto add = [&](const char* name) {
            if (at > 0) out[at++] = '_';
            while (*name) out[at++] = *name++;
        };
        (add(Name::c_str()), ...);
        return out;
    }();
};

template <class E, class... Path>
constexpr trace::ParameterType pointer_field(int rank = 1) {
    return {.type = element_type<std::remove_const_t<E>>,
            .pointer = true,
            .direction = std::is_const_v<E> ? trace::Direction::Read : trace::Direction::ReadWrite,
            .rank = std::uint32_t(rank),
            .part = FieldPath<Path...>::text.data()};
}
/// Number n of the names that view_types() has.
template <int rank, std::size_t n>
struct ViewPart {
    static constexpr const char* c_str() { return view_types<rank>({})[n].part; }
};
/// The pointer of a view, its extents and pitches.
template <class View, class... Path, std::size_t first, std::size_t... n>
constexpr auto view_field(std::index_sequence<first, n...>) {
    constexpr int rank = View::view_rank;
    return std::array{
        pointer_field<typename View::view_element, Path...>(rank),
        trace::ParameterType{.type = ir::Type::U32, .part = FieldPath<Path..., ViewPart<rank, n>>::text.data()}...};
}

template <std::size_t... count>
constexpr auto joined(const std::array<trace::ParameterType, count>&... parts) {
    std::array<trace::ParameterType, (count + ... + 0)> out{};
    std::size_t at = 0;
    const auto add = [&](const auto& part) {
        for (const trace::ParameterType& each : part) out[at++] = each;
    };
    (add(parts), ...);
    return out;
}

/// The parameters of the PTX entry for a struct, or for a field with that name; none for a struct whose fields Hana
/// does not know.
template <class S, class... Path>
constexpr auto field_types() {
    if constexpr (hana::Struct<S>::value)
        return hana::unpack(hana::accessors<S>(), [](auto... field) {
            return joined(field_types<std::remove_cvref_t<decltype(hana::second(field)(std::declval<S>()))>, Path...,
                                      std::remove_cvref_t<decltype(hana::first(field))>>()...);
        });
    else if constexpr (sizeof...(Path) == 0)
        return std::array<trace::ParameterType, 0>{};
    else if constexpr (BufferHandle<S>)
        return std::array{pointer_field<typename S::buffer_element, Path...>()};
    else if constexpr (ViewHandle<S>)
        return view_field<S, Path...>(std::make_index_sequence<std::size_t(2 * S::view_rank)>{});
    else
        return std::array{trace::ParameterType{.type = ir::type_of<DeviceTypeOf<PassedAs<S>>>,
                                               .part = FieldPath<Path...>::text.data()}};
}

constexpr bool are_fields(std::span<const trace::ParameterType> types) {
    bool out = true;
    for (const trace::ParameterType& field : types) out &= ir::contains(ir::AnyNum | ir::Packed, field.type);
    return out;
}

}  // namespace detail

/// A type as a kernel parameter: what launches pass for it (`host_type`: the scalar, or the elements), and its
/// parameters of the PTX entry.
template <class P>
struct ParameterTraits {
    static constexpr bool valid = false;
};
template <class T>
struct ParameterTraits<Var<T>> {
    static constexpr bool valid = !std::is_same_v<T, bool> && !HostStruct<T>;
    static constexpr int rank = 0;
    using host_type = T;
    static constexpr trace::ParameterType types[] = {{.type = ir::type_of<T>}};
    static Var<T> make(const trace::Argument* argument) { return Var<T>(argument->variable); }
};
template <class T, trace::Direction direction, int r>
struct ParameterTraits<Pointer<T, direction, r>> {
    static constexpr bool valid = r >= 1 && r <= detail::max_dimensions, writes = direction != trace::Direction::Read;
    static constexpr int rank = r;
    using host_type = T;
    static constexpr trace::ParameterType pointer{
        .type = detail::element_type<T>, .pointer = true, .direction = direction, .rank = r};
    static constexpr auto types = detail::view_types<r>(pointer);
    static Pointer<T, direction, r> make(const trace::Argument* arguments) {
        if constexpr (r == 1)
            return Pointer<T, direction, r>(arguments->array);
        else
            return Pointer<T, direction, r>(arguments->array, detail::view_shape<r>(arguments));
    }
};

template <HostStruct S>
struct ParameterTraits<Struct<S>> {
    using structure = S;
    static constexpr auto types = detail::field_types<S>();
    static constexpr bool valid = detail::are_fields(types);
    static Struct<S> make(const trace::Argument* arguments) { return Struct<S>(arguments); }
    /// Calls f(field) for each field of a struct, in order; numbers have the type of their parameter.
    static void each_field(const S& given, auto&& f) {
        detail::each_number(given, [&]<class F>(const F& field) {
            if constexpr (BufferHandle<F> || ViewHandle<F>)
                f(field);
            else
                f(static_cast<DeviceTypeOf<detail::PassedAs<F>>>(field));
        });
    }
};

/// A parameter of raw bytes with an alignment, such as a tensor map of 128 bytes aligned to 64. A launch takes any
/// trivially copyable object of that size, unchanged.
template <std::uint32_t bytes, std::uint32_t alignment = 16>
class Bytes {
    static_assert(bytes >= 1 && bytes <= 4096, "a parameter has 1 to 4096 bytes");
    static_assert(alignment >= 1 && alignment <= 128 && (alignment & (alignment - 1)) == 0,
                  "a parameter's alignment is a power of two up to 128");

public:
    static constexpr std::uint32_t size = bytes;
    explicit Bytes(const trace::Array& parameter) : parameter_(parameter) {}

    /// The number at a byte offset, a host number that must be a multiple of the number's size.
    template <class T>
    auto read(std::int64_t offset, const trace::Where& where = trace::Where::current()) const {
        using R = typename detail::Named<T>::type;
        static_assert(ir::contains(ir::Storable, ir::type_of<R>), "read<T>() reads integers and floats");
        static_assert(sizeof(R) <= alignment, "read<T>(): the parameter's alignment is less than that of its numbers");
        return Leaf<R>(trace::raw_number(parameter_, ir::type_of<R>, offset, where));
    }
    /// The generic address of the first byte, a u64, for inline_ptx(): copies with a tensor map take it. The bytes can
    /// only be read.
    Leaf<std::uint64_t> address(const trace::Where& where = trace::Where::current()) const {
        return Leaf<std::uint64_t>(trace::raw_address(parameter_, where));
    }

private:
    trace::Array parameter_;
};
template <std::uint32_t count, std::uint32_t alignment>
struct ParameterTraits<Bytes<count, alignment>> {
    static constexpr bool valid = true;
    static constexpr std::uint32_t bytes = count;
    static constexpr trace::ParameterType types[] = {{.type = ir::Type::U8, .bytes = count, .alignment = alignment}};
    static Bytes<count, alignment> make(const trace::Argument* argument) {
        return Bytes<count, alignment>(argument->array);
    }
};

/// The names of a kernel's parameters, as messages, contracts and PTX show them.
template <std::size_t count>
struct ParameterNames {
    trace::DeclaredName names[count == 0 ? 1 : count];
};
template <class... Name>
ParameterNames<sizeof...(Name)> params(const Name&... names) {
    if constexpr (sizeof...(Name) == 0)
        return {{nullptr}};
    else
        return {{names...}};
}
/// In params(): a parameter of type Optional<P>, which the kernel has if the host says so (dsl/kernel/optional.hpp).
inline trace::DeclaredName only_if(bool is_there, const char* name) { return {name, is_there}; }

// Contracts: promises about arguments that every launch checks and the optimiser may use. A parameter is given by its
// name in params(), or by its position, from 0.
template <std::uint64_t n>
trace::Contract multiple_of(const trace::ParameterName& parameter) {
    static_assert(n > 0, "a divisor is at least 1");
    return {.kind = trace::Contract::Kind::MultipleOf, .parameter = parameter, .value = n};
}
template <std::uint64_t bytes>
trace::Contract aligned(const trace::ParameterName& parameter) {
    static_assert(bytes > 0 && (bytes & (bytes - 1)) == 0 && bytes <= 256, "an alignment is a power of two up to 256");
    return {.kind = trace::Contract::Kind::Aligned, .parameter = parameter, .value = bytes};
}
/// A buffer has as many elements as the product of these integers: at_least("x", "rows", "columns"); with <18, 32>, 18
/// for each 32 of that. It is checked only.
template <std::uint64_t count = 1, std::uint64_t per = 1>
trace::Contract at_least(const trace::ParameterName& buffer,
                         const std::convertible_to<trace::ParameterName> auto&... factors) {
    static_assert(sizeof...(factors) > 0, "at_least(buffer, n, ...) names the integers that say how many elements");
    static_assert(count > 0 && per > 0, "at_least<count, per>: count elements for each `per` of the product");
    return {.kind = trace::Contract::Kind::AtLeast,
            .parameter = buffer,
            .value = count,
            .per = per,
            .factors = {trace::ParameterName(factors)...}};
}

/// The kernel reads up to `width` elements beyond each edge of a buffer's view, or of a slice: halo<1>("x"), or a width
/// for each dimension: halo<0, 2>("x"). Without it, an access outside of a view is a finding of the emulator. It says
/// nothing of the buffer's size.
template <std::uint32_t... width>
trace::Contract halo(const trace::ParameterName& parameter) {
    static_assert(sizeof...(width) >= 1 && sizeof...(width) <= detail::max_dimensions,
                  "halo<width> or a width for each dimension of a view");
    return {.kind = trace::Contract::Kind::Halo, .parameter = parameter, .widths = {width...}};
}

/// A kernel with parameters of the types P. Copies share it.
template <class... P>
class Kernel {
public:
    /// The types of the lambda's parameters: decltype(hana::tuple_t<f32, In<float>, ...>).
    using parameters = decltype(boost::hana::tuple_t<P...>);
    static constexpr std::size_t arity = sizeof...(P);

    explicit Kernel(trace::KernelHandle handle) : handle_(std::move(handle)) {}

    const char* name() const { return handle_.name(); }
    /// The captured kernel. Throws Error with all mistakes in it.
    const ast::KernelTree& ast() const { return handle_.ast(); }
    /// Captures the kernel if that has not happened yet. Throws Error with all mistakes in it.
    void check() const { handle_.ast(); }
    /// The kernel without its types; it keeps ast() alive.
    const trace::KernelHandle& handle() const { return handle_; }
    operator const trace::KernelHandle&() const { return handle_; }

    // To be called when the kernel is defined, before its first use. (`requires` is a keyword.)

    /// Promises about the arguments: require(multiple_of<8>("k"), aligned<16>("x")).
    template <class... Contract>
    Kernel&& require(const Contract&... contracts) && {
        (handle_.require(contracts), ...);
        return std::move(*this);
    }
    /// Launches have at most `max_threads` threads a block; `min_blocks` blocks should fit on a multiprocessor at once.
    Kernel&& launch_bounds(std::uint32_t max_threads, std::uint32_t min_blocks = 0) && {
        handle_.launch_bounds(max_threads, min_blocks);
        return std::move(*this);
    }
    /// The grid is divided into clusters of this many blocks, 1 to 8, which run at the same time, wait for each other
    /// and reach each other's shared memory (dsl/threads/cluster.hpp). From sm_90 on.
    Kernel&& cluster(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) && {
        handle_.cluster(x, y, z);
        return std::move(*this);
    }
    Kernel&& max_registers(std::uint32_t count) && {
        handle_.max_registers(count);
        return std::move(*this);
    }
    /// A product of floats and the sum that uses it may become one fma, with one rounding instead of two, as with nvcc.
    /// contract() in dsl/threads/control.hpp does this for a part of a kernel.
    Kernel&& contract() && {
        handle_.contract();
        return std::move(*this);
    }

private:
    trace::KernelHandle handle_;
};

namespace detail {

template <class P>
inline constexpr bool is_optional = requires {
    typename ParameterTraits<P>::optional;
};
template <class P>
inline constexpr bool is_struct = false;
template <class S>
inline constexpr bool is_struct<Struct<S>> = true;
template <class P>
inline constexpr bool is_struct_variable = false;
template <HostStruct S>
inline constexpr bool is_struct_variable<Var<S>> = true;

/// The parameter types of a lambda or function as a Hana tuple of types.
template <class F>
struct Signature {
    static constexpr bool found = false, returns_void = true, by_value = true;
    static constexpr auto types = hana::tuple_t<>;
};
template <class R, class... A>
struct SignatureOf {
    static constexpr bool found = true, returns_void = std::is_void_v<R>;
    static constexpr bool by_value = (std::is_convertible_v<std::remove_cvref_t<A>, A> && ...);
    static constexpr auto types = hana::tuple_t<std::remove_cvref_t<A>...>;
};
template <class F, class R, bool n, class... A>
struct Signature<R (F::*)(A...) const noexcept(n)> : SignatureOf<R, A...> {};
template <class F, class R, bool n, class... A>
struct Signature<R (F::*)(A...) noexcept(n)> : SignatureOf<R, A...> {};
template <class R, bool n, class... A>
struct Signature<R (*)(A...) noexcept(n)> : SignatureOf<R, A...> {};

template <class F>
constexpr auto signature_of() {
    if constexpr (requires { &F::operator(); })
        return Signature<decltype(&F::operator())>{};
    else
        return Signature<F>{};
}

/// A parameter, made from the next arguments.
template <class P>
P make_parameter(const trace::Argument*& next) {
    const std::size_t count = is_optional<P> && next->absent ? 1 : std::size(ParameterTraits<P>::types);
    return ParameterTraits<P>::make(std::exchange(next, next + count));
}

/// Calls the body with its parameters. Braces evaluate left to right.
template <class... P>
struct Call {
    template <class F>
    static void run(F& body, [[maybe_unused]] const trace::Argument* next) {
        [[maybe_unused]] const Made<F> made{body, make_parameter<P>(next)...};
    }

private:
    template <class F>
    struct Made {
        Made(F& body, P... parameters) { body(std::move(parameters)...); }
    };
};

template <class F>
struct Lambda final : Counted {
    explicit Lambda(F&& f) : body(std::move(f)) {}
    F body;
};

template <class... P, class F>
trace::Code code_of(F body) {
    return {.lambda = make_reference<Lambda<F>>(std::move(body)),
            .run = [](Counted& lambda, const trace::Argument* arguments) {
                Call<P...>::run(static_cast<Lambda<F>&>(lambda).body, arguments);
            }};
}

template <class... P, class F>
auto make_kernel(const char* name, const trace::DeclaredName* names, F body, const trace::Where& where) {
    if constexpr ((ParameterTraits<P>::valid && ...)) {
        const trace::ParameterTypes list[] = {{std::data(ParameterTraits<P>::types),
                                               std::uint32_t(std::size(ParameterTraits<P>::types)), is_optional<P>}...,
                                              {}};
        return Kernel<P...>(
            trace::KernelHandle(name, names, list, sizeof...(P), code_of<P...>(std::move(body)), where));
    } else if constexpr (((HostStruct<P> || is_struct_variable<P>) || ...)) {
        static_assert(always_false<F>,
                      "a kernel takes a struct as Struct<Params>, and reads its fields as p[&Params::scale]");
        return Kernel<>(trace::KernelHandle(name, nullptr, nullptr, 0, {}, where));
    } else if constexpr ((is_struct<P> || ...)) {
        static_assert(always_false<F>,
                      "Struct<Params> is a parameter if BOOST_HANA_DEFINE_STRUCT defines Params, with integers, "
                      "floats, bool, slices and views of buffers, and structs of these");
        return Kernel<>(trace::KernelHandle(name, nullptr, nullptr, 0, {}, where));
    } else {
        static_assert(always_false<F>,
                      "a kernel's parameters are f32, u32 ... (any variable but pred), In<T>, Out<T> and InOut<T>");
        return Kernel<>(trace::KernelHandle(name, nullptr, nullptr, 0, {}, where));
    }
}

template <class F>
auto kernel(const char* name, const trace::DeclaredName* names, F body, const trace::Where& where) {
    constexpr auto signature = signature_of<F>();
    if constexpr (!signature.found) {
        static_assert(always_false<F>,
                      "a kernel's body is a lambda with all parameter types written out: [](f32 a, In<float> x), not "
                      "[](auto a, auto x)");
        return Kernel<>(trace::KernelHandle(name, nullptr, nullptr, 0, {}, where));
    } else if constexpr (!signature.by_value) {
        static_assert(always_false<F>, "a kernel takes its parameters by value: u32 n, not u32& n");
        return Kernel<>(trace::KernelHandle(name, nullptr, nullptr, 0, {}, where));
    } else {
        static_assert(signature.returns_void, "a kernel returns nothing: store its results through Out or InOut");
        return hana::unpack(signature.types, [&](auto... type) {
            return make_kernel<typename decltype(type)::type...>(name, names, std::move(body), where);
        });
    }
}

}  // namespace detail

/// A Kernel of a lambda whose parameters are those of the kernel, in order. `name` is that of the PTX entry; names of
/// the parameters come from params("a", "b"), else they are p0, p1, ... The lambda is called when the kernel is first
/// used.
template <class F>
auto kernel(const char* name, F body, const trace::Where& where = trace::Where::current()) {
    return detail::kernel(name, nullptr, std::move(body), where);
}
template <std::size_t count, class F>
auto kernel(const char* name, const ParameterNames<count>& names, F body,
            const trace::Where& where = trace::Where::current()) {
    constexpr auto signature = detail::signature_of<F>();
    static_assert(!signature.found || decltype(boost::hana::length(signature.types))::value == count,
                  "params(...) names as many parameters as the kernel's lambda has");
    return detail::kernel(name, names.names, std::move(body), where);
}

}  // namespace ikat
