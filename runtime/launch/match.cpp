// SPDX-License-Identifier: Apache-2.0
// Arguments of any types for the parameters of a kernel that is known by its KernelInfo alone.
#include <fmt/format.h>

#include "codegen/kernel/kernel_info.hpp"
#include "runtime/launch/typed_launch.hpp"

namespace ikat::runtime {
namespace {

class Matching {
public:
    Matching(const KernelInfo& kernel, const Location& where) : kernel_(kernel), where_(where) {}

    std::vector<Argument> run(std::span<const Given> given) {
        for (const Given& each : given) {
            if (list_.size() == kernel_.parameters.size()) refuse_count(given.size());
            add(each);
        }
        if (list_.size() < kernel_.parameters.size()) refuse_count(given.size());
        return std::move(list_);
    }

private:
    using Kind = Given::Kind;

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
        for (const std::uint64_t number : given.extents) list_.push_back({.type = ir::Type::U32, .bits = number});
        for (const std::uint64_t number : given.pitches) list_.push_back({.type = ir::Type::U32, .bits = number});
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

    [[noreturn]] void refuse(const std::string& what, std::string hint) const {
        throw Error(Diagnostic{.where = where_,
                               .message = fmt::format("launch of '{}': parameter '{}' {}", kernel_.name,
                                                      kernel_.parameters[list_.size()].name, what),
                               .hint = std::move(hint)});
    }

    /// Views are one argument, and several parameters.
    [[noreturn]] void refuse_count(std::size_t given) const {
        std::size_t wanted = 0;
        std::string names;
        for (std::uint32_t i = 0; i < kernel_.parameters.size(); ++wanted) {
            names += (i ? ", " : "") + kernel_.parameters[i].name;
            const KernelInfo::View* const view = kernel_.view_at(i);
            i += view ? view->parameters() : 1;
        }
        throw Error(Diagnostic{.where = where_,
                               .message = fmt::format("launch of '{}': it takes {} argument{}, not {}", kernel_.name,
                                                      wanted, wanted == 1 ? "" : "s", given),
                               .hint = wanted ? "its parameters are " + names : "it has no parameters"});
    }

    const KernelInfo& kernel_;
    const Location& where_;
    std::vector<Argument> list_{};
};

}  // namespace

std::vector<Argument> match(const KernelInfo& kernel, std::span<const Given> given, const Location& where) {
    return Matching(kernel, where).run(given);
}

}  // namespace ikat::runtime
