// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/arguments/argument.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/write_file.hpp"
#include "tools/cli/text/files.hpp"
#include "tools/cli/text/npy.hpp"

namespace ikat::cli {
namespace {

constexpr const char* forms =
    "an argument is a scalar (u32:7), a buffer (f32[]:1,2,3, f32[1024], f32[1024]:0, f32[8x8]:rand(1), "
    "f32[]:@file.npy, file.npy), a structure (b8[16]:{&0,u32:7}), &N or &N+BYTES; `ikat run --help` has all forms";

/// Splits at the first `mark`; without one, the second part is empty.
struct Parts {
    std::string_view before, after;
    bool found;
};
Parts split(std::string_view text, std::string_view mark) {
    const auto at = text.find(mark);
    if (at == std::string_view::npos) return {text, {}, false};
    return {text.substr(0, at), text.substr(at + mark.size()), true};
}

NumberType parse_type(std::string_view name) {
    if (const auto type = number_type(name)) return *type;
    throw Error(fmt::format("there is no type '{}'", name), "types are " + number_type_names());
}

template <class T>
T parse_count(std::string_view text, std::string_view what) {
    T number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
        throw Error(fmt::format("'{}' is not a valid {}", text, what), "write a decimal integer");
    return number;
}

std::vector<std::uint64_t> parse_shape(std::string_view text) {
    std::vector<std::uint64_t> out;
    for (bool more = true; more;) {
        const Parts parts = split(text, "x");
        out.push_back(parse_count<std::uint64_t>(parts.before, "size"));
        text = parts.after;
        more = parts.found;
    }
    return out;
}

std::uint64_t count_elements(const ParsedArgument& argument) {
    std::uint64_t bytes = argument.type.bytes(), elements = 1;
    for (const std::uint64_t extent : argument.shape) {
        if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > std::uint64_t{1} << 62)
            throw Error("the buffer is larger than any memory", "check its shape");
        elements *= extent;
    }
    return elements;
}

void append(std::vector<std::byte>& out, NumberType type, std::uint64_t bits) {
    out.resize(out.size() + type.bytes());
    std::memcpy(out.data() + out.size() - type.bytes(), &bits, type.bytes());
}

/// The error for a shape that does not match the data.
[[noreturn]] void wrong_count(const ParsedArgument& argument, std::uint64_t given) {
    throw Error(fmt::format("{} values for a buffer of {}", given, argument.elements),
                fmt::format("give as many values as the shape says, or write {}[] to take what is given",
                            argument.type.name()));
}

/// Sets the contents, and the shape if none was written.
void set_contents(ParsedArgument& argument, std::vector<std::byte> contents, std::vector<std::uint64_t> shape,
                  bool has_shape) {
    if (!has_shape) {
        argument.shape = std::move(shape);
        argument.elements = count_elements(argument);
    } else if (argument.elements * argument.type.bytes() != contents.size()) {
        wrong_count(argument, contents.size() / argument.type.bytes());
    }
    argument.contents = std::move(contents);
}

void read_values(ParsedArgument& argument, std::string_view text, bool has_shape) {
    std::vector<std::byte> contents;
    std::uint64_t count = 0;
    for (bool more = true; more; ++count) {
        const Parts parts = split(text, ",");
        append(contents, argument.type, parse_number(argument.type, parts.before));
        text = parts.after;
        more = parts.found;
    }
    argument.repeats = has_shape && count == 1;  // f32[1024]:0 fills
    if (argument.repeats)
        argument.contents = std::move(contents);
    else
        set_contents(argument, std::move(contents), {count}, has_shape);
}

void read_random(ParsedArgument& argument, std::string_view seed, bool has_shape) {
    if (!has_shape) throw Error("random values need a size", fmt::format("{}[1024]:rand(1)", argument.type.name()));
    argument.seed = parse_count<std::uint64_t>(seed, "seed");
}

/// A .npy file must have the given type; raw bits, there or here, accept any type of their width.
void read_npy_file(ParsedArgument& argument, const std::string& path, bool has_shape) {
    NpyArray array = read_npy(path);
    const bool fits = argument.type.raw || array.is_bits
                          ? info(array.type).bytes == argument.type.bytes()
                          : array.type == argument.type.type || array.type == npy_type(argument.type.type);
    if (!fits)
        throw Error(fmt::format("'{}' holds {}, not {}", path, info(array.type).name, argument.type.name()),
                    fmt::format("write {}[]:@{}, or convert the file with array.astype", info(array.type).name, path));
    if (has_shape && array.shape != argument.shape)
        throw Error(
            fmt::format("'{}' has shape {}, not {}", path, fmt::join(array.shape, "x"), fmt::join(argument.shape, "x")),
            fmt::format("write {}[]:@{} to take the file's shape", argument.type.name(), path));
    set_contents(argument, std::move(array.data), std::move(array.shape), has_shape);
}

void read_raw_file(ParsedArgument& argument, const std::string& path, bool has_shape) {
    std::vector<std::byte> contents = read_file(path);
    const std::size_t width = argument.type.bytes();
    if (contents.size() % width != 0)
        throw Error(fmt::format("'{}' has {} bytes, which is not a whole number of {} values", path, contents.size(),
                                argument.type.name()),
                    fmt::format("an element has {} bytes", width));
    const std::uint64_t count = contents.size() / width;
    set_contents(argument, std::move(contents), {count}, has_shape);
}

void check_extension(std::string_view path) {
    if (!path.ends_with(".npy") && !path.ends_with(".bin"))
        throw Error(fmt::format("'{}' is neither a .npy nor a .bin file", path),
                    "NumPy's format is .npy, raw bytes are .bin");
}

ParsedArgument parse(std::string_view text);

/// &N or &N+BYTES.
void parse_same(ParsedArgument& argument, std::string_view text) {
    argument.kind = ParsedArgument::Kind::Same;
    const Parts parts = split(text, "+");
    argument.same = parse_count<std::size_t>(parts.before, "number of an argument");
    if (parts.found) argument.offset = parse_count<std::uint64_t>(parts.after, "number of bytes");
}

constexpr std::uint64_t bytes_of_field(const ParsedArgument& field) {
    return field.kind == ParsedArgument::Kind::Same ? 8 : field.type.bytes();
}

/// Calls f(field, offset) for each field; returns the end of the last one.
std::uint64_t each_field(const ParsedArgument& structure, auto&& f) {
    std::uint64_t end = 0;
    for (const ParsedArgument& field : structure.fields) {
        const std::uint64_t bytes = bytes_of_field(field), offset = (end + bytes - 1) / bytes * bytes;
        f(field, offset);
        end = offset + bytes;
    }
    return end;
}

/// {FIELD,...}: scalars and addresses.
void read_fields(ParsedArgument& argument, std::string_view text, bool has_shape) {
    if (!text.ends_with('}')) throw Error("the '{' is not closed", forms);
    if (argument.type != NumberType{ir::Type::U8, true})
        throw Error("a structure is a buffer of bytes",
                    "write b8[48]:{...}, or b8[]:{...} for as many as its fields take");
    text = text.substr(1, text.size() - 2);
    for (bool more = true; more;) {
        const Parts parts = split(text, ",");
        argument.fields.push_back(parse(parts.before));
        const ParsedArgument& field = argument.fields.back();
        const bool is_value = field.kind == ParsedArgument::Kind::Scalar || field.kind == ParsedArgument::Kind::Same;
        if (!is_value || !field.output.empty())
            throw Error(fmt::format("'{}' is not a field of a structure", parts.before),
                        "fields are scalars (u32:7) and addresses (&0, &0+64)");
        text = parts.after;
        more = parts.found;
    }
    const std::uint64_t end = each_field(argument, [](const ParsedArgument&, std::uint64_t) {});
    argument.kind = ParsedArgument::Kind::Structure;
    argument.bytes = has_shape ? argument.elements : end;
    if (end > argument.bytes)
        throw Error(fmt::format("its fields take {} bytes, not {}", end, argument.bytes),
                    "each is aligned to its own size, as in C");
}

void read_contents(ParsedArgument& argument, std::string_view text, bool has_shape) {
    if (text.starts_with('{')) return read_fields(argument, text, has_shape);
    if (text.starts_with('@')) {
        const std::string path(text.substr(1));
        check_extension(path);
        return path.ends_with(".npy") ? read_npy_file(argument, path, has_shape)
                                      : read_raw_file(argument, path, has_shape);
    }
    constexpr std::string_view rand = "rand(";
    if (text.starts_with(rand) && text.ends_with(')'))
        return read_random(argument, text.substr(rand.size(), text.size() - rand.size() - 1), has_shape);
    read_values(argument, text, has_shape);
}

/// TYPE[SHAPE] or TYPE[SHAPE]:CONTENTS.
void parse_buffer(ParsedArgument& argument, std::string_view text) {
    argument.kind = ParsedArgument::Kind::Buffer;
    const Parts head = split(text, "[");
    argument.type = parse_type(head.before);
    const Parts body = split(head.after, "]");
    if (!body.found) throw Error("the '[' is not closed", forms);
    const bool has_shape = !body.before.empty();
    if (has_shape) {
        argument.shape = parse_shape(body.before);
        argument.elements = count_elements(argument);
    }
    if (body.after.starts_with(':')) return read_contents(argument, body.after.substr(1), has_shape);
    if (!body.after.empty()) throw Error(fmt::format("unexpected '{}'", body.after), forms);
    if (!has_shape)
        throw Error("the buffer has neither a size nor contents",
                    fmt::format("{0}[1024], or {0}[]:1,2,3, or {0}[]:@file.npy", head.before));
}

void parse_scalar(ParsedArgument& argument, std::string_view text) {
    const Parts parts = split(text, ":");
    if (!parts.found) throw Error("it is not a valid argument", forms);
    argument.kind = ParsedArgument::Kind::Scalar;
    argument.type = parse_type(parts.before);
    argument.bits = parse_number(argument.type, parts.after);
}

/// A file of its own type.
void read_own_type(ParsedArgument& argument, const std::string& path) {
    NpyArray array = read_npy(path);
    argument.kind = ParsedArgument::Kind::Buffer;
    argument.type = {array.type, false};
    argument.has_own_type = true;
    set_contents(argument, std::move(array.data), std::move(array.shape), false);
}

ParsedArgument parse(std::string_view text) {
    ParsedArgument argument{.text = std::string(text)};
    const Parts parts = split(text, "=>");
    if (parts.before.empty() && parts.found) {
        argument.kind = ParsedArgument::Kind::Buffer;
        argument.is_made = true;
    } else if (parts.before.ends_with(".npy") && parts.before.find_first_of(":[&") == parts.before.npos) {
        read_own_type(argument, std::string(parts.before));
    } else if (parts.before.starts_with('&')) {
        parse_same(argument, parts.before.substr(1));
    } else if (parts.before.find('[') < parts.before.find(':')) {
        parse_buffer(argument, parts.before);
    } else {
        parse_scalar(argument, parts.before);
    }
    if (!parts.found) return argument;
    if (argument.kind == ParsedArgument::Kind::Scalar)
        throw Error("a scalar has no output", "only a buffer may end in =>FILE");
    if (argument.kind == ParsedArgument::Kind::Structure)
        throw Error("a structure is passed by value and has no output", "only a buffer may end in =>FILE");
    if (argument.offset != 0)
        throw Error("an output is a whole buffer", fmt::format("write &{}=>{}", argument.same, parts.after));
    argument.output = parts.after;
    if (argument.output != "-") check_extension(argument.output);
    return argument;
}

}  // namespace

bool has_type(const ParsedArgument& argument, ir::Type wanted) {
    const NumberType given = argument.type;
    return given.type == wanted || (given.raw && given.bytes() == info(wanted).bytes) ||
           (argument.has_own_type && given.type == npy_type(wanted));
}

ParsedArgument parse_argument(std::string_view text) {
    try {
        return parse(text);
    } catch (const Error& error) {
        Diagnostic diagnostic = error.diagnostics().front();
        diagnostic.message = fmt::format("argument '{}': {}", text, diagnostic.message);
        throw Error(std::move(diagnostic));
    }
}

void each_part(const ParsedArgument& buffer,
               const std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>& f) {
    if (buffer.contents) return f(0, *buffer.contents);
    constexpr std::uint64_t max_bytes = 1 << 20;  // bytes
    Random random(*buffer.seed);
    std::vector<std::byte> part;
    for (std::uint64_t i = 0, offset = 0; i < buffer.elements;) {
        part.clear();
        for (; i < buffer.elements && part.size() < max_bytes; ++i)
            append(part, buffer.type, random.number(buffer.type));
        f(offset, part);
        offset += part.size();
    }
}

std::vector<std::byte> contents_of(const ParsedArgument& buffer) {
    std::vector<std::byte> out;
    out.reserve(buffer.elements * buffer.type.bytes());
    if (!buffer.repeats) {
        each_part(buffer, [&](std::uint64_t, std::span<const std::byte> bytes) {
            out.insert(out.end(), bytes.begin(), bytes.end());
        });
        return out;
    }
    for (std::uint64_t i = 0; i < buffer.elements; ++i)
        out.insert(out.end(), buffer.contents->begin(), buffer.contents->end());
    return out;
}

std::vector<std::byte> pack_structure(const ParsedArgument& structure,
                                      const std::function<std::uint64_t(const ParsedArgument&)>& address) {
    std::vector<std::byte> out(structure.bytes);
    each_field(structure, [&](const ParsedArgument& field, std::uint64_t offset) {
        const std::uint64_t bits = field.kind == ParsedArgument::Kind::Same ? address(field) : field.bits;
        std::memcpy(out.data() + offset, &bits, bytes_of_field(field));
    });
    return out;
}

std::string format_buffer(NumberType type, const std::vector<std::uint64_t>& shape,
                          const std::vector<std::byte>& contents) {
    const std::uint64_t row = shape.empty() ? 1 : shape.back();
    const std::uint64_t plane = shape.size() < 3 ? 0 : row * shape[shape.size() - 2];
    const std::uint64_t count = contents.size() / type.bytes();
    std::string out;
    for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, contents.data() + i * type.bytes(), type.bytes());
        if (plane && i && i % plane == 0) out += '\n';
        out += format_number(type, bits);
        out += (i + 1) % row == 0 ? '\n' : ',';
    }
    return count ? out : "\n";
}

void write_output(const std::string& output, NumberType type, const std::vector<std::uint64_t>& shape,
                  const std::vector<std::byte>& contents) {
    if (output == "-")
        write_text(output, format_buffer(type, shape, contents));
    else if (output.ends_with(".npy"))
        write_npy(output, type.type, shape, contents);
    else
        write_file(output, contents);
}

}  // namespace ikat::cli
