// SPDX-License-Identifier: Apache-2.0
// A memory and a program in a few lines, for tests of the emulator.
//
//     Machine machine;
//     const auto x = machine.buffer<float>("x", {1, 2, 3});
//     machine.run(text, {.block = {32, 1, 1}}, x, 3u);
//     CHECK(machine.get<float>(x, 3) == ...);
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/host/program.hpp"
#include "tests/catch.hpp"

namespace ikat::tests {

/// The options of a Machine, to which a program may add tools.
inline emulator::Options& options_of_machines() {
    static emulator::Options options;
    return options;
}

struct Machine {
    emulator::Memory memory;
    emulator::Options options = options_of_machines();
    emulator::Statistics statistics;
    std::string printed;
    std::string code;                  // of the last failure
    std::vector<Diagnostic> warnings;  // and notes, of the last run
    std::vector<Location> source_lines;

    template <class T>
    std::uint64_t buffer(std::string_view name, const std::vector<T>& values) {
        const std::uint64_t address = memory.allocate(values.size() * sizeof(T), name);
        memory.write(address, std::as_bytes(std::span(values)));
        return address;
    }
    template <class T>
    std::uint64_t empty(std::string_view name, std::size_t count) {
        return memory.allocate(count * sizeof(T), name);
    }
    template <class T>
    std::vector<T> get(std::uint64_t address, std::size_t count) const {
        std::vector<T> values(count);
        memory.read(address, std::as_writable_bytes(std::span(values)));
        return values;
    }

    void check_registers(bool on) {
        options.checks.set(emulator::Check::Registers, on ? emulator::Action::Error : emulator::Action::Off);
    }

    /// Runs the only kernel of the text.
    template <class... Arguments>
    void run(const std::string& text, emulator::Launch launch, Arguments... arguments) {
        std::vector<std::byte> parameters;
        const auto add = [&](const auto& value) {
            parameters.resize((parameters.size() + sizeof value - 1) / sizeof value * sizeof value);
            const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
            parameters.insert(parameters.end(), bytes, bytes + sizeof value);
        };
        (add(arguments), ...);
        emulator::Program program(ptx::parse(text, "kernel.ptx"), memory, source_lines);
        const std::string entry = program.entries().front();
        if (launch.entry.empty()) launch.entry = entry;
        launch.parameters = parameters;
        options.output = [this](std::string_view part) { printed += part; };
        options.warning = [this](const Diagnostic& warning) { warnings.push_back(warning); };
        warnings.clear();
        statistics = program.run(launch, options);
    }

    /// The message that run() throws.
    template <class... Arguments>
    std::string failure(const std::string& text, emulator::Launch launch, Arguments... arguments) {
        try {
            run(text, launch, arguments...);
        } catch (const Error& error) {
            code = error.diagnostics().front().code;
            return error.what();
        }
        return "no failure";
    }
};

/// A kernel around `body`, with the registers most tests need. Parameters p0, p1, p2 are 64-bit, n is 32-bit.
inline std::string kernel(std::string_view body, std::string_view module_scope = "") {
    return ".version 8.0\n.target sm_80\n.address_size 64\n" + std::string(module_scope) +
           "\n.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u32 n)\n{\n"
           "    .reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %d<32>;\n" +
           std::string(body) + "\n}\n";
}

}  // namespace ikat::tests
