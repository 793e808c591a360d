// SPDX-License-Identifier: Apache-2.0
// Random IR compiled to PTX and run on the emulator, two blocks of two warps: passes and colouring give the same
// results as no passes and one register per value, also when threads interact; without interaction, the same as the IR
// interpreter. IKAT_FUZZ_COUNT sets how many, IKAT_FUZZ_SEED the first. Failures are shrunk, and the pass at fault is
// named.
#include "codegen/pipeline/compile.hpp"
#include "codegen/ir/text/print.hpp"
#include "runtime/device.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/guilty.hpp"
#include "tests/fuzz/random_ir.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/fuzz/shrink.hpp"
#include "tests/interpreter/interpreter.hpp"

namespace ikat::test {
namespace {

constexpr std::uint32_t threads = 64, blocks = 2;
using Bytes = std::vector<std::uint8_t>;

runtime::Device& device() {
    static runtime::Device opened = runtime::Device::open({.device = "emulator", .step_budget = 1 << 16});
    return opened;
}

/// The kernel's inputs, from the seed.
struct Inputs {
    Bytes in = Bytes(RandomIr::in_bytes), out = Bytes(blocks * threads * RandomIr::slice_bytes);
    std::uint32_t a;
    float b = 1.5f;
    std::int64_t c;

    explicit Inputs(std::uint32_t seed) {
        std::mt19937 random(seed ^ 0x51ed270bu);
        for (Bytes* bytes : {&in, &out})
            for (std::uint8_t& byte : *bytes) byte = random() % 4 ? std::uint8_t(random()) : 0x7f;
        a = random() % 100;
        c = std::int64_t(random()) - (1 << 30);
    }
};

void append(std::vector<std::byte>& parameters, auto number) {
    while (parameters.size() % sizeof number) parameters.push_back({});
    const auto* bytes = reinterpret_cast<const std::byte*>(&number);
    parameters.insert(parameters.end(), bytes, bytes + sizeof number);
}

Bytes run(const ir::Function& fn, const Inputs& inputs, const CompileOptions& options) {
    const Compiled compiled = compile(fn, options);
    const auto in = device().upload(inputs.in), out = device().upload(inputs.out);
    std::vector<std::byte> parameters;
    append(parameters, in.address());
    append(parameters, out.address());
    append(parameters, inputs.a);
    append(parameters, inputs.b);
    append(parameters, inputs.c);
    const runtime::Module module = device().load(compiled.ptx, "random");
    // Kernels not made for several blocks choose their slice by tid.x alone.
    const std::uint32_t used = fn.symbols.empty() ? 1 : blocks;
    device().launch(module, compiled.info.name, runtime::grid(used * threads, threads), parameters);
    return out.download();
}

/// The slice of one thread as computed by the interpreter.
Bytes interpreted(const ir::Function& fn, const Inputs& inputs, std::uint32_t thread) {
    constexpr std::uint64_t in = 1 << 16, out = 1 << 20;
    Thread it;
    it.scalars = {in, out, inputs.a, ir::to_word(inputs.b), ir::to_word(inputs.c)};
    it.special.assign(std::size(ir::special_register_names), 0);
    it.special[0] = thread;
    for (std::size_t i = 0; i < inputs.in.size(); ++i) it.memory[in + i] = inputs.in[i];
    for (std::size_t i = 0; i < inputs.out.size(); ++i) it.memory[out + i] = inputs.out[i];
    REQUIRE(interpret(fn, it) == End::Returned);
    Bytes slice;
    for (std::uint32_t i = 0; i < RandomIr::slice_bytes; ++i)
        slice.push_back(it.memory[out + thread * RandomIr::slice_bytes + i]);
    return slice;
}

}  // namespace

TEST_CASE("passes and allocation change no result of two blocks") {
    for (std::uint32_t seed = first_seed(), end = seed + seed_count(60); seed < end; ++seed) {
        const ir::Function fn = RandomIr(seed, {.convergent = true, .together = seed % 2 == 1})();
        const Inputs inputs(seed);
        if (run(fn, inputs, plain) == run(fn, inputs, full)) continue;
        const auto differs = [&](const ir::Function& candidate) {
            try {
                return run(candidate, inputs, plain) != run(candidate, inputs, full);
            } catch (const Error&) { return false; }  // shrunk too far: not a valid program any more
        };
        const ir::Function small = shrunk(fn, differs);
        const Bytes expected = run(small, inputs, plain);
        const auto right = [&](const CompileOptions& options) { return run(small, inputs, options) == expected; };
        FAIL("seed " << seed << ": " << guilty(small, right) << " changes the result of\n" << print(small));
    }
}

TEST_CASE("the PTX computes what the IR says") {
    for (std::uint32_t seed = first_seed(), end = seed + seed_count(60); seed < end; ++seed) {
        const ir::Function fn = RandomIr(seed, {.modifiers = false})();
        const Inputs inputs(seed);
        const Bytes actual = run(fn, inputs, seed % 2 ? full : plain);
        for (std::uint32_t thread : {0u, 1u, 31u, 63u}) {
            const auto begin = actual.begin() + std::ptrdiff_t(thread * RandomIr::slice_bytes);
            if (Bytes(begin, begin + RandomIr::slice_bytes) != interpreted(fn, inputs, thread))
                FAIL("seed " << seed << ": thread " << thread << " computes something other than\n" << print(fn));
        }
    }
}

}  // namespace ikat::test
