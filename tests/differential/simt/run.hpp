// SPDX-License-Identifier: Apache-2.0
// Test helpers: run a kernel on one block, with upload and download of its buffers; assemble it with ptxas.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/text/parse.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/table/target.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/ptxas.hpp"

#include <ikat/ikat.hpp>

namespace ikat::test {

inline runtime::Device& simt_device() {
    static runtime::Device opened = open_device();
    return opened;
}

/// Launches blocks of `threads` threads on a buffer that contains `initial`; returns its contents afterwards.
template <class T, class... P, class... A>
std::vector<T> run(const Kernel<InOut<T>, P...>& kernel, std::uint32_t blocks, std::uint32_t threads,
                   const std::vector<T>& initial, A&&... arguments) {
    auto buffer = simt_device().upload(initial, "x");
    simt_device().launch(kernel, runtime::Grid{{blocks}, {threads}}, buffer, arguments...);
    return buffer.download();
}

/// Compiles a kernel with these options and returns the contents of its first parameter, a buffer; `further` are the
/// bytes of the other parameters.
template <class T, class... P>
std::vector<T> run_compiled(const Kernel<InOut<T>, P...>& kernel, const CompileOptions& options, std::uint32_t threads,
                            const std::vector<T>& initial, std::span<const std::uint32_t> further = {}) {
    const Compiled compiled = compile(kernel.ast(), options);
    const auto buffer = simt_device().upload(initial, "x");
    const std::uint64_t address = buffer.address();
    std::vector<std::byte> parameters;
    for (const auto part : {std::as_bytes(std::span(&address, 1)), std::as_bytes(further)})
        parameters.insert(parameters.end(), part.begin(), part.end());
    simt_device().launch(simt_device().load(compiled.ptx, "compiled"), compiled.info.name, {{1}, {threads}},
                         parameters);
    return buffer.download();
}

/// Compiles and optimises IR that the language would not generate; returns the contents of its only buffer.
inline std::vector<std::uint32_t> run_ir(const char* text, const std::vector<std::uint32_t>& initial,
                                         std::uint32_t threads = 1) {
    const Compiled compiled = compile(ir::parse_function(text), {.target = "sm_80"});
    const auto y = simt_device().upload(initial, "y");
    const std::uint64_t address = y.address();
    simt_device().launch(simt_device().load(compiled.ptx, "ir"), compiled.info.name,
                         {.blocks = {1}, .threads = {threads}, .dynamic_shared_bytes = 64},
                         std::as_bytes(std::span(&address, 1)));
    return y.download();
}

/// On the emulator under several seeds, with these checks; on a GPU once.
template <class F>
void under_seeds(const char* target, F&& run, std::string_view checks = {}) {
    const bool emulates = simt_device().properties().kind == runtime::DeviceKind::Emulator;
    if (!emulates) return run(simt_device());
    for (int seed = 0; seed < 8; ++seed) {
        INFO(target << ", seed " << seed);
        const std::string schedule = std::to_string(seed);
        runtime::Device device = open_device({.target = target, .schedule = schedule, .check = checks});
        run(device);
    }
}

/// Checks that NVIDIA's assembler accepts the kernel for each target from sm_`lowest` on, without a warning.
template <class... P>
void check_assembled(const Kernel<P...>& kernel, std::uint32_t lowest) {
    static const bool is_skipped = tests::skip_without_ptxas();
    for (const char* target : {"sm_75", "sm_80", "sm_90"}) {
        if (is_skipped || ptx::target(target).number < lowest) continue;
        const std::string ptx = compile(kernel.ast(), {.target = target}).ptx;
        const tests::PtxasReport report = tests::assemble(ptx, target);
        INFO(report.log << "\n" << ptx);
        CHECK(report.assembled);
        CHECK_FALSE(report.warned);
    }
}

}  // namespace ikat::test
