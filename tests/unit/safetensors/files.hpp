// SPDX-License-Identifier: Apache-2.0
// Files of tensors for tests.
#pragma once
#include <cstring>
#include <ikat/safetensors.hpp>
#include <string>
#include <string_view>

namespace ikat::tests {

/// A file whose header is this text, as it is, followed by so many bytes.
inline std::string tensor_file(std::string_view header, std::size_t bytes) {
    const std::uint64_t length = header.size();
    std::string out(8, '\0');
    std::memcpy(out.data(), &length, 8);
    out += header;
    for (std::size_t i = 0; i < bytes; ++i) out += char(i);
    return out;
}

inline safetensors::Tensors parsed(std::string_view file) {
    return safetensors::parse(std::as_bytes(std::span(file)), "a.safetensors");
}

/// Two tensors, metadata, and names that JSON escapes, as version 0.8.0 of Python's safetensors writes them.
inline std::string file_of_python() {
    constexpr std::string_view hex =
        "d8010000000000007b225f5f6d657461646174615f5f223a7b226d616465206279223a2261205c22746573745c2220c3bc22"
        "7d2c226e223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c"
        "385d7d2c22612e776569676874223a7b226474797065223a22463332222c227368617065223a5b322c335d2c22646174615f"
        "6f666673657473223a5b382c33325d7d2c22656d707479223a7b226474797065223a22463332222c227368617065223a5b30"
        "2c335d2c22646174615f6f666673657473223a5b33322c33325d7d2c2275223a7b226474797065223a22553332222c227368"
        "617065223a5b315d2c22646174615f6f666673657473223a5b33322c33365d7d2c22622e62696173223a7b22647479706522"
        "3a22463136222c227368617065223a5b325d2c22646174615f6f666673657473223a5b33362c34305d7d2c22627974657322"
        "3a7b226474797065223a225538222c227368617065223a5b335d2c22646174615f6f666673657473223a5b34302c34335d7d"
        "2c2271756f5c2274655c6ec3a95c7530303031223a7b226474797065223a22424f4f4c222c227368617065223a5b325d2c22"
        "646174615f6f666673657473223a5b34332c34355d7d7d2020202020202007000000000000000000803f0000004000004040"
        "000080400000a0400000c8c005000000003e00c00102ff0100";
    std::string out;
    for (std::size_t i = 0; i < hex.size(); i += 2) out += char(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
    return out;
}

}  // namespace ikat::tests
