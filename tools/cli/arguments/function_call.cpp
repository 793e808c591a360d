// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/arguments/function_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "codegen/support/diagnostic.hpp"

namespace ikat::cli {
namespace {

using stdlib::FunctionSettings;
using stdlib::NamedFunction;
using Kind = ParsedArgument::Kind;

struct NameAndText {
    std::string name, text;
};
NameAndText split_setting(const std::string& option, const std::string& given, const std::string& example) {
    const std::size_t equals = given.find('=');
    if (equals == given.npos || equals == 0)
        throw Error(fmt::format("{} '{}' is not NAME=VALUE", option, given), "such as " + example);
    return {given.substr(0, equals), given.substr(equals + 1)};
}

FunctionSettings parse_settings(const NamedFunction& function, const std::vector<std::string>& given) {
    FunctionSettings out;
    for (const std::string& each : given) {
        auto [name, text] =
            split_setting("--set", each, fmt::format("--set {}=1", function.names_of_settings().front()));
        out.set(std::move(name), std::move(text));
    }
    function.check(out);
    return out;
}

/// Of arrays without a type of their own.
constexpr ir::Type real_types[] = {ir::Type::F32, ir::Type::F16, ir::Type::BF16};

/// That of an array of any type.
ir::Type own_type(const ParsedArgument& given) {
    for (const ir::Type type : real_types)
        if (has_type(given, type)) return type;
    return given.type.type;
}

/// That of the arrays without a type, by the first of them that is given.
ir::Type common_type(const NamedFunction& function, const Arguments& arguments, std::size_t first) {
    for (std::size_t i = 0; i < function.arrays.size(); ++i) {
        const NamedFunction::Array& array = function.arrays[i];
        const ParsedArgument& given = arguments[arguments.original(first + i)];
        if (array.type != ir::Type::Void || array.is_of_any_type || given.kind != Kind::Buffer || given.is_made)
            continue;
        for (const ir::Type type : real_types)
            if (has_type(given, type)) return type;
        throw Error(fmt::format("argument '{}' has elements of {}, and '{}' of {} has f32, f16 or bf16", given.text,
                                given.type.name(), array.name, function.name),
                    "convert it; bf16 are bits in a .npy file: uint16");
    }
    return ir::Type::F32;
}

/// That the argument is an array of that type which the function takes there.
void check_array(const NamedFunction& function, const NamedFunction::Array& array, ir::Type of_elements,
                 const ParsedArgument& given, const ParsedArgument& original) {
    const std::string what = fmt::format("argument '{}'", given.text);
    const std::string_view type = info(of_elements).name;
    const std::string shape = array.shape_text();
    if (original.kind != Kind::Buffer)
        throw Error(fmt::format("{} is not an array, and '{}' of {} is one", what, array.name, function.name),
                    fmt::format("it is {}, {}: {}[]:@file.npy", type, shape, type));
    if (given.offset > 0)
        throw Error(fmt::format("{} is a part of a buffer, which has no shape", what),
                    "the arrays of functions are whole buffers: &0");
    if (original.is_made && original.shape.empty() && array.access != stdlib::Access::Out)
        throw Error(fmt::format("{} has no contents, and '{}' of {} is read", what, array.name, function.name),
                    fmt::format("give it {}, {}: {}[]:@file.npy", type, shape, type));
    if (original.is_made && array.is_of_any_type)
        throw Error(fmt::format("{} has no type, and '{}' of {} may have any", what, array.name, function.name),
                    "write f16[300x250]=>FILE, with the type and the shape that it is to have");
    if (original.is_made || array.is_of_any_type || has_type(original, of_elements)) return;
    const bool has_others = function.family->form.contains("TYPE");
    throw Error(fmt::format("{} has elements of {}, and '{}' of {} has {}", what, original.type.name(), array.name,
                            function.name, type),
                array.blocks.name.empty()
                    ? fmt::format("convert it{}; bf16 are bits in a .npy file: uint16",
                                  has_others ? fmt::format(", or take another TYPE of {}", function.family->form) : "")
                    : fmt::format("it holds {}: {}", array.blocks.name, shape));
}

/// That an output that is read, too, has contents.
void check_read(const NamedFunction& function, const NamedFunction::Array& array, const ParsedArgument& given,
                const FunctionSettings& settings) {
    if (array.read_if.empty() || settings.number(array.read_if).value_or(0) == 0 || !given.is_made) return;
    throw Error(fmt::format("argument '{}' has no contents, and '{}' of {} is read where {} is not 0", given.text,
                            array.name, function.name, array.read_if),
                "give it contents: c.npy=>new.npy");
}

std::string names_of_arrays(const NamedFunction& function) {
    std::string out;
    for (const NamedFunction::Array& array : function.arrays)
        out += fmt::format("{}{}", out.empty() ? "" : ", ", array.name);
    return out;
}

std::uint64_t parse_size(const std::string& name, const std::string& text) {
    std::uint64_t out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || out >> 32)
        throw Error(fmt::format("--size {}={} is not a number below 2^32", name, text), "such as --size m=4096");
    return out;
}

stdlib::NamedExtents parse_sizes(const std::vector<std::string>& given) {
    stdlib::NamedExtents out;
    for (const std::string& each : given) {
        const auto [name, text] = split_setting("--size", each, "--size m=4096");
        out[name] = parse_size(name, text);
    }
    return out;
}

/// Of the arrays, as `--type f16` and `--type x=f16` say.
std::vector<ir::Type> parse_types(const NamedFunction& function, const std::vector<std::string>& given) {
    std::vector<ir::Type> out;
    for (const NamedFunction::Array& array : function.arrays) out.push_back(array.type);
    for (const std::string& each : given) {
        const std::size_t equals = each.find('=');
        const std::string name = each.substr(0, equals == each.npos ? 0 : equals);
        const std::string text = each.substr(equals == each.npos ? 0 : equals + 1);
        const auto type = std::ranges::find(real_types, text, [](ir::Type real) { return info(real).name; });
        if (type == std::end(real_types))
            throw Error(fmt::format("--type {}: '{}' is not f32, f16 or bf16", each, text),
                        "such as --type f16, or --type x=f16 for one array");
        bool is_known = false;
        for (std::size_t i = 0; i < out.size(); ++i) {
            const NamedFunction::Array& array = function.arrays[i];
            const bool is_meant = array.type == ir::Type::Void && array.is_of_any_type != name.empty() &&
                                  (name.empty() || name == array.name);
            if (is_meant) out[i] = *type, is_known = true;
        }
        if (!is_known)
            throw Error(fmt::format("--type {}: '{}' has no such arrays", each, function.name), signature(function));
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
        const NamedFunction::Array& array = function.arrays[i];
        if (out[i] == ir::Type::Void && array.is_of_any_type)
            throw Error(fmt::format("'{}' of {} may have any type", array.name, function.name),
                        fmt::format("--type {}=f32, f16 or bf16", array.name));
        if (out[i] == ir::Type::Void) out[i] = ir::Type::F32;
    }
    return out;
}

/// A queue whose errors say no line: there is none on a command line.
runtime::Queue queue_of(const runtime::Recorder& recorder) { return {recorder, std::source_location{}}; }

}  // namespace

FunctionCall::FunctionCall(const NamedFunction& function, const std::vector<std::string>& settings,
                           Arguments& arguments, std::size_t first, std::size_t count)
    : function_(&function), settings_(parse_settings(function, settings)), first_(first) {
    if (count != function.arrays.size())
        throw Error(fmt::format("'{}' takes {} arguments, not {}", function.name, function.arrays.size(), count),
                    fmt::format("its parameters are {}; -o FILE is an output at the end", names_of_arrays(function)));
    types_ = types_of(arguments, first);
    std::vector<std::optional<std::vector<std::uint64_t>>> shapes(count);
    for (std::size_t i = 0; i < count; ++i) {
        const ParsedArgument& given = arguments[first + i];
        const ParsedArgument& original = arguments[arguments.original(first + i)];
        check_array(function, function.arrays[i], types_[i], given, original);
        check_read(function, function.arrays[i], given, settings_);
        if (!given.is_made) shapes[i] = original.shape;
    }
    const stdlib::NamedExtents extents = function.extents(shapes, settings_);
    for (std::size_t i = 0; i < count; ++i)
        if (!shapes[i]) arguments.make(first + i, types_[i], function.shape(function.arrays[i], extents));
    for (std::size_t i = 0; i < count; ++i)
        arguments.lay_out(
            first + i, function.pitches(function.arrays[i], arguments[arguments.original(first + i)].shape, settings_));
}

std::vector<ir::Type> FunctionCall::types_of(const Arguments& arguments, std::size_t first) const {
    const ir::Type common = common_type(*function_, arguments, first);
    std::vector<ir::Type> out;
    for (std::size_t i = 0; i < function_->arrays.size(); ++i) {
        const NamedFunction::Array& array = function_->arrays[i];
        out.push_back(array.is_of_any_type           ? own_type(arguments[arguments.original(first + i)])
                      : array.type == ir::Type::Void ? common
                                                     : array.type);
    }
    return out;
}

std::vector<std::string> FunctionCall::names() const {
    std::vector<std::string> out;
    for (const NamedFunction::Array& array : function_->arrays) out.emplace_back(array.name);
    return out;
}

std::vector<runtime::node::Launch> FunctionCall::run(const runtime::Device& device, const Arguments& arguments) const {
    std::vector<runtime::MutableTensorView> arrays;
    for (std::size_t i = 0; i < function_->arrays.size(); ++i) {
        const ParsedArgument& given = arguments[arguments.original(first_ + i)];
        arrays.push_back(function_->arrays[i].view(types_[i], arguments.buffer(first_ + i)->memory().whole(),
                                                   given.shape, *given.pitches));
    }
    const runtime::Recorder recorder(device, runtime::Recorder::Runs::Yes);
    function_->run(queue_of(recorder), arrays, settings_);
    return recorder.launches();
}

std::vector<runtime::node::Launch> launches_of(const NamedFunction& function, const PlannedCall& call) {
    const FunctionSettings settings = parse_settings(function, call.settings);
    const std::vector<ir::Type> types = parse_types(function, call.types);
    const stdlib::NamedExtents extents = function.extents_of_sizes(parse_sizes(call.sizes), settings);
    const auto device = runtime::Device::open(
        {.device = "emulator", .target = call.target, .is_plan = true, .threads = call.multiprocessors}, Location{});
    std::vector<runtime::Buffer<std::uint8_t>> buffers;
    buffers.reserve(function.arrays.size());  // an array points to its buffer
    std::vector<runtime::MutableTensorView> arrays;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const NamedFunction::Array& array = function.arrays[i];
        const std::vector<std::uint64_t> shape = function.shape(array, extents);
        std::uint64_t bytes = info(types[i]).bytes;
        for (const std::uint64_t extent : shape)
            if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes >> 40)
                throw Error(fmt::format("'{}' is larger than any memory", array.name), "ask for smaller sizes");
        const std::vector<std::uint64_t> pitches = function.pitches(array, shape, settings);
        if (!pitches.empty()) bytes = runtime::view_size(shape, pitches) * info(types[i]).bytes;
        buffers.push_back(device.buffer<std::uint8_t>(bytes, array.name));
        arrays.push_back(array.view(types[i], buffers.back().memory().whole(), shape, pitches));
    }
    const runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
    function.run(queue_of(recorder), arrays, settings);
    return recorder.launches();
}

std::string signature(const NamedFunction& function) {
    std::string out = function.name + "(";
    for (const NamedFunction::Array& array : function.arrays) {
        const bool is_output = array.access == stdlib::Access::Out && array.read_if.empty();
        const std::string_view access = !array.is_written() ? "in" : is_output ? "out" : "inout";
        const std::string_view type = !array.blocks.name.empty()     ? array.blocks.name
                                      : array.type != ir::Type::Void ? info(array.type).name
                                      : array.is_of_any_type         ? "any"
                                                                     : "TYPE";
        out += fmt::format("{}{}: {} {}[{}]", out.ends_with('(') ? "" : ", ", array.name, access, type,
                           array.shape.is_any() ? "1" : array.shape.text());
    }
    return out + ")";
}

std::string details_of(const NamedFunction& function) {
    std::string out;
    for (const NamedFunction::Array& array : function.arrays)
        if (!array.blocks.name.empty())
            out += fmt::format("{} is an array of {}: {}.\n", array.name, info(array.type).name, array.shape_text());
    for (const NamedFunction::Setting& setting : function.family->settings)
        out += fmt::format("--set {}=...: {}.\n", setting.name, setting.meaning);
    std::vector<std::string> pitches;
    for (const NamedFunction::Array& array : function.arrays)
        if (std::string setting = array.pitch_setting(); !setting.empty()) pitches.push_back(std::move(setting));
    if (!pitches.empty())
        out += fmt::format(
            "--set {}=...: elements from one row of the array to the next; as many as a row has if it is not set.\n",
            fmt::join(pitches, "|"));
    return out;
}

std::string description(const NamedFunction& function) {
    return fmt::format("{}\n{}\n\n{}\n{}In programs: stdlib::{}.\n", signature(function), function.formula,
                       function.family->document, details_of(function), function.call);
}

}  // namespace ikat::cli
