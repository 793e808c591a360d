// SPDX-License-Identifier: Apache-2.0
// Attributes as text and back. Of a form, by its fields: words between dots, those that are left out excepted.
#include <algorithm>
#include <charconv>

#include "codegen/ir/op/forms/all.hpp"
#include "codegen/support/names.hpp"

namespace ikat::ir {

std::optional<Word> number(std::string_view text, Word max) {
    Word out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc{} || end != text.data() + text.size() || out > max) return {};
    return out;
}

// ---- words of their own making

/// "4", "4+16", "4-8"
std::string AddressForm::write(const AddressForm& form) {
    const std::string constant = form.constant ? std::to_string(form.constant) : "";
    return std::to_string(form.scale) + (form.constant > 0 ? "+" : "") + constant;
}
bool AddressForm::read(AddressForm& form, std::string_view text) {
    const std::size_t sign = std::min(text.find_first_of("+-"), text.size());
    const auto scale = number(text.substr(0, sign), ~std::uint32_t{0});
    const bool is_negative = sign < text.size() && text[sign] == '-';
    const auto constant =
        sign == text.size() ? Word{0} : number(text.substr(sign + 1), is_negative ? 0x80000000 : 0x7fffffff);
    if (!scale || !constant) return false;
    const auto bytes = std::int64_t(*constant);
    form = {std::uint32_t(*scale), std::int32_t(is_negative ? -bytes : bytes)};
    return true;
}

/// "3", "sync"
std::string BarrierForm::write(const BarrierForm& form) {
    return form.kind == Kind::All ? std::to_string(form.id) : std::string(names[std::size_t(form.kind)]);
}
bool BarrierForm::read(BarrierForm& form, std::string_view word) {
    const auto kind = find_name(names, word);
    const auto id = number(word, 255);
    if (kind) form.kind = Kind(*kind);
    if (id) form.id = std::uint8_t(*id);
    return kind || id;
}

/// "2", "all"
std::string GroupsForm::write(const GroupsForm& form) {
    return form.count == all_copies ? "all" : std::to_string(form.count);
}
bool GroupsForm::read(GroupsForm& form, std::string_view word) {
    const auto count = word == "all" ? std::optional(all_copies) : number(word, all_copies - 1);
    form.count = std::uint16_t(count.value_or(0));
    return count.has_value();
}

/// "m64n128k16"
std::string WgmmaForm::write(const WgmmaForm& form) {
    return "m64n" + std::to_string(form.n()) + 'k' + std::to_string(form.k());
}
/// Its k follows from the elements of A.
bool WgmmaForm::read(WgmmaForm& form, std::string_view word) {
    const std::size_t k = word.find('k');
    const auto n = word.starts_with("m64n") && k != word.npos ? number(word.substr(4, k - 4), 256) : std::nullopt;
    if (!n || *n % 8) return false;
    form.columns = std::uint8_t(*n / 8);
    return true;
}

namespace {

// ---- fields: whether the text may be without it, what it writes, if that has a name, and whether a word is read

template <class F, class M>
bool optional(const Named<F, M>& field) {
    return field.names[0].empty();
}
template <class F, class M>
std::optional<std::string> write(const Named<F, M>& field, const F& form) {
    const auto place = std::size_t(form.*field.member);
    return place < field.names.size() ? std::optional<std::string>(field.names[place]) : std::nullopt;
}
template <class F, class M>
bool read(const Named<F, M>& field, F& form, std::string_view word) {
    const auto place = find_name(field.names, word);
    if (place) form.*field.member = M(*place);
    return place.has_value();
}

template <class F, class M>
bool optional(const Number<F, M>& field) {
    return field.optional;
}
template <class F, class M>
std::optional<std::string> write(const Number<F, M>& field, const F& form) {
    const Word value = form.*field.member;
    if (field.optional && value == 0) return "";
    return std::string(field.before) + std::to_string(value) + std::string(field.after);
}
template <class F, class M>
bool read(const Number<F, M>& field, F& form, std::string_view word) {
    if (!word.starts_with(field.before) || !word.ends_with(field.after)) return false;
    word.remove_prefix(field.before.size());
    word.remove_suffix(std::min(field.after.size(), word.size()));
    const auto value = number(word, field.max);
    if (!value || (field.optional && *value == 0)) return false;
    form.*field.member = M(*value);
    return true;
}

template <class F, class M>
bool optional(const Flag<F, M>&) {
    return true;
}
template <class F, class M>
std::optional<std::string> write(const Flag<F, M>& field, const F& form) {
    return std::string(form.*field.member ? field.word : "");
}
template <class F, class M>
bool read(const Flag<F, M>& field, F& form, std::string_view word) {
    if (word != field.word) return false;
    form.*field.member = M(true);
    return true;
}

template <class F, class M>
bool optional(const Flags<F, M>&) {
    return true;
}
template <class F, class M>
std::optional<std::string> write(const Flags<F, M>& field, const F& form) {
    std::string out;
    for (std::size_t flag = 0; flag < field.names.size(); ++flag)
        if (form.*field.member >> flag & 1) (out += out.empty() ? "" : ".") += field.names[flag];
    return form.*field.member >> field.names.size() ? std::nullopt : std::optional(out);
}
template <class F, class M>
bool read(const Flags<F, M>& field, F& form, std::string_view word) {
    const auto flag = find_name(field.names, word);
    if (flag) form.*field.member = M(form.*field.member | 1 << *flag);
    return flag.has_value();
}
template <class Field>
constexpr bool repeats = false;
template <class F, class M>
constexpr bool repeats<Flags<F, M>> = true;

template <class F>
bool optional(const Spelled<F>&) {
    return false;
}
template <class F>
std::optional<std::string> write(const Spelled<F>& field, const F& form) {
    return field.write(form);
}
template <class F>
bool read(const Spelled<F>& field, F& form, std::string_view word) {
    return field.read(form, word);
}

// ---- all fields of a form

template <class F>
std::string text(const F& form) {
    if (!form.exists()) return {};
    std::string out;
    bool is_named = true;
    const auto add = [&](const auto& field) {
        const auto word = write(field, form);
        is_named &= word.has_value();
        if (word && !word->empty()) (out += out.empty() ? "" : ".") += *word;
    };
    std::apply([&](const auto&... field) { (add(field), ...); }, F::fields());
    return is_named ? out : std::string();
}

template <class F>
bool is_as_written(const Spelled<F>& field, const F& form, std::string_view word) {
    return field.write(form) == word;
}
bool is_as_written(const auto&, const auto&, std::string_view) { return true; }

/// Each word goes to the first field that takes it; one that must be there comes before those after it.
template <class F>
std::optional<F> named(std::string_view text) {
    F form = unpack<F>(Form());
    constexpr auto fields = F::fields();
    bool taken[std::tuple_size_v<decltype(fields)>] = {};
    std::string_view words[std::tuple_size_v<decltype(fields)>];
    while (!text.empty()) {
        const std::size_t dot = std::min(text.find('.'), text.size());
        const std::string_view word = text.substr(0, dot);
        text.remove_prefix(std::min(dot + 1, text.size()));
        bool done = false, stopped = false;
        std::size_t place = 0;
        const auto offer = [&](const auto& field) {
            bool& is_taken = taken[place];
            std::string_view& its = words[place++];
            if (done || stopped || (is_taken && !repeats<std::decay_t<decltype(field)>>)) return;
            done = read(field, form, word);
            is_taken |= done;
            if (done) its = word;
            stopped = !done && !optional(field);
        };
        std::apply([&](const auto&... field) { (offer(field), ...); }, fields);
        if (!done) return {};
    }
    std::size_t place = 0;
    const auto is_there = [&](const auto& field) {
        const bool is_taken = taken[place++];
        return is_taken ? is_as_written(field, form, words[place - 1]) : optional(field);
    };
    const bool complete = std::apply([&](const auto&... field) { return (is_there(field) & ...); }, fields);
    return complete && form.exists() ? std::optional(form) : std::nullopt;
}

template <class F>
std::string choices() {
    std::string out;
    const auto add = [&](const auto& field) {
        const std::size_t open = field.says.find("{}");
        out += field.says.substr(0, open);
        if (open == field.says.npos) return;
        if constexpr (requires { field.names; }) out += list_names(field.names);
        out += field.says.substr(open + 2);
    };
    std::apply([&](const auto&... field) { (add(field), ...); }, F::fields());
    return out;
}

std::string name_in(const auto& names, std::size_t place) {
    return place < std::size(names) ? std::string(names[place]) : std::string();
}

}  // namespace

std::string attribute_text(Op op, Form attribute) {
    switch (info(op).attribute) {
        case Attribute::Special: return name_in(special_register_names, attribute);
        case Attribute::Mode: return std::string(mode_name(op, attribute));
        case Attribute::Table: return std::to_string(Word{attribute});
        default:
            return with_form(op, attribute, std::string(), [&]<class F>(const F& form) {
                return pack(form) == attribute ? text(form) : std::string();
            });
    }
}

std::optional<Form> attribute_named(Op op, std::string_view text) {
    switch (info(op).attribute) {
        case Attribute::Special: return find_name(special_register_names, text);
        case Attribute::Mode: return mode_named(op, text);
        case Attribute::Table: return number(text, ~std::uint32_t{0});
        default:
            return with_form(op, Form(), std::optional<Form>(), [&]<class F>(const F&) -> std::optional<Form> {
                if (const auto form = named<F>(text)) return pack(*form);
                return {};
            });
    }
}

AttributeChoice attribute_choice(Op op) {
    switch (info(op).attribute) {
        case Attribute::Special: return {"special register", list_names(special_register_names)};
        case Attribute::Mode: {
            std::string modes(info(op).modes);
            std::ranges::replace(modes, '|', ' ');
            return {"mode", "modes are " + modes};
        }
        case Attribute::Table: return {"table", "it is a number, such as 202"};
        default:
            return with_form(op, Form(), AttributeChoice{}, []<class F>(const F&) {
                return AttributeChoice{F::noun, choices<F>()};
            });
    }
}

}  // namespace ikat::ir
