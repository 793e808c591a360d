// SPDX-License-Identifier: Apache-2.0
#include "tools/cuda_driver/kept_ptx.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/environment.hpp"
#include "codegen/support/write_file.hpp"

namespace ikat::cuda_driver {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
    const std::string_view asked = environment("IKAT_EMIT");
    if (!asked.empty()) return asked;
    std::error_code failed;
    const fs::path temporary = fs::temp_directory_path(failed);
    return (failed ? fs::path("/tmp") : temporary) / fmt::format("ikat-{}", getpid());
}

/// The stem of the file: long names, as C++ has them, are cut.
std::string stem(const std::string& name) {
    static auto& taken = *new std::map<std::string, int>;
    constexpr std::size_t longest = 100;
    const std::string cut = name.substr(0, longest);
    const int count = ++taken[cut];
    return count == 1 ? cut : fmt::format("{}.{}", cut, count);
}

}  // namespace

KeptPtx::KeptPtx(std::string text, const std::string& name)
    : text_(std::move(text)), path_((folder() / (stem(name) + ".ptx")).string()) {
    if (!environment("IKAT_EMIT").empty()) write();
}

bool KeptPtx::write() {
    if (is_written_ || path_.empty()) return is_written_;
    std::error_code failed;
    fs::create_directories(fs::path(path_).parent_path(), failed);
    if (failed) return false;
    try {
        write_file(path_, text_);
    } catch (const Error&) { return false; }
    is_written_ = true;
    text_ = {};
    return true;
}

}  // namespace ikat::cuda_driver
