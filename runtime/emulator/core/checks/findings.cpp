// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/checks/findings.hpp"

namespace ikat::emulator {

bool Findings::has(std::string_view code, std::uint32_t line, std::uint64_t block) const {
    const std::lock_guard lock(mutex_);
    const auto found = found_.find({line, code});
    return found != found_.end() && found->second.block <= block;
}

void Findings::add(std::uint64_t block, Diagnostic diagnostic) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = found_.try_emplace({diagnostic.where.line, diagnostic.code}, Found{block, diagnostic});
    if (!is_new && block < at->second.block) at->second = {block, std::move(diagnostic)};
}

void Findings::each(std::uint64_t last, const std::function<void(const Diagnostic&)>& f) const {
    for (const auto& [key, found] : found_)
        if (found.block <= last) f(found.diagnostic);
}

}  // namespace ikat::emulator
