// SPDX-License-Identifier: Apache-2.0
// The arguments of a typed launch, checked by the C++ compiler against the kernel's parameters: one static_assert for
// each, and no template overloads to choose from, so that a mistake is one error line and the call.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "codegen/ir/op/evaluate.hpp"
#include "runtime/buffer.hpp"
#include "runtime/launch/launch.hpp"

namespace ikat {

// From dsl/kernel/kernel.hpp, which code with a kernel to launch has included.
template <class... P>
class Kernel;
template <class P>
struct ParameterTraits;
template <class S>
class Struct;  // dsl/memory/structs.hpp

}  // namespace ikat

namespace ikat::runtime {

/// The number as an argument of `type`: an integer for any type that can hold its value, a floating-point number
/// rounded to nearest for any floating-point type. Throws Error, naming parameter `position`, if it does not fit.
Argument adapt(const HostScalar& number, ir::Type type, const KernelInfo& kernel, std::size_t position,
               const Location& where);

/// The part of a buffer as an argument, with element type `element` in the kernel. Throws Error, naming parameter
/// `position`, if there is no buffer, or it has been freed.
Argument buffer_argument(ir::Type element, const BufferPart& part, const KernelInfo& kernel, std::size_t position,
                         const Location& where);

/// A tensor as the argument for parameter `position`, which is its map: extents and pitches in elements, as those of a
/// view. It begins `back` elements before the buffer; a kernel must not copy what is there. Throws Error, naming the
/// parameter, for one that has no map.
Argument map_argument(ir::Type element, const BufferPart& part, std::span<const std::uint64_t> extents,
                      std::span<const std::uint64_t> pitches, const KernelInfo& kernel, std::size_t position,
                      const Location& where, std::uint64_t back = 0);

/// An argument by the name of its parameter: arg("n", 300). It refers to what it is given.
template <class A>
struct NamedArgument {
    std::string_view name;
    A& value;
};
/// Arguments by name come after those in order, if there are any, and in any order themselves.
template <class A>
NamedArgument<std::remove_reference_t<A>> arg(std::string_view name, A&& value) {
    return {name, value};
}

namespace detail {

/// The arguments of a typed launch as they are put together, one for each parameter of the entry.
class ArgumentList {
public:
    ArgumentList(const KernelInfo& kernel, const Location& where);

    const KernelInfo& kernel() const { return *kernel_; }
    const Location& where() const { return *where_; }
    std::size_t size() const { return list_.size(); }
    void push_back(Argument&& argument) { list_.push_back(std::move(argument)); }
    /// A number, by the bits that its type has in memory.
    void add(ir::Type type, std::uint64_t bits) {
        Argument& its = list_.emplace_back();
        its.type = type, its.bits = bits;
    }
    std::vector<Argument> take() { return std::move(list_); }

    /// Whether each parameter has its argument, and all that the kernel is made without are passed over.
    bool is_complete() const;
    /// Whether the kernel is made without the parameter that is next.
    bool is_absent_next() const;
    /// The same; passes over it. Throws Error if it is given and not there, or there and not given.
    bool passes_absent(bool is_given);
    /// Throws Error: a parameter that the kernel is made without is given.
    [[noreturn]] void refuse_absent(std::string_view name) const;

private:
    const KernelInfo* kernel_;
    const Location* where_;
    std::vector<Argument> list_;
    std::size_t absent_ = 0;  // those that are passed over
};

template <class A>
inline constexpr bool is_named = false;
template <class A>
inline constexpr bool is_named<NamedArgument<A>> = true;
template <class A>
inline constexpr bool is_std_optional = false;
template <class A>
inline constexpr bool is_std_optional<std::optional<A>> = true;

/// Whether the arguments of a launch are its parameters as they lie in memory.
template <class... A>
inline constexpr bool are_bytes = false;
template <class First, class... A>
inline constexpr bool are_bytes<First, A...> = std::is_convertible_v<First, std::span<const std::byte>>;

template <class A>
inline constexpr bool is_number = (std::is_arithmetic_v<A> && !std::is_same_v<A, bool>) || is_small_float<A>;
template <class A>
inline constexpr bool is_floating = std::is_floating_point_v<A> || is_small_float<A>;

template <class A>
HostScalar host_scalar(A number) {
    if constexpr (is_floating<A>)
        return {.kind = HostScalar::Kind::Floating, .floating = static_cast<double>(number)};
    else if constexpr (std::is_signed_v<A>)
        return {.kind = HostScalar::Kind::Signed, .integer = static_cast<std::uint64_t>(std::int64_t{number})};
    else
        return {.kind = HostScalar::Kind::Unsigned, .integer = number};
}

/// The arguments for a parameter of a rank: buffers and slices for 1, views for 2 to 5.
template <class A>
struct Memory {
    static constexpr int rank = 0;
};
template <class T>
struct Memory<Buffer<T>> {
    static constexpr int rank = 1;
    static constexpr bool is_const = false;
    using element = T;
    static BufferPart part(const Buffer<T>& given) { return given.memory().whole(); }
};
template <class T>
struct Memory<BufferSlice<T>> {
    static constexpr int rank = 1;
    static constexpr bool is_const = std::is_const_v<T>;
    using element = std::remove_const_t<T>;
    static BufferPart part(const BufferSlice<T>& given) { return given.part(); }
};
template <class T, int r>
struct Memory<BufferView<T, r>> {
    static constexpr int rank = r;
    static constexpr bool is_const = std::is_const_v<T>;
    using element = std::remove_const_t<T>;
    static BufferPart part(const BufferView<T, r>& given) { return given.part(); }
};

/// Adds the arguments of `given` for a parameter of rank 1 to 5 with elements T, of type `element` in the kernel.
template <class T, int rank, bool written, class A>
void add_memory(ArgumentList& list, const A& given, ir::Type element) {
    using Given = std::remove_const_t<A>;
    using M = Memory<Given>;
    if constexpr (M::rank == 0) {
        static_assert(M::rank != 0, "launch: the kernel's parameter is In, Out or InOut: pass a Buffer");
    } else if constexpr (M::rank != rank) {
        static_assert(rank != 1, "launch: the kernel's parameter has rank 1: pass a Buffer or a slice of one");
        static_assert(rank != 2, "launch: the kernel's parameter has rank 2: pass buffer.view(rows, columns)");
        static_assert(rank != 3, "launch: the kernel's parameter has rank 3: pass buffer.view(planes, rows, columns)");
        static_assert(
            rank <= 3,
            "launch: the kernel's parameter has rank 4 or 5: pass buffer.view(...) with an extent for each dimension");
    } else if constexpr (!std::is_same_v<typename M::element, T>) {
        static_assert(std::is_same_v<typename M::element, T>,
                      "launch: the buffer's element type differs from that of the kernel's In, Out or InOut parameter");
    } else {
        constexpr bool constant = M::is_const || (is_buffer<Given> && std::is_const_v<A>);
        static_assert(!written || !constant, "launch: the kernel writes this buffer (Out, InOut), but it is const");
        list.push_back(buffer_argument(element, M::part(given), list.kernel(), list.size(), list.where()));
        if constexpr (rank > 1) {
            for (std::uint64_t number : given.extents()) list.add(ir::Type::U32, number);
            for (std::uint64_t number : given.pitches()) list.add(ir::Type::U32, number);
        }
    }
}

/// Adds the argument of `given` for a map of rank 1 to 5 with elements T.
template <class T, int rank, class A>
void add_map(ArgumentList& list, const A& given) {
    using M = Memory<std::remove_const_t<A>>;
    if constexpr (M::rank != rank) {
        static_assert(M::rank == rank,
                      "launch: the kernel's parameter is a TensorMap: pass a Buffer or a view of as many dimensions");
    } else if constexpr (!std::is_same_v<typename M::element, T>) {
        static_assert(std::is_same_v<typename M::element, T>,
                      "launch: the buffer's element type differs from that of the kernel's TensorMap parameter");
    } else {
        const BufferPart part = M::part(given);
        const ir::Type element = ir::type_of<T>;
        if constexpr (rank == 1) {
            const std::uint64_t count = part.bytes / sizeof(T);
            list.push_back(map_argument(element, part, {&count, 1}, {}, list.kernel(), list.size(), list.where()));
        } else {
            list.push_back(map_argument(element, part, given.extents(), given.pitches(), list.kernel(), list.size(),
                                        list.where()));
        }
    }
}

/// Adds the argument of `given` for a scalar parameter of type T.
template <class T, class A>
void add_scalar(ArgumentList& list, const A& given) {
    using Given = std::remove_const_t<A>;
    if constexpr ((is_pair<T> || is_number<T>)&&std::is_same_v<Given, T>) {
        list.add(ir::type_of<T>, ir::to_word(given));
    } else if constexpr (!is_number<Given>) {
        static_assert(is_number<Given>, "launch: the kernel's parameter is a scalar: pass a host number");
    } else if constexpr (is_floating<Given> && std::is_integral_v<T>) {
        static_assert(!std::is_integral_v<T>,
                      "launch: a floating-point number does not become an integer parameter: convert it");
    } else {
        list.push_back(adapt(host_scalar<Given>(given), ir::type_of<T>, list.kernel(), list.size(), list.where()));
    }
}

/// Adds the arguments of `given` for a parameter of type P: f32, In<float> ... A is const if the caller's object is.
template <class P, class A>
void add_argument(ArgumentList& list, A& given) {
    using Traits = ParameterTraits<P>;
    using Type = std::remove_const_t<A>;
    if constexpr (requires { typename Traits::optional; }) {
        if constexpr (std::is_same_v<Type, std::nullopt_t>) {
            list.passes_absent(false);
        } else if constexpr (is_std_optional<Type>) {
            if (!list.passes_absent(given.has_value())) add_argument<typename Traits::optional>(list, *given);
        } else {
            if (!list.passes_absent(true)) add_argument<typename Traits::optional>(list, given);
        }
    } else if constexpr (requires { typename Traits::structure; }) {
        using S = typename Traits::structure;
        constexpr bool same = std::is_same_v<std::remove_const_t<A>, S>;
        static_assert(same, "launch: the kernel's parameter is a Struct: pass an object of that struct");
        if constexpr (same) {
            const std::size_t first = list.size();
            const auto add = [&]<class F>(const F& field) {
                if constexpr (Memory<F>::rank >= 1)
                    add_memory<typename Memory<F>::element, Memory<F>::rank, !Memory<F>::is_const>(
                        list, field, Traits::types[list.size() - first].type);
                else
                    add_scalar<F>(list, field);
            };
            Traits::each_field(given, add);
        }
    } else if constexpr (requires { Traits::mapped_rank; }) {
        add_map<typename Traits::host_type, Traits::mapped_rank>(list, std::as_const(given));
    } else if constexpr (requires { Traits::bytes; }) {
        constexpr bool fits = std::is_trivially_copyable_v<A> && sizeof(A) == Traits::bytes;
        static_assert(fits,
                      "launch: the kernel's parameter is Bytes: pass a trivially copyable object of the same size");
        if constexpr (fits)
            list.push_back({.type = ir::Type::U8,
                            .raw = std::as_bytes(std::span<const A, 1>(&given, 1)),
                            .alignment = Traits::types[0].alignment});
    } else if constexpr (!requires { Traits::rank; }) {
        constexpr bool has_place = requires { Traits::rank; };
        static_assert(has_place, "launch: a kernel with More parameters takes its arguments by name: arg(\"x\", x)");
    } else if constexpr (Traits::rank == 0) {
        add_scalar<typename Traits::host_type>(list, given);
    } else {
        add_memory<typename Traits::host_type, Traits::rank, Traits::writes, A>(list, given, Traits::types[0].type);
    }
}

/// What is given for a parameter that is not known yet. It refers to `given`.
template <class A>
Given given(A& argument) {
    using Type = std::remove_const_t<A>;
    using M = Memory<Type>;
    if constexpr (std::is_same_v<Type, std::nullopt_t>) {
        return {.kind = Given::Kind::Nothing};
    } else if constexpr (is_std_optional<Type>) {
        return argument ? given(*argument) : Given{.kind = Given::Kind::Nothing};
    } else if constexpr (M::rank != 0) {
        using E = typename M::element;
        Given out{.kind = Given::Kind::Memory,
                  .element_bytes = sizeof(E),
                  .is_const = M::is_const || (is_buffer<Type> && std::is_const_v<A>),
                  .part = M::part(argument)};
        if constexpr (!std::is_class_v<E> || is_small_float<E> || is_pair<E>) out.element = ir::type_of<E>;
        if constexpr (M::rank > 1) out.extents = argument.extents(), out.pitches = argument.pitches();
        return out;
    } else if constexpr (is_number<Type>) {
        return {.kind = Given::Kind::Number, .number = host_scalar(argument)};
    } else {
        constexpr bool is_object = std::is_trivially_copyable_v<Type> && !std::is_pointer_v<Type>;
        static_assert(is_object,
                      "launch: a kernel takes buffers, views of them, numbers and trivially copyable objects");
        if constexpr (is_object)
            return {.kind = Given::Kind::Object, .object = std::as_bytes(std::span<const Type, 1>(&argument, 1))};
        else
            return {};
    }
}

/// Adds what is given for a parameter of that name, or for the next one: of a struct, for each of its fields.
template <class A>
void give(std::vector<Given>& list, A& argument, std::string_view name = {}) {
    using Type = std::remove_const_t<A>;
    if constexpr (is_named<Type>) {
        give(list, argument.value, argument.name);
    } else if constexpr (requires { ParameterTraits<Struct<Type>>::types; }) {
        using Traits = ParameterTraits<Struct<Type>>;
        std::size_t at = 0;  // of its parameters of the entry, of which a view has several
        Traits::each_field(argument, [&]<class F>(const F& field) {
            list.push_back(given(field));
            if (!name.empty()) list.back().name = std::string(name) + '_' + Traits::types[at].part;
            at += Memory<F>::rank > 1 ? 2 * std::size_t(Memory<F>::rank) : 1;
        });
    } else {
        list.push_back(given(argument));
        list.back().name = name;
    }
}

}  // namespace detail
}  // namespace ikat::runtime
