// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/arguments/argument.hpp"

#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "codegen/support/write_file.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tools/cli/text/files.hpp"
#include "tools/cli/text/npy.hpp"

namespace ikat::tests {
namespace {

using cli::ParsedArgument;
using Kind = ParsedArgument::Kind;
using Shape = std::vector<std::uint64_t>;

std::string refused(const std::string& text) {
    return message_of([&] { cli::parse_argument(text); });
}

template <class T>
std::vector<T> values(const ParsedArgument& argument) {
    REQUIRE(argument.has_contents());
    const std::vector<std::byte> contents = cli::contents_of(argument);
    std::vector<T> out(contents.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), contents.data(), contents.size());
    return out;
}
using Floats = std::vector<float>;

/// A separate folder for the files of a test.
struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("ikat_argument_" + std::to_string(getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string operator/(const char* name) const { return (path / name).string(); }
};

TEST_CASE("argument: a scalar") {
    const ParsedArgument argument = cli::parse_argument("u32:7");
    CHECK(argument.kind == Kind::Scalar);
    CHECK(argument.type.name() == "u32");
    CHECK(argument.bits == 7);
    CHECK(cli::parse_argument("b64:0x1f").type.raw);
}

TEST_CASE("argument: a file alone has its own type, and 16-bit unsigned integers may be bits of bf16") {
    const Folder folder;
    const std::vector<std::byte> two(4);
    for (const ir::Type type : {ir::Type::F16, ir::Type::I16, ir::Type::U16})
        cli::write_npy(folder / (std::string(info(type).name) + ".npy").c_str(), type, Shape{1, 2}, two);
    const ParsedArgument halves = cli::parse_argument(folder / "f16.npy");
    CHECK(halves.kind == Kind::Buffer);
    CHECK(halves.shape == Shape{1, 2});
    CHECK(halves.type.name() == "f16");
    CHECK(cli::parse_argument(folder / "i16.npy").type.name() == "i16");
    const ParsedArgument bits = cli::parse_argument(folder / "u16.npy=>-");
    CHECK(bits.type.name() == "u16");
    CHECK((cli::has_type(bits, ir::Type::U16) && cli::has_type(bits, ir::Type::BF16)));
    CHECK_FALSE((cli::has_type(bits, ir::Type::F16) || cli::has_type(bits, ir::Type::I16)));
    CHECK_FALSE(cli::has_type(halves, ir::Type::BF16));
    CHECK_FALSE(cli::has_type(cli::parse_argument("u16[]:1"), ir::Type::BF16));
    CHECK(cli::has_type(cli::parse_argument("b16[]:1"), ir::Type::F16));
    CHECK(refused("none.npy").contains("cannot open 'none.npy'"));
}

TEST_CASE("argument: an output alone is made by a function") {
    const ParsedArgument made = cli::parse_argument("=>-");
    CHECK(made.is_made);
    CHECK(made.output == "-");
    CHECK_FALSE(cli::parse_argument("f32[1]=>-").is_made);
    CHECK(refused("=>c.txt").contains("neither a .npy nor a .bin file"));
    CHECK(refused("=>").contains("neither a .npy nor a .bin file"));
}

TEST_CASE("argument: a buffer of values takes their number as its shape") {
    const ParsedArgument argument = cli::parse_argument("f32[]:1,-2.5,3");
    CHECK(argument.kind == Kind::Buffer);
    CHECK(argument.shape == Shape{3});
    CHECK(argument.elements == 3);
    CHECK(values<float>(argument) == Floats{1, -2.5, 3});
    CHECK(values<float>(cli::parse_argument("f32[3]:1,2,3")) == Floats{1, 2, 3});
    CHECK(values<float>(cli::parse_argument("f32[1x2]:1,2")) == Floats{1, 2});
    CHECK(values<float>(cli::parse_argument("f32[]:5")) == Floats{5});
}

TEST_CASE("argument: a buffer of a shape is uninitialised or filled with one value") {
    const ParsedArgument argument = cli::parse_argument("f64[300x250]");
    CHECK(argument.shape == Shape{300, 250});
    CHECK(argument.elements == 75000);
    CHECK_FALSE(argument.contents);
    const ParsedArgument filled = cli::parse_argument("f32[2x2]:4");
    CHECK(values<float>(filled) == Floats{4, 4, 4, 4});
    CHECK(filled.contents->size() == 4);  // one element, however many there are
    CHECK(cli::parse_argument("f32[0]").elements == 0);
    CHECK(values<float>(cli::parse_argument("f32[0]:1")).empty());
}

TEST_CASE("argument: many random values come in parts") {
    std::uint64_t end = 0, parts = 0;
    cli::each_part(cli::parse_argument("u16[1250000]:rand(3)"),
                   [&](std::uint64_t offset, std::span<const std::byte> bytes) {
                       CHECK(offset == end);
                       end += bytes.size(), ++parts;
                   });
    CHECK(end == 2500000);
    CHECK(parts == 3);
}

TEST_CASE("argument: random values") {
    const auto first = values<float>(cli::parse_argument("f32[100]:rand(3)"));
    CHECK(first.size() == 100);
    CHECK(first == values<float>(cli::parse_argument("f32[10x10]:rand(3)")));
    CHECK(first != values<float>(cli::parse_argument("f32[100]:rand(4)")));
    CHECK_THAT(refused("f32[]:rand(3)"), contains("random values need a size"));
    CHECK_THAT(refused("f32[4]:rand(x)"), contains("'x' is not a valid seed"));
    CHECK_THAT(refused("f32[4]:rand(3"), contains("'rand(3' is not a valid f32"));
}

TEST_CASE("argument: the same buffer as another") {
    const ParsedArgument argument = cli::parse_argument("&2=>-");
    CHECK(argument.kind == Kind::Same);
    CHECK(argument.same == 2);
    CHECK(argument.output == "-");
    CHECK_THAT(refused("&"), contains("number of an argument"));
    CHECK_THAT(refused("&-1"), contains("number of an argument"));
}

TEST_CASE("argument: outputs") {
    CHECK(cli::parse_argument("f32[4]=>out.npy").output == "out.npy");
    CHECK(cli::parse_argument("f32[]:1=>out.bin").output == "out.bin");
    CHECK(cli::parse_argument("f32[4]:0=>-").output == "-");
    CHECK_THAT(refused("f32[4]=>out.txt"), contains("'out.txt' is neither a .npy nor a .bin file"));
    CHECK_THAT(refused("f32[4]=>"), contains("neither a .npy nor a .bin"));
    CHECK_THAT(refused("u32:7=>-"), contains("a scalar has no output"));
}

TEST_CASE("argument: files") {
    const Folder folder;
    const Floats data{1, 2, 3, 4, 5, 6};
    const std::string npy = folder / "a.npy", bin = folder / "a.bin";
    const std::uint64_t shape[] = {2, 3};
    cli::write_npy(npy, ir::Type::F32, shape, std::as_bytes(std::span(data)));
    write_file(bin, std::as_bytes(std::span(data)));

    CHECK(cli::parse_argument("f32[]:@" + npy).shape == Shape{2, 3});
    CHECK(values<float>(cli::parse_argument("f32[2x3]:@" + npy)) == data);
    CHECK(values<float>(cli::parse_argument("f32[]:@" + bin)) == data);
    CHECK(cli::parse_argument("f32[]:@" + bin).shape == Shape{6});
    CHECK(cli::parse_argument("f32[3x2]:@" + bin).shape == Shape{3, 2});
    CHECK(cli::parse_argument("u8[]:@" + bin).shape == Shape{24});
    CHECK(cli::parse_argument("b32[]:@" + npy).shape == Shape{2, 3});
    CHECK(cli::parse_argument("f32[]:@" + npy + "=>x.npy").output == "x.npy");

    CHECK_THAT(refused("f32[3x2]:@" + npy), contains("has shape 2x3, not 3x2"));
    CHECK_THAT(refused("u32[]:@" + npy), contains("holds f32, not u32"));
    CHECK_THAT(refused("b64[]:@" + npy), contains("holds f32, not b64"));
    CHECK_THAT(refused("f32[7]:@" + bin), contains("6 values for a buffer of 7"));
    write_file(bin, std::as_bytes(std::span(data)).first(23));
    CHECK_THAT(refused("f32[]:@" + bin), contains("23 bytes, which is not a whole number of f32"));
    CHECK_THAT(refused("f32[]:@" + (folder / "none.npy")), contains("No such file"));
    CHECK_THAT(refused("f32[]:@a.txt"), contains("neither a .npy nor a .bin file"));
}

TEST_CASE("argument: an invalid one is quoted, with a hint") {
    CHECK_THAT(refused("7"), contains("argument '7': it is not a valid argument"));
    CHECK_THAT(refused("7"), contains("hint: an argument is a scalar (u32:7)"));
    CHECK_THAT(refused(""), contains("not a valid argument"));
    CHECK_THAT(refused("s32:7"), contains("there is no type 's32'"));
    CHECK_THAT(refused("s32[4]"), contains("types are u8 u16"));
    CHECK_THAT(refused("f32[4"), contains("not closed"));
    CHECK_THAT(refused("f32[4]7"), contains("unexpected '7'"));
    CHECK_THAT(refused("f32[]"), contains("neither a size nor contents"));
    CHECK_THAT(refused("f32[4,4]"), contains("'4,4' is not a valid size"));
    CHECK_THAT(refused("f32[4x]"), contains("'' is not a valid size"));
    CHECK_THAT(refused("f32[-4]"), contains("'-4' is not a valid size"));
    CHECK_THAT(refused("f32[4]:1,2"), contains("2 values for a buffer of 4"));
    CHECK_THAT(refused("f32[4]:"), contains("'' is not a valid f32"));
    CHECK_THAT(refused("f32[]:1,,2"), contains("'' is not a valid f32"));
    CHECK_THAT(refused("f32[4294967296x4294967296]"), contains("larger than any memory"));
}

TEST_CASE("argument: a buffer is printed with a line for each row") {
    const ParsedArgument flat = cli::parse_argument("i32[]:1,-2,3");
    CHECK(cli::format_buffer(flat.type, flat.shape, *flat.contents) == "1,-2,3\n");
    const ParsedArgument matrix = cli::parse_argument("f32[2x2]:1,2.5,3,4");
    CHECK(cli::format_buffer(matrix.type, matrix.shape, *matrix.contents) == "1,2.5\n3,4\n");
    const ParsedArgument planes = cli::parse_argument("u8[2x1x2]:1,2,3,4");
    CHECK(cli::format_buffer(planes.type, planes.shape, *planes.contents) == "1,2\n\n3,4\n");
    CHECK(cli::format_buffer(flat.type, {0}, {}) == "\n");
}

}  // namespace
}  // namespace ikat::tests
