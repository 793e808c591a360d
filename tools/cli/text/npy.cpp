// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/write_file.hpp"
#include "tools/cli/text/files.hpp"

namespace ikat::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "the files' bytes are used unchanged");

constexpr std::string_view magic = "\x93NUMPY";

struct Dtype {
    std::string_view code;
    ir::Type type;
    bool is_bits = false;
};
constexpr Dtype dtypes[] = {
    {"i1", ir::Type::I8},        {"u1", ir::Type::U8},  {"i2", ir::Type::I16}, {"u2", ir::Type::U16},
    {"i4", ir::Type::I32},       {"u4", ir::Type::U32}, {"i8", ir::Type::I64}, {"u8", ir::Type::U64},
    {"f2", ir::Type::F16},       {"f4", ir::Type::F32}, {"f8", ir::Type::F64}, {"V1", ir::Type::U8, true},
    {"V2", ir::Type::U16, true},
};

/// "<f4": byte order (| for single bytes), kind, bytes.
std::string descriptor(ir::Type type) {
    const ir::Type written = npy_type(type);
    std::string out = info(written).bytes == 1 ? "|" : "<";
    for (const Dtype& dtype : dtypes)
        if (dtype.type == written && !dtype.is_bits) out += dtype.code;
    return out;
}

/// Reads the header's dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class Header {
public:
    Header(std::string_view text, const std::string& path) : rest_(text), path_(path) {
        expect('{');
        while (!accept('}')) {
            const std::string_view key = string();
            expect(':');
            if (key == "descr")
                descriptor_ = string();
            else if (key == "fortran_order")
                fortran_order_ = boolean();
            else if (key == "shape")
                shape_ = tuple();
            else
                fail(fmt::format("its header has an unknown key '{}'", key));
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        if (!descriptor_ || !fortran_order_ || !shape_) fail("its header lacks descr, fortran_order or shape");
    }

    std::string_view descriptor() const { return *descriptor_; }
    bool fortran_order() const { return *fortran_order_; }
    const std::vector<std::uint64_t>& shape() const { return *shape_; }

private:
    [[noreturn]] void fail(std::string what) const {
        throw Error(fmt::format("'{}' is not a plain .npy file: {}", path_, what),
                    "save an array of numbers, not of objects or records: np.save(file, array)");
    }
    void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }
    bool accept(char c) {
        skip_blanks();
        const bool found = rest_.starts_with(c);
        if (found) rest_.remove_prefix(1);
        return found;
    }
    void expect(char c) {
        if (!accept(c)) fail(fmt::format("its header lacks a '{}'", c));
    }
    bool accept(std::string_view word) {
        skip_blanks();
        const bool found = rest_.starts_with(word);
        if (found) rest_.remove_prefix(word.size());
        return found;
    }
    std::string_view string() {
        skip_blanks();
        const char quote = rest_.empty() ? '\0' : rest_.front();
        const auto end = rest_.find(quote, 1);
        if ((quote != '\'' && quote != '"') || end == std::string_view::npos) fail("its header is malformed");
        const std::string_view text = rest_.substr(1, end - 1);
        rest_.remove_prefix(end + 1);
        return text;
    }
    bool boolean() {
        if (accept("True")) return true;
        if (!accept("False")) fail("its fortran_order is neither True nor False");
        return false;
    }
    std::vector<std::uint64_t> tuple() {
        std::vector<std::uint64_t> out;
        expect('(');
        while (!accept(')')) {
            std::uint64_t number = 0;
            skip_blanks();
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
            if (error != std::errc{}) fail("its shape is not a tuple of numbers");
            rest_.remove_prefix(std::size_t(end - rest_.data()));
            out.push_back(number);
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
        return out;
    }

    std::string_view rest_;
    const std::string& path_;
    std::optional<std::string_view> descriptor_;
    std::optional<bool> fortran_order_;
    std::optional<std::vector<std::uint64_t>> shape_;
};

[[noreturn]] void cut_off(const std::string& path) {
    throw Error(fmt::format("'{}' is truncated", path), "it is shorter than its header says: save it again");
}

/// Removes `count` bytes from the front of the file.
std::span<const std::byte> take(std::span<const std::byte>& file, std::size_t count, const std::string& path) {
    if (file.size() < count) cut_off(path);
    const auto piece = file.first(count);
    file = file.subspan(count);
    return piece;
}

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Removes the header from the front of the file and returns its text.
std::string_view take_header(std::span<const std::byte>& file, const std::string& path) {
    if (!as_text(file).starts_with(magic))
        throw Error(fmt::format("'{}' is not a .npy file", path),
                    "write it with np.save; raw bytes belong in a .bin file");
    take(file, magic.size(), path);
    const int major = int(take(file, 2, path)[0]);
    if (major < 1 || major > 3)
        throw Error(fmt::format("'{}' has version {} of the .npy format", path, major), "versions 1 to 3 can be read");
    std::uint32_t length = 0;
    const auto field = take(file, major == 1 ? 2 : 4, path);
    std::memcpy(&length, field.data(), field.size());
    return as_text(take(file, length, path));
}

const Dtype& find_dtype(std::string_view descriptor, const std::string& path) {
    if (descriptor.starts_with('>'))
        throw Error(fmt::format("'{}' is big-endian (dtype {})", path, descriptor),
                    "convert it: array.astype(array.dtype.newbyteorder('<'))");
    for (const Dtype& dtype : dtypes)
        if (descriptor.size() == 3 && descriptor.substr(1) == dtype.code &&
            std::string_view("<|=").contains(descriptor[0]))
            return dtype;
    throw Error(fmt::format("'{}' has dtype {}, which no kernel takes", path, descriptor),
                "kernels take 8 to 64 bit integers and float16, float32, float64");
}

std::uint64_t byte_count(ir::Type type, const std::vector<std::uint64_t>& shape, const std::string& path) {
    std::uint64_t bytes = info(type).bytes;
    for (const std::uint64_t extent : shape)
        if (__builtin_mul_overflow(bytes, extent, &bytes)) cut_off(path);
    return bytes;
}

}  // namespace

NpyArray parse_npy(std::span<const std::byte> file, const std::string& path) {
    const Header header(take_header(file, path), path);
    const auto& [code, type, is_bits] = find_dtype(header.descriptor(), path);
    if (header.fortran_order())
        throw Error(fmt::format("'{}' is in Fortran order", path),
                    "save it in C order: np.save(file, array.copy('C'))");
    const std::uint64_t bytes = byte_count(type, header.shape(), path);
    if (file.size() > bytes)
        throw Error(fmt::format("'{}' has {} more bytes after its array", path, file.size() - bytes),
                    "a .npy file holds one array");
    const auto data = take(file, bytes, path);
    return {type, header.shape(), {data.begin(), data.end()}, is_bits};
}

ir::Type npy_type(ir::Type type) {
    const bool is_known = std::ranges::find(dtypes, type, &Dtype::type) != std::end(dtypes);
    return is_known ? type : info(type).bytes == 1 ? ir::Type::U8 : ir::Type::U16;
}

NpyArray read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

std::vector<std::byte> format_npy(ir::Type type, std::span<const std::uint64_t> shape,
                                  std::span<const std::byte> data) {
    std::string extents = fmt::format("{}", fmt::join(shape, ", "));
    if (shape.size() == 1) extents += ',';  // a tuple of one element
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor(type), extents);
    constexpr std::size_t before = 10;  // magic, version, length
    header.append(64 - (before + header.size() + 1) % 64, ' ');
    header += '\n';
    std::string head(magic);
    head += {'\1', '\0', char(header.size() & 0xff), char(header.size() >> 8)};
    head += header;
    const auto bytes = std::as_bytes(std::span(head));
    std::vector<std::byte> out(bytes.begin(), bytes.end());
    out.insert(out.end(), data.begin(), data.end());
    return out;
}

void write_npy(const std::string& path, ir::Type type, std::span<const std::uint64_t> shape,
               std::span<const std::byte> data) {
    write_file(path, format_npy(type, shape, data));
}

}  // namespace ikat::cli
