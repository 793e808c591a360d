// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/pool/pool_object.hpp"

namespace ikat::runtime {
namespace {

[[noreturn]] void refuse(const Location& where, std::string message, std::string hint) {
    throw Error(Diagnostic{.where = where, .message = std::move(message), .hint = std::move(hint)});
}

std::string_view name_of(ir::Type type) { return type == ir::Type::Void ? "a struct" : info(type).name; }

}  // namespace

GraphParameter* GraphParameters::known(GraphParameter::Kind kind, std::string_view name, ir::Type type,
                                       std::uint32_t bytes) {
    const auto found = std::ranges::find(list_, name, &GraphParameter::name);
    if (found == list_.end()) return nullptr;
    if (found->kind != kind || found->type != type || found->bytes != bytes)
        refuse({}, fmt::format("a graph asks for parameter '{}' as two things", name),
               "a name is one number or one buffer, of one type");
    return &*found;
}

const GraphParameter& GraphParameters::ask(GraphParameter::Kind kind, std::string_view name, ir::Type type,
                                           std::uint64_t bits, std::uint32_t bytes) {
    if (const GraphParameter* const parameter = known(kind, name, type, bytes)) return *parameter;
    GraphParameter added{kind, std::string(name), type, bytes, bits};
    if (kind == GraphParameter::Kind::DeviceNumber) {
        auto memory = make_reference<MemoryBlock>(memory_, bytes, name);
        memory->keep();
        added.part = {std::move(memory), 0, bytes};
    }
    return list_.emplace_back(std::move(added));
}

const GraphParameter& GraphParameters::ask(std::string_view name, ir::Type type, std::uint32_t bytes,
                                           const BufferPart& part) {
    if (const GraphParameter* const parameter = known(GraphParameter::Kind::Buffer, name, type, bytes))
        return *parameter;
    if (part.memory) part.memory->keep();
    return list_.emplace_back(GraphParameter{GraphParameter::Kind::Buffer, std::string(name), type, bytes, 0, part});
}

GraphParameter& GraphParameters::find(std::string_view name, const Location& where) {
    const auto found = std::ranges::find(list_, name, &GraphParameter::name);
    if (found != list_.end()) return *found;
    std::vector<std::string> names;
    for (const GraphParameter& each : list_) names.push_back(each.name);
    refuse(where, fmt::format("the graph has no parameter '{}'", name),
           names.empty() ? "it was recorded without any: ask for them by its(name, value) in the function"
                         : fmt::format("it has: {}", fmt::join(names, ", ")));
}

void GraphParameters::set(GraphParameter& parameter, const HostScalar& number, const Location& where) {
    if (parameter.kind == GraphParameter::Kind::Buffer)
        refuse(where, fmt::format("parameter '{}' of a graph is a buffer, not a number", parameter.name),
               "give it a buffer or a slice of one");
    const auto bits = bits_of(number, parameter.type);
    if (!bits)
        refuse(where,
               fmt::format("{} does not fit parameter '{}' of a graph, which is {}", to_string(number), parameter.name,
                           name_of(parameter.type)),
               "give a number that its type can hold");
    parameter.bits = *bits;
}

void GraphParameters::set(GraphParameter& parameter, ir::Type type, std::uint32_t bytes, const BufferPart& part,
                          const Location& where) {
    if (parameter.kind != GraphParameter::Kind::Buffer)
        refuse(where, fmt::format("parameter '{}' of a graph is a number, not a buffer", parameter.name),
               "give it a number");
    if (parameter.type != type || parameter.bytes != bytes)
        refuse(where,
               fmt::format("parameter '{}' of a graph has elements of {}, not of {}", parameter.name,
                           name_of(parameter.type), name_of(type)),
               "give it a buffer of its element type");
    if (!part.is_there())
        refuse(where,
               fmt::format("parameter '{}' of a graph is given no buffer, or one that was freed", parameter.name),
               freed_hint);
    part.memory->keep();
    parameter.part = part;
}

}  // namespace ikat::runtime
