// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <ranges>

namespace ikat {

std::string_view environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? std::string_view(value) : std::string_view();
}

bool is_program(const std::string& path) {
    std::error_code failed;
    return std::filesystem::is_regular_file(path, failed) && access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> find_program(std::string_view name, std::string_view last_folder) {
    const auto in_folder = [&](std::string_view folder) -> std::optional<std::string> {
        std::string path = (std::filesystem::path(folder.empty() ? "." : folder) / name).string();
        return is_program(path) ? std::optional(std::move(path)) : std::nullopt;
    };
    for (const auto folder : std::views::split(environment("PATH"), ':'))
        if (auto found = in_folder(std::string_view(folder))) return found;
    return last_folder.empty() ? std::nullopt : in_folder(last_folder);
}

}  // namespace ikat
