// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/loaded_module.hpp"

namespace ikat::emulator {
namespace {

const ptx::Target* target_of(const ptx::Module& module) {
    return module.target.empty() ? nullptr : ptx::find_target(module.text(module.target[0]));
}

}  // namespace

LoadedModule::LoadedModule(ModuleText text, Memory& memory, std::optional<ContextId> context)
    : memory_(memory),
      target_(target_of(text.module)),
      name_(std::move(text.name)),
      origin_(text.origin),
      context_(context),
      program_(std::move(text.module), memory, std::move(text.source_lines)) {}

LoadedModule::~LoadedModule() {
    for (const auto& [name, address] : shadows_) memory_.release(address);
}

Program::Variable LoadedModule::variable(const std::string& name) {
    Program::Variable found = program_.variable(name);
    if (found.address) return found;
    const std::lock_guard lock(mutex_);
    auto shadow = shadows_.find(name);
    if (shadow == shadows_.end()) {
        const std::vector<std::byte> contents = program_.constant(name);
        shadow = shadows_.emplace(name, memory_.allocate(contents.size(), name)).first;
        memory_.write(shadow->second, contents);
    }
    found.address = shadow->second;
    return found;
}

void LoadedModule::use_shadows() {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, address] : shadows_) {
        std::vector<std::byte> contents(memory_.buffer_of(address).bytes);
        memory_.read(address, contents);
        program_.set_variable(name, contents);
    }
}

}  // namespace ikat::emulator
