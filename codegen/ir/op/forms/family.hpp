// SPDX-License-Identifier: Apache-2.0
// Families: an instruction that PTX has in many forms is one row of the op table, and its attribute is a small struct,
// the form. All that depends on the form is in the struct, so that nobody else looks at what kind of form it is:
//
//     noun        what messages call it, "barrier"
//     fields()    its text in the IR, word by word: "load.2d.multicast"; printer, parser and messages come from it. A
//                 template, which takes the form itself: so files with kernels need not compile it
//     exists()    whether there is such a form; else it has no text
//     type()      the type of an instruction of this form; without a say, the one that it has
//     problem()   what else is wrong with the form in an instruction, as a sentence without a full stop
//     shape()     operands, results and ties
//     access()    an access to memory: what the form adds to what the row says of that operand
//     move()      changes the offset of an address, if the form has that; else MemoryInfo does
//     conduct()   effects, which threads take part and agree, what continues after it
//
// Each takes what the row says and returns it where the form does not matter. check_form() finds one that is missing.
#pragma once
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "codegen/ir/op/form.hpp"
#include "codegen/ir/op/memory.hpp"
#include "codegen/ir/op/op.hpp"

namespace ikat::ir {

// ---- fields: words of the text, between dots. `says`: what a message about the choices says of them; {} are the names

/// A member by its name. One without a name is left out.
template <class F, class Member>
struct Named {
    Member F::*member;
    std::span<const std::string_view> names;
    std::string_view says = "{}";
};
template <class F, class Member>
Named(Member F::*, std::span<const std::string_view>, std::string_view) -> Named<F, Member>;
template <class F, class Member>
Named(Member F::*, std::span<const std::string_view>) -> Named<F, Member>;

/// A member as a number up to `max`, between letters. If it is optional, 0 is left out.
template <class F, class Member>
struct Number {
    Member F::*member;
    std::string_view says;
    Word max = 0xff;
    std::string_view before = {}, after = {};
    bool optional = false;
};
template <class F, class Member, class... More>
Number(Member F::*, More...) -> Number<F, Member>;

/// A member that is 1 if the word is there.
template <class F, class Member>
struct Flag {
    Member F::*member;
    std::string_view word;
    std::string_view says;
};
template <class F, class Member>
Flag(Member F::*, std::string_view, std::string_view) -> Flag<F, Member>;

/// The bits of a member by their names.
template <class F, class Member>
struct Flags {
    Member F::*member;
    std::span<const std::string_view> names;
    std::string_view says = "{}";
};
template <class F, class Member>
Flags(Member F::*, std::span<const std::string_view>, std::string_view) -> Flags<F, Member>;

/// A word of its own making: written, and read, which says whether it is one.
template <class F>
struct Spelled {
    std::string (*write)(const F&);
    bool (*read)(F&, std::string_view word);
    std::string_view says;
};
template <class F>
Spelled(std::string (*)(const F&), bool (*)(F&, std::string_view), std::string_view) -> Spelled<F>;

/// All of a text as a number up to `max`.
std::optional<Word> number(std::string_view text, Word max);

// ---- what a form is

template <class F>
consteval bool check_form() {
    constexpr F form{};
    static_assert(
        requires { std::string_view(F::noun); }, "a form has a noun: static constexpr std::string_view");
    static_assert(
        requires { std::tuple_size<decltype(F::fields())>::value; },
        "a form has fields(): a tuple of Named, Number, Flag, Flags or Spelled");
    static_assert(
        requires {
            { form.exists() } -> std::same_as<bool>;
        },
        "a form has exists(): bool");
    static_assert(
        requires {
            { form.type(Type{}) } -> std::same_as<Type>;
        },
        "a form has type(Type): Type");
    static_assert(
        requires {
            { form.problem(Op{}, Type{}) } -> std::same_as<std::string_view>;
        },
        "a form has problem(Op, Type): std::string_view, empty if there is none");
    static_assert(
        requires {
            { form.shape(Shape{}) } -> std::same_as<Shape>;
        },
        "a form has shape(Shape): Shape");
    static_assert(
        requires {
            { form.access(MemoryAccess{}) } -> std::same_as<MemoryAccess>;
        },
        "a form has access(MemoryAccess): MemoryAccess");
    static_assert(
        requires(F changed) {
            { changed.move(Slot{}, std::int32_t{}) } -> std::same_as<bool>;
        },
        "a form has move(Slot, std::int32_t): bool, whether it has the offset of such an address");
    static_assert(
        requires {
            { form.conduct(Conduct{}) } -> std::same_as<Conduct>;
        },
        "a form has conduct(Conduct): Conduct");
    return pack(form) == pack(unpack<F>(pack(form)));
}

}  // namespace ikat::ir
