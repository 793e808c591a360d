// SPDX-License-Identifier: Apache-2.0
// Files of named tensors in the format safetensors (https://github.com/huggingface/safetensors), on the host:
//
//     const auto weights = safetensors::read("model.safetensors");
//     auto w = device.upload(safetensors::floats(weights.at("layer.weight")), "w");
//     safetensors::write("model.safetensors", {{safetensors::tensor("layer.weight", {2, 64}, w.download())}});
//
// A file is the length of its header in 8 bytes, the header in JSON, and the elements, little-endian, by rows, without
// gaps. Files may come from anywhere: whatever is wrong in one is an Error, and the memory that is used is in
// proportion to the file's long.
#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/type.hpp"

namespace ikat::safetensors {

/// A tensor with its elements as the file has them. Without extents it is one number.
struct Tensor {
    std::string name{};
    /// All types of one number: integers, F16, BF16, F32, F64, E4M3, E5M2; of Pred, an element is a byte, 0 or 1.
    ir::Type type = ir::Type::F32;
    std::vector<std::uint64_t> shape{};
    std::vector<std::byte> bytes{};

    bool operator==(const Tensor&) const = default;
};

/// What a file holds. `metadata` are texts by name, such as a step, or who made the file.
struct Tensors {
    std::vector<Tensor> tensors{};
    std::map<std::string, std::string> metadata{};

    /// The tensor of that name, or nullptr.
    const Tensor* find(std::string_view name) const;
    /// The same; throws Error, which names those that there are, if there is none.
    const Tensor& at(std::string_view name) const;
    bool operator==(const Tensors&) const = default;
};

/// A tensor of floats, which are rounded to nearest for F16 and BF16. Throws Error where there are not as many as the
/// shape says, and for another type.
Tensor tensor(std::string name, std::vector<std::uint64_t> shape, std::span<const float> elements,
              ir::Type type = ir::Type::F32);
/// The elements of a tensor of F32, F16 or BF16. Throws Error for another type.
std::vector<float> floats(const Tensor& tensor);

/// The tensors of a file, in the order of their elements. Throws Error if it cannot be read, and for everything that
/// is not as the format says: a length of the header above 100 MB, JSON or UTF-8 that is wrong, names that occur twice,
/// types that ikat does not have, more than 64 extents, sizes that do not fit, gaps, overlaps, a file that is too short
/// or too long.
Tensors read(const std::filesystem::path& file);
/// The same of bytes in memory; `name` is what errors call them.
Tensors parse(std::span<const std::byte> bytes, const std::string& name);

/// Writes a file, or replaces one. The new one is made beside it, as FILE.PROCESS.partial or FILE.PROCESS-N.partial, a
/// name that nothing there has, and then takes its place: a full disk or a program that is ended leaves the old file as
/// it was. Tensors are sorted by type, those of longer
/// elements first, and by name: so elements are aligned, and the same tensors give the same file. Throws Error where
/// the file cannot be written, and for tensors that no file can hold: names that occur twice, or are not UTF-8, types
/// of several numbers, and bytes that are not as many as the shape says.
void write(const std::filesystem::path& file, const Tensors& tensors);
/// The bytes of that file.
std::vector<std::byte> serialise(const Tensors& tensors);

}  // namespace ikat::safetensors
