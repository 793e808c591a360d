// SPDX-License-Identifier: Apache-2.0
// Runs any text through parser, printer, checks and the emulator with a small budget: this must never crash.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/text/module.hpp"
#include "runtime/emulator/host/program.hpp"

namespace ikat::tests {

enum class Reached { Nothing, Parsed, Decoded, Ran };

/// How far the text got, and why no further. Any fault in it must be an Error.
inline Reached run_anything(std::string_view text, bool registers = false, std::string* why = nullptr) {
    Reached reached = Reached::Nothing;
    try {
        ptx::Module module = ptx::parse(text, "any.ptx");
        reached = Reached::Parsed;
        ptx::print(module);
        ptx::check(module);
        for (const ptx::Variable& variable : module.variables)  // large variables would only take long
            for (const auto& declarator : variable.declarators)
                for (const std::int64_t extent : declarator.extents)
                    if (extent > 4096) return reached;
        emulator::Memory memory;
        const auto p = memory.allocate(1024, "p"), q = memory.allocate(1024, "q");
        memory.write(p, std::vector<std::byte>(1024));
        memory.write(q, std::vector<std::byte>(1024));
        emulator::Program program(std::move(module), memory);
        for (const std::string& entry : program.entries()) {
            std::vector<std::byte> parameters;
            for (const auto& parameter : program.parameters(entry)) {
                parameters.resize(parameter.offset + parameter.bytes);
                const std::uint64_t value = parameter.offset == 0 ? p : parameter.offset == 8 ? q : 40;
                // A parameter may have size 0.
                const auto bytes = std::as_bytes(std::span(&value, 1)).first(std::min<std::size_t>(parameter.bytes, 8));
                std::ranges::copy(bytes, parameters.begin() + std::ptrdiff_t(parameter.offset));
            }
            reached = Reached::Decoded;
            emulator::Options options;
            options.launch_budget = 4000;
            options.checks.set(emulator::Check::Registers, registers ? emulator::Action::Error : emulator::Action::Off);
            options.output = [](std::string_view) {};
            const bool clusters = text.find(".reqnctapercluster") != text.npos;  // the corpus has some of two blocks
            const bool is_group = text.find(".maxntid 128") != text.npos;        // and one of a warpgroup
            program.run({.entry = entry,
                         .grid = {clusters ? 2u : 1u, 1, 1},
                         .block = {is_group ? 128u : 48u, 1, 1},
                         .dynamic_shared_bytes = 256,
                         .parameters = parameters},
                        options);
            reached = Reached::Ran;
        }
    } catch (const Error& error) {
        if (why) *why = error.what();
    }
    return reached;
}

}  // namespace ikat::tests
