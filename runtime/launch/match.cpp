// SPDX-License-Identifier: Apache-2.0
// Arguments of any types for the parameters of a kernel that is known by its KernelInfo alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "codegen/kernel/kernel_info.hpp"
#include "codegen/support/nearest.hpp"
#include "runtime/launch/typed_launch.hpp"

namespace ikat::runtime {
namespace {

class Matching {
public:
    Matching(const KernelInfo& kernel, const Location& where) : kernel_(kernel), where_(where) {}

    std::vector<Argument> run(std::span<const Given> given) {
        const auto named = std::ranges::find_if(given, [](const Given& each) { return !each.name.empty(); });
        const auto in_order = given.first(std::size_t(named - given.begin()));
        if (in_order.size() < given.size()) {
            add_by_name(in_order, given.subspan(in_order.size()));
            return list_.take();
        }
        for (const Given& each : given) {
            if (list_.is_complete()) refuse_count(given.size());
            add_or_pass(each);
        }
        if (!list_.is_complete()) refuse_count(given.size());
        return list_.take();
    }

private:
    using Kind = Given::Kind;

    void add_or_pass(const Given& given) {
        if (list_.is_absent_next() || given.kind == Kind::Nothing)
            list_.passes_absent(given.kind != Kind::Nothing);
        else
            add(given);
    }

    /// The rest by name, after those in order.
    void add_by_name(std::span<const Given> in_order, std::span<const Given> named) {
        for (const Given& each : in_order) {
            if (list_.is_complete()) refuse_count(in_order.size() + named.size());
            add_or_pass(each);
        }
        std::vector<const Given*> given(kernel_.parameters.size());
        for (const Given& each : named) {
            const auto at = position_of(each);
            if (!at) continue;
            if (*at < list_.size() || given[*at]) refuse_name(each.name, "is given twice", "give each argument once");
            given[*at] = &each;
        }
        while (!list_.is_complete()) {
            if (list_.is_absent_next()) {
                list_.passes_absent(false);
                continue;
            }
            const ir::Parameter& parameter = kernel_.parameters[list_.size()];
            const Given* const next = given[list_.size()];
            if (!next || next->kind == Kind::Nothing)
                refuse_name(parameter.name, "is not given", fmt::format("add arg(\"{}\", ...)", parameter.name));
            add(*next);
        }
    }

    /// The parameter of that name; nothing for one that the kernel is made without, if it is given nothing.
    std::optional<std::uint32_t> position_of(const Given& given) const {
        if (given.name.empty()) fail("an argument in order comes after one by name", "those in order come first");
        const std::vector<std::uint32_t> positions = heads();
        for (const std::uint32_t position : positions)
            if (kernel_.parameters[position].name == given.name) return position;
        if (std::ranges::find(kernel_.absent, given.name, &KernelInfo::Absent::name) != kernel_.absent.end()) {
            if (given.kind == Kind::Nothing) return {};
            list_.refuse_absent(given.name);
        }
        std::vector<std::string> known;
        for (const std::uint32_t position : positions) known.push_back(kernel_.parameters[position].name);
        const std::string_view meant = nearest(given.name, known);
        fail(fmt::format("there is no parameter '{}'", given.name),
             meant.empty() ? fmt::format("its parameters are {}", fmt::join(known, ", "))
                           : fmt::format("did you mean '{}'?", meant));
    }

    void add(const Given& given) {
        const auto at = std::uint32_t(list_.size());
        const ir::Parameter& parameter = kernel_.parameters[at];
        if (const TensorMapInfo* const map = kernel_.map_at(at)) return add_map(given, *map);
        if (parameter.access != ir::Access::Value) return add_memory(given, parameter);
        if (parameter.bytes) return add_bytes(given, parameter);
        const std::string is = fmt::format("is {}", info(parameter.type).name);
        if (given.kind != Kind::Number) refuse(is, "pass a host number");
        if (given.number.kind == HostScalar::Kind::Floating && !ir::is_float(parameter.type))
            refuse(is, "a floating-point number does not become an integer parameter: convert it");
        list_.push_back(adapt(given.number, parameter.type, kernel_, at, where_));
    }

    void add_memory(const Given& given, const ir::Parameter& parameter) {
        const auto at = std::uint32_t(list_.size());
        const KernelInfo::View* const view = kernel_.view_at(at);
        check_memory(given, parameter.element, view ? view->rank : 1);
        if (given.is_const && parameter.access != ir::Access::In)
            refuse("is written, and the buffer is const", "pass a buffer that is not const");
        list_.push_back(buffer_argument(parameter.element, given.part, kernel_, at, where_));
        if (!view) return;
        for (const std::uint64_t number : given.extents) list_.add(ir::Type::U32, number);
        for (const std::uint64_t number : given.pitches) list_.add(ir::Type::U32, number);
    }

    void add_map(const Given& given, const TensorMapInfo& map) {
        check_memory(given, map.element, map.rank);
        const std::uint64_t count = given.part.bytes / info(map.element).bytes;
        const std::span<const std::uint64_t> extents = map.rank == 1 ? std::span(&count, 1) : given.extents;
        list_.push_back(map_argument(map.element, given.part, extents, given.pitches, kernel_, list_.size(), where_));
    }

    void add_bytes(const Given& given, const ir::Parameter& parameter) {
        if (given.kind != Kind::Object || given.object.size() != parameter.bytes)
            refuse(fmt::format("is {} bytes", parameter.bytes), "pass a trivially copyable object of that size");
        list_.push_back({.type = ir::Type::U8, .raw = given.object, .alignment = parameter.alignment});
    }

    /// A buffer of structures is one of words to the kernel.
    void check_memory(const Given& given, ir::Type element, std::uint32_t rank) {
        constexpr std::string_view forms[] = {"a buffer or a slice of one", "buffer.view(rows, columns)",
                                              "buffer.view(planes, rows, columns)", "a view of four dimensions",
                                              "a view of five dimensions"};
        if (given.kind != Kind::Memory || std::max<std::size_t>(given.extents.size(), 1) != rank)
            refuse(fmt::format("is an array of rank {}", rank), fmt::format("pass {}", forms[rank - 1]));
        const bool is_same =
            given.element == ir::Type::Void ? given.element_bytes % info(element).bytes == 0 : given.element == element;
        if (!is_same)
            refuse(fmt::format("has elements of type {}", info(element).name),
                   given.element == ir::Type::Void
                       ? fmt::format("those of the buffer have {} bytes", given.element_bytes)
                       : fmt::format("those of the buffer are {}", info(given.element).name));
    }

    [[noreturn]] void fail(const std::string& message, std::string hint) const {
        throw Error(Diagnostic{.where = where_,
                               .message = fmt::format("launch of '{}': {}", kernel_.name, message),
                               .hint = std::move(hint)});
    }
    [[noreturn]] void refuse_name(std::string_view name, std::string_view what, std::string hint) const {
        fail(fmt::format("parameter '{}' {}", name, what), std::move(hint));
    }
    [[noreturn]] void refuse(const std::string& what, std::string hint) const {
        refuse_name(kernel_.parameters[list_.size()].name, what, std::move(hint));
    }

    /// The parameters of the kernel: of the entry's, a view's are one.
    std::vector<std::uint32_t> heads() const {
        std::vector<std::uint32_t> out;
        for (std::uint32_t i = 0; i < kernel_.parameters.size();) {
            out.push_back(i);
            const KernelInfo::View* const view = kernel_.view_at(i);
            i += view ? view->parameters() : 1;
        }
        return out;
    }

    [[noreturn]] void refuse_count(std::size_t given) const {
        std::string names;
        for (const std::uint32_t i : heads()) names += (i ? ", " : "") + kernel_.parameters[i].name;
        const std::size_t wanted = heads().size() + kernel_.absent.size();
        for (const KernelInfo::Absent& absent : kernel_.absent)
            names += fmt::format("{}{} (which it is made without)", names.empty() ? "" : ", ", absent.name);
        fail(fmt::format("it takes {} argument{}, not {}", wanted, wanted == 1 ? "" : "s", given),
             wanted ? "its parameters are " + names : "it has no parameters");
    }

    const KernelInfo& kernel_;
    const Location& where_;
    detail::ArgumentList list_{kernel_, where_};
};

}  // namespace

std::vector<Argument> match(const KernelInfo& kernel, std::span<const Given> given, const Location& where) {
    return Matching(kernel, where).run(given);
}

}  // namespace ikat::runtime
