// SPDX-License-Identifier: Apache-2.0
// The headers below are those that NumPy 1.26 writes.
#include "tools/cli/text/npy.hpp"

#include <array>
#include <cstring>
#include <string>

#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

using namespace std::string_literals;

/// A file of the given version whose header is `dictionary`, padded as NumPy does, followed by `data`.
std::string file(std::string dictionary, const std::string& data, int version = 1) {
    const std::size_t before = version == 1 ? 10 : 12;
    dictionary.append(63 - (before + dictionary.size()) % 64, ' ');
    dictionary += '\n';
    std::string out =
        "\x93NUMPY"s + char(version) + '\0' + char(dictionary.size() & 255) + char(dictionary.size() >> 8);
    if (version > 1) out += "\0\0"s;
    return out + dictionary + data;
}
cli::NpyArray parse(const std::string& text) { return cli::parse_npy(std::as_bytes(std::span(text)), "a.npy"); }
std::string refused_file(const std::string& text) {
    return message_of([&] { parse(text); });
}
std::string header(const std::string& dtype, const std::string& shape, const std::string& fortran = "False") {
    return "{'descr': '" + dtype + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}
const std::string six_floats(24, '\1');

TEST_CASE("npy: versions 1 to 3 are read") {
    for (const int version : {1, 2, 3}) {
        const cli::NpyArray array = parse(file(header("<f4", "(2, 3)"), six_floats, version));
        CHECK(array.type == ir::Type::F32);
        CHECK(array.shape == std::vector<std::uint64_t>{2, 3});
        CHECK(array.data.size() == 24);
    }
}

TEST_CASE("npy: every type that kernels know") {
    const std::pair<const char*, ir::Type> cases[] = {
        {"|i1", ir::Type::I8},  {"|u1", ir::Type::U8},  {"<i2", ir::Type::I16}, {"<u2", ir::Type::U16},
        {"<i4", ir::Type::I32}, {"<u4", ir::Type::U32}, {"<i8", ir::Type::I64}, {"<u8", ir::Type::U64},
        {"<f2", ir::Type::F16}, {"<f4", ir::Type::F32}, {"<f8", ir::Type::F64},
    };
    for (const auto& [dtype, type] : cases) {
        INFO(dtype);
        CHECK(parse(file(header(dtype, "(1,)"), std::string(info(type).bytes, 'x'))).type == type);
    }
    for (const char* dtype : {"<c8", "|b1", "|S3", "<U2", "|O", "<f16", "<M8[ns]", "|V3"})
        CHECK_THAT(refused_file(file(header(dtype, "(1,)"), "x")), contains("which no kernel takes"));
}

TEST_CASE("npy: types of other libraries are bits") {
    const cli::NpyArray array = parse(file(header("<V2", "(2,)"), "xxyy"));
    CHECK(array.type == ir::Type::U16);
    CHECK(array.is_bits);
    CHECK(parse(file(header("|V1", "(2,)"), "xy")).type == ir::Type::U8);
    CHECK_FALSE(parse(file(header("<u2", "(2,)"), "xxyy")).is_bits);
}

TEST_CASE("npy: shapes of rank 0 and 1, and without elements") {
    CHECK(parse(file(header("<f4", "()"), "abcd")).shape.empty());
    CHECK(parse(file(header("<f4", "(1,)"), "abcd")).shape == std::vector<std::uint64_t>{1});
    CHECK(parse(file(header("<f4", "(0, 3)"), "")).data.empty());
}

TEST_CASE("npy: files that cannot be read are errors") {
    CHECK_THAT(refused_file("no such thing"), contains("'a.npy' is not a .npy file"));
    CHECK_THAT(refused_file(file(header("<f4", "(2, 3)"), six_floats, 4)), contains("version 4"));
    CHECK_THAT(refused_file(file(header("<f4", "(2, 3)", "True"), six_floats)), contains("Fortran order"));
    CHECK_THAT(refused_file(file(header("<f4", "(2, 3)", "True"), six_floats)), contains("C order"));
    CHECK_THAT(refused_file(file(header(">f4", "(2, 3)"), six_floats)), contains("big-endian"));
    CHECK_THAT(refused_file(file(header("<f4", "(2, 4)"), six_floats)), contains("truncated"));
    CHECK_THAT(refused_file(file(header("<f4", "(2, 2)"), six_floats)), contains("has 8 more bytes after its array"));
    CHECK_THAT(refused_file(file(header("<f8", "(4294967296, 4294967296)"), six_floats)), contains("truncated"));
    CHECK_THAT(refused_file(file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "x")),
               contains("not a plain .npy file"));
    CHECK_THAT(refused_file(file("{'descr': '<f4', 'fortran_order': False}", "x")), contains("lacks"));
    CHECK_THAT(refused_file(file("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "x")), contains("neither"));
    CHECK_THAT(refused_file(file("{'order': '<f4'}", "x")), contains("unknown key 'order'"));
    CHECK_THAT(refused_file(file("{'shape': (x,)}", "x")), contains("tuple of numbers"));
}

TEST_CASE("npy: a file cut off anywhere is an error, never a crash") {
    const std::string whole = file(header("<f4", "(2, 3)"), six_floats);
    for (std::size_t length = 0; length < whole.size(); ++length)
        CHECK_FALSE(refused_file(whole.substr(0, length)).empty());
    CHECK(refused_file(whole).empty());
}

TEST_CASE("npy: files are written as NumPy writes them, and read back") {
    const std::array<float, 6> values{1, 2, 3, 4, 5, 6};
    const auto data = std::as_bytes(std::span(values));
    const std::uint64_t shape[] = {2, 3};
    const std::vector<std::byte> written = cli::format_npy(ir::Type::F32, shape, data);
    const std::string text(reinterpret_cast<const char*>(written.data()), written.size());
    CHECK(text == file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                       std::string(reinterpret_cast<const char*>(data.data()), data.size())));
    CHECK(parse(text).data == std::vector<std::byte>(data.begin(), data.end()));

    const std::uint64_t one[] = {24};
    const auto bytes = cli::format_npy(ir::Type::U8, one, data);
    CHECK_THAT(std::string(reinterpret_cast<const char*>(bytes.data()), 80),
               contains("'|u1', 'fortran_order': False, 'shape': (24,), }"));
    CHECK_THAT(std::string(reinterpret_cast<const char*>(cli::format_npy(ir::Type::U8, {}, data).data()), 80),
               contains("'shape': (), }"));
}

}  // namespace
}  // namespace ikat::tests
