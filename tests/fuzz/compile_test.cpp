// SPDX-License-Identifier: Apache-2.0
// Random IR as PTX on the emulator, two warps of it: with the passes and colouring as without passes and with a
// register for each value; and, without what a lone thread cannot do, as the interpreter of the IR says. IKAT_FUZZ sets
// how many.
#include <cstdlib>

#include "codegen/compile.hpp"
#include "codegen/ir/print.hpp"
#include "runtime/device.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/random_ir.hpp"
#include "tests/interpreter/interpreter.hpp"

namespace ikat::test {
namespace {

constexpr std::uint32_t threads = 64;
using Bytes = std::vector<std::uint8_t>;

std::uint32_t seeds() {
    const char* wish = std::getenv("IKAT_FUZZ");
    return wish ? std::uint32_t(std::atoi(wish)) : 60;
}

runtime::Device& device() {
    static runtime::Device opened = runtime::Device::open({.device = "emulator"});
    return opened;
}

/// What the kernel is given, from the seed.
struct Inputs {
    Bytes in = Bytes(RandomIr::in_bytes), out = Bytes(threads * RandomIr::slice_bytes);
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
    device().launch(module, compiled.name, runtime::grid(threads, threads), parameters);
    return out.download();
}

/// The slice that one thread of the interpreter leaves.
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

const CompileOptions plain{
    .target = "sm_90", .allocation = regalloc::Method::Simplest, .optimise = false, .verify_each = true};
const CompileOptions full{
    .target = "sm_90", .allocation = regalloc::Method::Colouring, .optimise = true, .verify_each = true};

}  // namespace

TEST_CASE("passes and allocation change no result of two warps") {
    for (std::uint32_t seed = 0; seed < seeds(); ++seed) {
        const ir::Function fn = RandomIr(seed, {.convergent = true})();
        const Inputs inputs(seed);
        if (run(fn, inputs, plain) != run(fn, inputs, full))
            FAIL("seed " << seed << ": passes or allocation change the result of\n" << print(fn));
    }
}

TEST_CASE("the PTX computes what the IR says") {
    for (std::uint32_t seed = 0; seed < seeds(); ++seed) {
        const ir::Function fn = RandomIr(seed, {.modifiers = false})();
        const Inputs inputs(seed);
        const Bytes actual = run(fn, inputs, seed % 2 ? full : plain);
        for (std::uint32_t thread : {0u, 1u, 31u, 63u}) {
            const auto begin = actual.begin() + std::ptrdiff_t(thread * RandomIr::slice_bytes);
            if (Bytes(begin, begin + RandomIr::slice_bytes) != interpreted(fn, inputs, thread))
                FAIL("seed " << seed << ": thread " << thread << " computes something else than\n" << print(fn));
        }
    }
}

}  // namespace ikat::test
