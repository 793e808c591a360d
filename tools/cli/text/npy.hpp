// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files, as far as kernels need them: arrays of numbers, little-endian, in C order. Reads format versions
// 1 to 3, writes version 1. Source: the format's description in NumPy's documentation, numpy.lib.format.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/ir/type.hpp"

namespace ikat::cli {

struct NpyArray {
    ir::Type type = ir::Type::Void;
    std::vector<std::uint64_t> shape;  // empty for a single number
    std::vector<std::byte> data;       // row-major
    bool is_bits = false;              // of a type that is not NumPy's own, such as bfloat16 of ml_dtypes
};

/// Throws Error for a file that is missing, not a .npy file, truncated, in Fortran order or holds anything but
/// little-endian numbers of a type that kernels support. `path` is its name in messages.
NpyArray read_npy(const std::string& path);
NpyArray parse_npy(std::span<const std::byte> file, const std::string& path);

/// The type itself if NumPy has it; of bf16 and 8-bit floats, that of their bits.
ir::Type npy_type(ir::Type type);
void write_npy(const std::string& path, ir::Type type, std::span<const std::uint64_t> shape,
               std::span<const std::byte> data);
std::vector<std::byte> format_npy(ir::Type type, std::span<const std::uint64_t> shape, std::span<const std::byte> data);

}  // namespace ikat::cli
