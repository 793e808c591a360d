// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/modules.hpp"

#include <fmt/format.h>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/text/link.hpp"
#include "tools/cli/files.hpp"

namespace ikat::cli {

nvptx::Module read_modules(const std::vector<std::string>& paths, bool check, bool is_complete) {
    std::vector<nvptx::Module> modules;
    for (const std::string& path : paths) {
        modules.push_back(nvptx::parse(read_text(path), path));
        if (check) nvptx::check_or_throw(modules.back(), {.is_complete = is_complete && paths.size() == 1});
    }
    if (modules.size() == 1) return std::move(modules[0]);
    nvptx::Module linked = nvptx::parse(nvptx::print(nvptx::link(modules)), fmt::format("{}", fmt::join(paths, "+")));
    if (check) nvptx::check_or_throw(linked, {.is_complete = is_complete});
    return linked;
}

}  // namespace ikat::cli
