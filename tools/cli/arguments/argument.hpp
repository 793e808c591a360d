// SPDX-License-Identifier: Apache-2.0
// One ARG of `ikat run`: the value for a kernel parameter, and where the buffer is written afterwards. docs/cli.md has
// the grammar:
//
//     u32:7   f32:1.5   b64:0x1f                                  a scalar
//     f32[]:1,2,3   f32[1024]   f32[1024]:0   f32[300x250]        a buffer: its values, or uninitialised
//     f32[1024]:rand(7)   u8[]:@file.bin   f32[]:@file.npy        ... random, from a file
//     &0   &0+64                                                  the buffer of argument 0, or 64 bytes after its
//     start b8[48]:{&0,u32:7}                                           a structure, by value: its fields, naturally
//     aligned
//     file.npy                                                    a file, of its own type
//     ...=>file.npy   ...=>file.bin   ...=>-                      written or printed after the run
//     =>file.npy                                                  ... what a function makes
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/text/number.hpp"

namespace ikat::cli {

struct ParsedArgument {
    enum class Kind : std::uint8_t { Scalar, Buffer, Same, Structure };

    std::string text;  // as written, for messages
    Kind kind = Kind::Scalar;
    NumberType type{};                                 // Scalar, Buffer
    std::uint64_t bits = 0;                            // Scalar
    std::vector<std::uint64_t> shape{};                // Buffer
    std::uint64_t elements = 0;                        // Buffer: the product of its shape
    std::optional<std::vector<std::byte>> contents{};  // Buffer: without contents and seed it is uninitialised
    std::optional<std::uint64_t> seed{};               // Buffer: its contents are random
    bool repeats = false;                              // Buffer: its contents are one repeated element
    bool has_own_type = false;                         // Buffer: it is a file that was given without a type
    bool is_made = false;                              // Buffer: its type and shape are those that a function gives it
    /// Buffer: how far its elements lie apart, once a launch has said so: for each extent but the last, in elements;
    /// empty if its rows follow each other.
    std::optional<std::vector<std::uint64_t>> pitches{};
    std::size_t same = 0;                  // Same: the number of the other argument
    std::uint64_t offset = 0;              // Same: in bytes, from the start of the buffer
    std::vector<ParsedArgument> fields{};  // Structure: scalars and addresses
    std::uint64_t bytes = 0;               // Structure: its size
    std::string output{};                  // Buffer, Same: a file, "-" to print, "" for neither

    bool has_contents() const { return contents || seed; }
};

/// Whether its elements are of the type: raw bits are of any type of their width. NumPy has neither bf16 nor 8-bit
/// floats: without a type, a file of unsigned integers may have their bits.
bool has_type(const ParsedArgument& argument, ir::Type wanted);

/// Reads one ARG and the file it names. Throws Error, which quotes the ARG and explains the valid forms.
ParsedArgument parse_argument(std::string_view text);

/// Calls f(offset, bytes) for the contents of a buffer, part by part (not for repeated ones): random contents are
/// generated a million bytes at a time, so that no second copy is kept.
void each_part(const ParsedArgument& buffer,
               const std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>& f);

/// All bytes of a buffer that has contents.
std::vector<std::byte> contents_of(const ParsedArgument& buffer);

/// The bytes of a structure; address(field) is that of a field &N.
std::vector<std::byte> pack_structure(const ParsedArgument& structure,
                                      const std::function<std::uint64_t(const ParsedArgument&)>& address);

/// Writes or prints a buffer of this type and shape, as `output` says.
void write_output(const std::string& output, NumberType type, const std::vector<std::uint64_t>& shape,
                  const std::vector<std::byte>& contents);

/// Numbers separated by commas, a line for each row; higher dimensions are separated by empty lines.
std::string format_buffer(NumberType type, const std::vector<std::uint64_t>& shape,
                          const std::vector<std::byte>& contents);

}  // namespace ikat::cli
