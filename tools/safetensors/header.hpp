// SPDX-License-Identifier: Apache-2.0
// The header of a file of tensors: JSON that says where each tensor is.
//
//     {"__metadata__":{"made by":"ikat"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/type.hpp"

namespace ikat::safetensors {

/// The longest header that readers of the format accept, in bytes.
inline constexpr std::uint64_t longest_header = 100'000'000;

/// A tensor of a header: its bytes are those from `begin` to `end` behind the header.
struct Entry {
    std::string name{};
    ir::Type type = ir::Type::Void;
    std::vector<std::uint64_t> shape{};
    std::uint64_t begin = 0, end = 0;
};
struct Header {
    std::vector<Entry> entries{};
    std::map<std::string, std::string> metadata{};
};

/// The header in this text, with entries in the order of their bytes, of which there are `bytes`. Throws Error, which
/// calls the file by its name, unless all is as the format says.
Header header_in(std::string_view text, std::uint64_t bytes, const std::string& file);
/// The text of a header, with spaces at its end: a multiple of 8 bytes. Throws Error for names that are not UTF-8.
std::string text_of(const Header& header);

/// How files call a type; nothing for one that they do not have.
std::string_view name_of(ir::Type type);
/// A number for each type by which tensors are sorted, those of longer elements first.
int rank_of(ir::Type type);
/// The bytes of a tensor, or nothing if they are 2^64 or more.
std::optional<std::uint64_t> bytes_of(ir::Type type, const std::vector<std::uint64_t>& shape);

}  // namespace ikat::safetensors
