// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/modules.hpp"

#include <fmt/format.h>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/text/link.hpp"
#include "tools/cli/text/files.hpp"

namespace ikat::cli {

ptx::Module read_modules(const std::vector<std::string>& paths, bool check, bool is_complete) {
    std::vector<ptx::Module> modules;
    for (const std::string& path : paths) {
        modules.push_back(ptx::parse(read_text(path), path));
        if (check) ptx::check_or_throw(modules.back(), {.is_complete = is_complete && paths.size() == 1});
    }
    if (modules.size() == 1) return std::move(modules[0]);
    ptx::Module linked = ptx::parse(ptx::print(ptx::link(modules)), fmt::format("{}", fmt::join(paths, "+")));
    if (check) ptx::check_or_throw(linked, {.is_complete = is_complete});
    return linked;
}

}  // namespace ikat::cli
