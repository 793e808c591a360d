// SPDX-License-Identifier: Apache-2.0
#include "runtime/emit.hpp"

#include <filesystem>
#include <map>
#include <mutex>

#include "codegen/report/report.hpp"
#include "codegen/support/diagnostic.hpp"
#include "codegen/support/environment.hpp"
#include "codegen/support/write_file.hpp"

namespace ikat::runtime {
namespace {

/// The stem of a kernel's file names: its name, followed by a number from the second kernel of that name in this
/// process on.
std::string stem(const std::string& name) {
    static std::mutex mutex;
    static std::map<std::string, int> taken;
    const std::lock_guard lock(mutex);
    const int count = ++taken[name];
    return count == 1 ? name : name + '.' + std::to_string(count);
}

}  // namespace

std::optional<std::string> emit_folder() {
    const std::string_view folder = environment("IKAT_EMIT");
    return folder.empty() ? std::nullopt : std::optional<std::string>(folder);
}

void emit_files(const std::string& folder, const Compiled& compiled) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed)
        throw Error("IKAT_EMIT: the folder '" + folder + "' cannot be created: " + failed.message(),
                    "name a writable folder, or unset IKAT_EMIT");
    const std::string path = (std::filesystem::path(folder) / stem(compiled.info.name)).string();
    for (const Compiled::Stage& stage : compiled.stages)
        if (stage.name == "ssa" || stage.name == "opt") write_file(path + '.' + stage.name + ".ir", stage.text);
    write_file(path + ".ptx", file_text(compiled));
    write_file(path + ".report.txt", to_text(report(compiled)));
}

}  // namespace ikat::runtime
