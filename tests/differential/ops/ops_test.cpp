// SPDX-License-Identifier: Apache-2.0
// Every pure op × type × modifier on its edge values: compiled to PTX and run, the device gives the reference's results
// bit for bit, approximate ops within their ulp. The operands come from memory, or are constants: without passes
// immediates, with passes folded.
#include <algorithm>

#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/check/check.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/ops/reference.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {

using ir::Type, ir::Word;

runtime::Device& device() {
    static runtime::Device opened = open_device();
    return opened;
}
bool on_emulator() { return device().properties().kind == runtime::DeviceKind::Emulator; }

/// A buffer of words, each in the bytes of a type.
runtime::Buffer<std::uint8_t> upload(Type type, const std::vector<Word>& words) {
    const std::size_t size = ir::info(type).bytes;
    std::vector<std::uint8_t> bytes;
    for (Word word : words)
        for (std::size_t i = 0; i < size; ++i) bytes.push_back(std::uint8_t(word >> (8 * i)));
    return device().upload(bytes);
}

std::vector<Word> download(Type type, const runtime::Buffer<std::uint8_t>& buffer) {
    const std::size_t size = ir::info(type).bytes;
    const std::vector<std::uint8_t> bytes = buffer.download();
    std::vector<Word> words(bytes.size() / size);
    for (std::size_t i = 0; i < bytes.size(); ++i) words[i / size] |= Word{bytes[i]} << (8 * (i % size));
    return words;
}

void append(std::vector<std::byte>& parameters, auto number) {
    while (parameters.size() % sizeof number) parameters.push_back({});
    const auto* bytes = reinterpret_cast<const std::byte*>(&number);
    parameters.insert(parameters.end(), bytes, bytes + sizeof number);
}

void launch(const Compiled& compiled, std::uint32_t threads, std::span<const std::byte> parameters) {
    for (const Diagnostic& finding : ptx::check(ptx::parse(compiled.ptx, "op"))) FAIL_CHECK(to_string(finding));
    const runtime::Module module = device().load(compiled.ptx, "op");
    device().launch(module, compiled.info.name, runtime::grid(threads, 64), parameters);
}

/// The target to compile for, if not the device's: an older one, whose PTX the device runs, too.
std::string older_target;
std::string compiled_for() { return older_target.empty() ? device().properties().target : older_target; }

CompileOptions options(bool optimise) { return {.target = compiled_for(), .optimise = optimise, .verify_each = true}; }

/// Runs the kernel that reads its operands.
std::vector<Word> on_memory(const OpCase& test, const Arguments& arguments) {
    const auto types = test.argument_types();
    std::vector<runtime::Buffer<std::uint8_t>> buffers;
    for (std::size_t a = 0; a < types.size(); ++a) {
        std::vector<Word> words;
        for (const auto& list : arguments) words.push_back(list[a]);
        buffers.push_back(upload(stored_type(types[a]), words));
    }
    const Type type = stored_type(test.result_type());
    buffers.push_back(upload(type, std::vector<Word>(arguments.size(), 0xcdcdcdcdcdcdcdcd)));
    std::vector<std::byte> parameters;
    for (const auto& buffer : buffers) append(parameters, buffer.address());
    append(parameters, std::uint32_t(arguments.size()));
    launch(compile(memory_kernel(test), options(true)), std::uint32_t(arguments.size()), parameters);
    return download(type, buffers.back());
}

/// Runs the kernel with constant operands.
std::vector<Word> on_constants(const OpCase& test, const Arguments& arguments, bool optimise) {
    const Type type = stored_type(test.result_type());
    const auto result = upload(type, std::vector<Word>(arguments.size(), 0xcdcdcdcdcdcdcdcd));
    std::vector<std::byte> parameters;
    append(parameters, result.address());
    launch(compile(constant_kernel(test, arguments), options(optimise)), 1, parameters);
    return download(type, result);
}

std::string listed(const std::vector<Word>& words) {
    std::string out;
    char text[24];
    for (Word word : words)
        std::snprintf(text, sizeof text, " 0x%llx", static_cast<unsigned long long>(word)), out += text;
    return out;
}

/// Constants of which NVIDIA's assembler computes something else than its devices do: the driver's (580.159) rounds a
/// tie down, and ptxas 13.0 takes an odd number of 2^52 or more for the next one.
bool assembled_wrong(const OpCase& test, const std::vector<Word>& arguments) {
    const std::string name = test.name();
    return (name.starts_with("sub.f32") && arguments == std::vector<Word>{0xbfc00000, 0xbeaaaaaa}) ||
           (name.starts_with("convert.u64.f64") && arguments == std::vector<Word>{0x4330000000000001});
}

/// How many results are wrong; prints the first few.
int count_wrong(const OpCase& test, const Arguments& arguments, const std::vector<Word>& actual, std::string_view how) {
    int wrong = 0;
    REQUIRE(actual.size() == arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto reference = expected(test, arguments[i]);
        if (!reference || agrees(test.result_type(), *reference, actual[i], on_emulator())) continue;
        if (how != "from memory" && !on_emulator() && assembled_wrong(test, arguments[i])) continue;
        if (++wrong <= 3)
            UNSCOPED_INFO(test.name() << " " << how << ":" << listed(arguments[i]) << " gives" << listed({actual[i]})
                                      << " and should give" << listed({reference->bits}));
    }
    return wrong;
}

/// About `count` of the arguments, spread over all.
Arguments some_of(const Arguments& arguments, std::size_t count) {
    Arguments out;
    const std::size_t step = std::max<std::size_t>(1, arguments.size() / count) | 1;  // odd: not always one operand
    for (std::size_t i = 0; i < arguments.size(); i += step) out.push_back(arguments[i]);
    return out;
}

void check(const std::vector<OpCase>& cases) {
    for (const OpCase& test : cases) {
        if (!has_way(test, ptx::target(compiled_for()))) continue;
        const Arguments arguments = edge_arguments(test), some = some_of(arguments, 48);
        CHECK(count_wrong(test, arguments, on_memory(test, arguments), "from memory") == 0);
        CHECK(count_wrong(test, some, on_constants(test, some, false), "on immediates") == 0);
        CHECK(count_wrong(test, some, on_constants(test, some, true), "folded") == 0);
    }
}

TEST_CASE("arithmetic at edge values") {
    const auto cases = arithmetic_cases();
    REQUIRE(cases.size() > 150);
    check(cases);
}

TEST_CASE("conversions at edge values") {
    const auto cases = conversion_cases();
    REQUIRE(cases.size() > 400);
    check(cases);
}

/// What a GPU may give for an approximation beside what the emulator gives.
TEST_CASE("approximations are held to PTX's bounds") {
    const auto expected_of = [](ir::Op op, std::initializer_list<float> numbers) {
        const auto cases = arithmetic_cases();
        const auto found = std::ranges::find_if(cases, [&](const OpCase& test) {
            const ir::FloatInfo& fp = test.instruction.fp;
            return test.instruction.op == op && test.instruction.type == Type::F32 && !fp.ftz &&
                   (fp.approx || has(op, ir::AlwaysApprox));
        });
        REQUIRE(found != cases.end());
        std::vector<Word> words;
        for (const float x : numbers) words.push_back(ir::to_word(x));
        return expected(*found, words);
    };
    const auto may_be = [&](ir::Op op, float x, float y) {
        return agrees(Type::F32, expected_of(op, {x}).value(), ir::to_word(y), false);
    };
    CHECK(may_be(ir::Op::Log2, 1 + 0x1p-23f, 0));  // 1.4 * 2^-23
    CHECK(may_be(ir::Op::Log2, 1 - 0x1p-24f, -0x1p-22f));
    CHECK_FALSE(may_be(ir::Op::Log2, 1 + 0x1p-23f, 0x1p-21f));
    CHECK(may_be(ir::Op::Log2, 8, 3 + 0x1p-21f));
    CHECK_FALSE(may_be(ir::Op::Log2, 8, 3 + 0x1p-18f));
    CHECK_FALSE(expected_of(ir::Op::Div, {1, 0x1.8p126f}));  // 0 on a GPU
    CHECK_FALSE(expected_of(ir::Op::Div, {1, 0x1p-127f}));
    CHECK(expected_of(ir::Op::Div, {1, 0x1p126f}));
    CHECK(expected_of(ir::Op::Div, {1, 0}));
}

/// f16 and bf16 do without instructions that older targets lack.
TEST_CASE("small floats on older targets") {
    constexpr ir::TypeSet small = ir::set(Type::F16, Type::BF16) | ir::Packed | ir::Float8 | ir::PackedFloat8;
    constexpr const char* targets[] = {"sm_75", "sm_80", "sm_89"};
    std::vector<OpCase> cases = arithmetic_cases();
    std::ranges::copy(conversion_cases(), std::back_inserter(cases));
    std::erase_if(cases, [](const OpCase& test) {
        return !contains(small, test.instruction.type) && !contains(small, test.instruction.from);
    });
    REQUIRE(cases.size() > 100);
    for (std::size_t which = 0; which < std::size(targets); ++which) {
        older_target = targets[which];
        std::vector<OpCase> some;
        for (std::size_t number = 0; number < cases.size(); ++number)
            if (tests::is_for_target(number, which, std::size(targets))) some.push_back(cases[number]);
        check(some);
    }
    older_target.clear();
}

}  // namespace
}  // namespace ikat::test
