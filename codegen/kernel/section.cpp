// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel/section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <optional>

#include "codegen/kernel/parts.hpp"

namespace ikat {
namespace {

/// The first byte. A text with another one was written by another version of ikat.
constexpr std::uint32_t format = 3;

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of("/\\") + 1); }

std::uint64_t zigzag(std::int64_t number) { return std::uint64_t(number) << 1 ^ std::uint64_t(number >> 63); }
std::int64_t unzigzag(std::uint64_t bits) { return std::int64_t(bits >> 1) ^ -std::int64_t(bits & 1); }

class Writer {
public:
    void operator()(const auto&... parts) { (write(parts), ...); }

    /// Only those that differ from the one before; each is told by what has changed.
    void lines(const std::vector<Location>& lines) {
        write(lines.size());
        Location now{};
        std::size_t last = 0;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (lines[i] == now) continue;
            write(i - last), last = i;
            write_file(lines[i].file);
            write(zigzag(std::int64_t(lines[i].line) - now.line));
            write(zigzag(std::int64_t(lines[i].column) - now.column));
            now = lines[i];
        }
        write(lines.size() - last);  // none of these is another's
    }

    const std::string& bytes() const { return bytes_; }

private:
    void write(std::unsigned_integral auto number) {
        for (std::uint64_t left = number;; left >>= 7) {
            bytes_ += char(left < 0x80 ? left : (left & 0x7f) | 0x80);
            if (left < 0x80) return;
        }
    }
    void write(std::string_view text) { write(text.size()), bytes_ += text; }
    void write(ir::Type type) { write(info(type).name); }
    void write(ir::Access access) { write(std::uint32_t(access)); }
    /// A file is its place among those that were named before it; a new one's is their number, and its name follows.
    void write_file(std::string_view path) {
        const std::string_view name = file_name(path);
        const auto found = std::ranges::find(files_, name);
        write(std::size_t(found - files_.begin()));
        if (found == files_.end()) files_.emplace_back(name), write(name);
    }
    void write(const Location& where) { write_file(where.file), write(where.line), write(where.column); }
    template <class T>
    void write(const std::vector<T>& list) {
        write(list.size());
        for (const T& item : list) write(item);
    }
    template <class T, std::size_t count>
    void write(const std::array<T, count>& list) {
        for (const T& item : list) write(item);
    }
    template <class T>
    requires HasParts<Writer, const T>
    void write(const T& structure) { parts(*this, structure); }

    std::string bytes_;
    std::vector<std::string> files_;
};

constexpr std::size_t max_lines = std::size_t{1} << 22;  // of PTX

/// What is wrong with the bytes is thrown.
struct Malformed {
    std::string what;
};

class Reader {
public:
    explicit Reader(std::string_view bytes) : left_(bytes) {}

    void operator()(auto&... parts) { (read(parts), ...); }

    void lines(std::vector<Location>& lines) {
        std::uint64_t size = 0;
        read(size);
        if (size > max_lines) throw Malformed{fmt::format("it tells of {} lines", size)};
        lines.reserve(size);
        for (Location now{};;) {
            std::uint64_t same = 0;
            read(same);
            if (same > size - lines.size()) throw Malformed{"it has more lines than it says"};
            lines.resize(lines.size() + same, now);
            if (lines.size() == size) return;
            std::uint64_t line = 0, column = 0;
            now.file = read_file(), read(line), read(column);
            now.line += std::uint32_t(unzigzag(line)), now.column += std::uint32_t(unzigzag(column));
        }
    }

    /// After everything are the zeros that fill a word.
    void finish() const {
        if (left_.size() >= sizeof(std::uint64_t) || left_.find_first_not_of('\0') != left_.npos)
            throw Malformed{"there is something after its end"};
    }

private:
    template <std::unsigned_integral T>
    void read(T& number) {
        std::uint64_t out = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (left_.empty()) throw Malformed{"it ends too soon"};
            const auto byte = std::uint64_t(static_cast<unsigned char>(left_.front()));
            left_.remove_prefix(1);
            const std::uint64_t bits = byte & 0x7f;
            if (shift > 63 || bits << shift >> shift != bits) throw Malformed{"it has a number of more than 64 bits"};
            out |= bits << shift;
            if (byte < 0x80) break;
        }
        number = T(out);
        if (number != out) throw Malformed{fmt::format("it has {} where a smaller number is expected", out)};
    }
    void read(std::string& text) {
        std::uint64_t size = 0;
        read(size);
        if (size > left_.size()) throw Malformed{"it ends too soon"};
        text = left_.substr(0, size);
        left_.remove_prefix(size);
    }
    void read(ir::Type& type) {
        std::string name;
        read(name);
        const auto found = ir::type_named(name);
        if (!found) throw Malformed{fmt::format("it has a type '{}'", name)};
        type = *found;
    }
    void read(ir::Access& access) {
        std::uint32_t number = 0;
        read(number);
        if (number >= std::size(ir::access_names)) throw Malformed{"it has a direction that does not exist"};
        access = ir::Access(number);
    }
    const char* read_file() {
        std::uint64_t place = 0;
        read(place);
        if (place > files_.size()) throw Malformed{"it has a file without a name"};
        if (place == files_.size()) {
            std::string name;
            read(name);
            files_.push_back(intern(name));
        }
        return files_[place];
    }
    void read(Location& where) { where.file = read_file(), read(where.line), read(where.column); }
    template <class T>
    void read(std::vector<T>& list) {
        std::uint64_t size = 0;
        read(size);
        if (size > left_.size()) throw Malformed{"it ends too soon"};  // an item has a byte or more
        list.resize(size);
        for (T& item : list) read(item);
    }
    template <class T, std::size_t count>
    void read(std::array<T, count>& list) {
        for (T& item : list) read(item);
    }
    template <class T>
    requires HasParts<Reader, T>
    void read(T& structure) { parts(*this, structure); }

    std::string_view left_;
    std::vector<const char*> files_;
};

// ---- bytes as text, and sections in text

constexpr std::string_view heading = ".section .ikat\n{\n";

std::string words(std::string bytes) {
    constexpr std::size_t width = sizeof(std::uint64_t), in_line = 4;
    bytes.resize((bytes.size() + width - 1) / width * width);
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += width) {
        std::uint64_t word = 0;
        for (std::size_t i = 0; i < width; ++i)
            word |= std::uint64_t(static_cast<unsigned char>(bytes[at + i])) << 8 * i;
        const bool begins = at / width % in_line == 0,
                   ends = at / width % in_line == in_line - 1 || at + width == bytes.size();
        out += fmt::format("{}{:#x}{}", begins ? "    .b64 " : " ", word, ends ? "\n" : ",");
    }
    return out;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// A section of a text of PTX: where it begins and ends, and what is between its braces.
struct Found {
    std::size_t begin = 0, end = 0;
    std::string_view body;
};

/// The next section from `from` on. It begins a line.
std::optional<Found> next_section(std::string_view text, std::size_t from) {
    constexpr std::string_view directive = ".section", name = ".ikat";
    while ((from = text.find(directive, from)) != text.npos) {
        const std::size_t begin = from;
        from += directive.size();
        const std::size_t line = text.find_last_not_of(" \t", begin ? begin - 1 : 0);
        if (begin != 0 && line != text.npos && text[line] != '\n' && line < begin) continue;
        const auto skip_spaces = [&](std::size_t at) {
            while (at < text.size() && is_space(text[at])) ++at;
            return at;
        };
        std::size_t at = skip_spaces(from);
        if (at == from || !text.substr(at).starts_with(name)) continue;
        at = skip_spaces(at + name.size());
        if (at == text.size() || text[at] != '{') continue;
        const std::size_t close = text.find('}', at);
        const std::size_t end = close == text.npos ? text.size() : close;
        return Found{begin, std::min(end + 1, text.size()), text.substr(at + 1, end - at - 1)};
    }
    return {};
}

/// The bytes of .b64 words; comments are passed over.
std::string bytes_of(std::string_view body) {
    std::string out;
    for (std::size_t at = 0; at < body.size();) {
        const std::string_view rest = body.substr(at);
        if (is_space(rest[0]) || rest[0] == ',') {
            ++at;
        } else if (rest.starts_with("//")) {
            at += std::min(rest.find('\n'), rest.size());
        } else if (rest.starts_with(".b64")) {
            at += 4;
        } else {
            const bool is_hexadecimal = rest.starts_with("0x");
            const char* const digits = rest.data() + (is_hexadecimal ? 2 : 0);
            std::uint64_t word = 0;
            const auto [end, error] =
                std::from_chars(digits, rest.data() + rest.size(), word, is_hexadecimal ? 16 : 10);
            if (error != std::errc{})
                throw Malformed{fmt::format("it has '{}' where a word is expected", rest.substr(0, 8))};
            for (unsigned i = 0; i < sizeof word; ++i) out += char(word >> 8 * i);
            at += std::size_t(end - rest.data());
        }
    }
    return out;
}

KernelInfo read_info(std::string_view body) {
    const std::string bytes = bytes_of(body);
    Reader reader(bytes);
    std::uint32_t version = 0;
    reader(version);
    if (version != format)
        throw Malformed{fmt::format("it is of format {}, and this is ikat with format {}", version, format)};
    KernelInfo out;
    parts(reader, out);
    reader.finish();
    if (std::string wrong = problem(out); !wrong.empty()) throw Malformed{std::move(wrong)};
    return out;
}

std::size_t lines_in(std::string_view text) { return std::size_t(std::ranges::count(text, '\n')) + 1; }

}  // namespace

std::string section_of(const KernelInfo& kernel) {
    Writer writer;
    writer(format), parts(writer, kernel);
    return fmt::format("{}    // what a launch has to know of {}\n{}}}\n", heading, kernel.name, words(writer.bytes()));
}

std::string with_sections(std::string_view ptx, std::span<const KernelInfo> kernels) {
    std::string out(ptx);
    if (out.ends_with("}\n")) out += '\n';  // as after each function
    for (const KernelInfo& kernel : kernels) out += section_of(kernel);
    return out;
}

std::vector<KernelInfo> infos_in(std::string_view ptx, std::string_view file) {
    std::vector<KernelInfo> out;
    std::size_t at = 0;
    while (const auto found = next_section(ptx, at)) {
        at = found->end;
        try {
            out.push_back(read_info(found->body));
        } catch (const Malformed& malformed) {
            const auto line = std::uint32_t(lines_in(ptx.substr(0, found->begin)));
            throw Error(Diagnostic{
                .where = {intern(file), line, 1},
                .message = "the section .ikat, which tells what a launch has to know of a kernel, cannot be read: " +
                           malformed.what,
                .hint = "make the PTX again with this ikat; without the section it runs as PTX of others does"});
        }
    }
    return out;
}

std::string without_sections(std::string_view ptx) {
    std::string out;
    std::size_t at = 0;
    while (const auto found = next_section(ptx, at)) {
        out += ptx.substr(at, found->begin - at);
        if (out.ends_with("}\n\n")) out.pop_back();
        at = found->end;
        if (at < ptx.size() && ptx[at] == '\n') ++at;
    }
    return out += ptx.substr(at);
}

}  // namespace ikat
