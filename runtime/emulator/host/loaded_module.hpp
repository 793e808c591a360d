// SPDX-License-Identifier: Apache-2.0
// A module that a device has loaded: the program and what the host knows of it.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "codegen/ptx/table/target.hpp"
#include "runtime/emulator/host/host_options.hpp"
#include "runtime/emulator/host/ids.hpp"

namespace ikat::emulator {

/// What a device is given to load.
struct ModuleText {
    ptx::Module module;
    std::string name{};  // of the file, for messages
    Origin origin = Origin::Own;
    std::vector<Location> source_lines{};
};

class LoadedModule {
public:
    /// Without a context it belongs to none, and is loaded until it is unloaded.
    LoadedModule(ModuleText text, Memory& memory, std::optional<ContextId> context);
    ~LoadedModule();
    LoadedModule(const LoadedModule&) = delete;
    LoadedModule& operator=(const LoadedModule&) = delete;

    Program& program() { return program_; }
    const std::string& name() const { return name_; }
    const ptx::Target* target() const { return target_; }
    Origin origin() const { return origin_; }
    std::optional<ContextId> context() const { return context_; }

    /// Where the host reads and writes a variable: of a .const one, device memory that use_shadows() copies into it.
    /// Throws Error if there is none of that name.
    Program::Variable variable(const std::string& name);
    void use_shadows();

private:
    Memory& memory_;
    const ptx::Target* const target_;  // that it names, if it is known
    const std::string name_;
    const Origin origin_;
    const std::optional<ContextId> context_;
    Program program_;
    std::map<std::string, std::uint64_t> shadows_;
    std::mutex mutex_;
};

}  // namespace ikat::emulator
