// SPDX-License-Identifier: Apache-2.0
// What is in flight is not read: the verifier finds it in what a pass leaves that moves a read or loses a wait.
#include <algorithm>

#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/verify.hpp"
#include "tests/catch.hpp"

using namespace ikat::ir;

namespace {

Function parsed(const std::string& body) {
    return parse(
               "kernel @k(%x: in f32*, %y: out f32*, %a: u64, %n: u32) {\n"
               "  shared $s: f32[64] align 16\n  shared $t: f32[64] align 16\n  shared $b: u64[1]\n^0:\n"
               "  %x = param.u64 %x\n  %y = param.u64 %y\n  %a = param.u64 %a\n  %n = param.u32 %n\n"
               "  %s = symbol.u32 $s\n  %t = symbol.u32 $t\n  %b = symbol.u32 $b\n  %all = const.u32 16\n"
               "  %p = lt.u32 %n, %all\n" +
                   body + "}\n",
               "flight.ir")
        .functions.at(0);
}
std::string found(const std::string& body) {
    const auto all = problems(parsed(body));
    return all.empty() ? "" : all[0].message.substr(all[0].message.rfind(": ") + 2);
}

constexpr const char* copy = "it reads what a copy in flight is still to write";
constexpr const char* product = "it reads what a product in flight is still to write";

/// A pass that is wrong: it loses the waits, and uses what they passed on as it was.
void lose_waits(Function& fn) {
    std::vector<std::pair<Value, Value>> instead;
    for (const Block block : fn.blocks())
        std::erase_if(fn[block].instructions, [&](Inst inst) {
            if (conduct(fn[inst].op, fn[inst].attribute).flight.awaits == Work::None) return false;
            for (std::size_t i = 0; i < fn.results(inst).size(); ++i)
                instead.emplace_back(fn.results(inst)[i], fn.operands(inst)[i]);
            return true;
        });
    for (const Block block : fn.blocks())
        for (const Inst inst : fn[block].instructions)
            fn.each_use(inst, [&](Value& value) {
                for (const auto& [from, to] : instead)
                    if (value == from) value = to;
            });
}
/// ... and one that moves loads up across what comes before them, back to another load's place.
void hoist_loads(Function& fn) {
    auto& list = fn[fn.entry()].instructions;
    for (std::size_t i = 1; i < list.size(); ++i)
        for (std::size_t at = i; at > 0 && fn[list[at]].op == Op::Load && fn[list[at - 1]].op != Op::Const &&
                                 fn[list[at - 1]].op != Op::Lt && fn[list[at - 1]].op != Op::CopyAsync;
             --at)
            std::swap(list[at], list[at - 1]);
}

constexpr const char* right_copy =
    "  copy_async 16.cg, [%s], [%x], %all\n  copy_commit\n  copy_wait 0\n  %0 = load.f32 shared [%s]\n"
    "  store.f32 global [%y], %0\n  return\n";
constexpr const char* right_product =
    "  wgmma_fence\n  %0, %1, %2, %3 = wgmma.f32 m64n8k16.f16.f16.f32.overwrite, %a, %a\n  wgmma_commit\n"
    "  %4: f32, %5: f32, %6: f32, %7: f32 = wgmma_wait 0, %0, %1, %2, %3 tie 0=0 count 4\n"
    "  store.f32 global [%y], %4\n  return\n";

}  // namespace

TEST_CASE("a pass that loses a wait, or moves a read before it, is found") {
    for (const auto& [body, what] : {std::pair(right_copy, copy), {right_product, product}}) {
        Function fn = parsed(body);
        CHECK(complaint(fn).empty());
        lose_waits(fn);
        CHECK(complaint(fn).find(what) != std::string::npos);
    }
    Function fn = parsed(right_copy);
    hoist_loads(fn);
    CHECK(complaint(fn).find(copy) != std::string::npos);
}

TEST_CASE("a read of what a copy is still to write is refused") {
    const std::string begin = "  copy_async 16.cg, [%s+16], [%x], %all\n";
    const std::string end = "  store.f32 global [%y], %0\n  return\n", load = "  %0 = load.f32 shared [%s+28]\n" + end;
    CHECK(found(begin + load) == copy);
    CHECK(found(begin + "  copy_commit\n  copy_wait 1\n" + load) == copy);
    CHECK(found(begin + "  copy_wait 0\n" + load) == copy);  // it is in no group
    CHECK(found(begin + "  barrier 0\n" + load) == copy);
    CHECK(found(begin + "  copy_wait all\n" + load).empty());
    CHECK(found(begin + "  copy_commit\n  copy_commit\n  copy_wait 1\n" + load).empty());
    CHECK(found(begin + "  copy_arrive.u32 [%b]\n" + load).empty());
    CHECK(found(begin + "  opaque \"cp.async.wait_all;\"\n" + load).empty());
    // Elsewhere in the array there is nothing but what copies bring.
    const std::string elsewhere = "  %0 = load.f32 shared [%s+64]\n" + end;
    CHECK(found(begin + elsewhere) == copy);
    CHECK(found("  %c = const.f32 1.0\n  store.f32 shared [%s+64], %c\n" + begin + elsewhere).empty());
    CHECK(found("  copy_wait 0\n" + begin + elsewhere).empty());
    CHECK(found(begin + "  %0 = load.f32 shared [%t]\n" + end).empty());
}

TEST_CASE("what is waited for on some way may be read") {
    const auto in_arms = [](const std::string& one, const std::string& other) {
        return "  copy_async 16.cg, [%s], [%x], %all\n  copy_commit\n  branch %p, ^1, ^2\n^1:\n" + one +
               "  jump ^3\n^2:\n" + other +
               "  jump ^3\n^3:\n  %0 = load.f32 shared [%s]\n  store.f32 global [%y], %0\n  return\n";
    };
    CHECK(found(in_arms("", "")) == copy);
    CHECK(found(in_arms("  copy_wait 0\n", "")).empty());
    CHECK(found(in_arms("  copy_wait 1\n", "  copy_wait 1\n")) == copy);
    // Loops: the copy of the round before has been waited for.
    CHECK(found("  copy_async 16.cg, [%s], [%x], %all\n  copy_commit\n  jump ^1\n^1:\n  copy_wait 0\n"
                "  %0 = load.f32 shared [%s]\n  store.f32 global [%y], %0\n"
                "  copy_async 16.cg, [%s], [%x], %all\n  copy_commit\n  branch %p, ^1, ^2\n^2:\n  return\n")
              .empty());
}

TEST_CASE("a bulk load is in flight until others may have waited for it") {
    const std::string begin = "  bulk_copy load, %s, %x, %all, %b\n";
    const std::string load = "  %0 = load.f32 shared [%s]\n  store.f32 global [%y], %0\n  return\n";
    CHECK(found(begin + load) == copy);
    CHECK(found(begin + "  barrier 0\n" + load).empty());
    CHECK(found(begin + "  %zero = const.u32 0\n  %q = mbarrier.u32 try, [%b], %zero\n" + load).empty());
}

TEST_CASE("a read of what a product is still to write is refused") {
    const std::string begin = "  %0, %1, %2, %3 = wgmma.f32 m64n8k16.f16.f16.f32.overwrite, %a, %a\n  wgmma_commit\n";
    const auto wait = [](const std::string& groups) {
        return "  %4: f32, %5: f32, %6: f32, %7: f32 = wgmma_wait " + groups + ", %0, %1, %2, %3 tie 0=0 count 4\n";
    };
    const std::string store = "  store.f32 global [%y], %4\n  return\n";
    CHECK(found(begin + "  store.f32 global [%y], %0\n  return\n") == product);
    CHECK(found(begin + wait("0") + store).empty());
    CHECK(found(begin + wait("0") + "  store.f32 global [%y], %0\n  return\n").empty());
    CHECK(found(begin + wait("1") + store) == product);
    CHECK(found(begin + "  wgmma_commit\n" + wait("1") + store).empty());
    const std::string more =
        "  %8, %9, %10, %11 = wgmma.f32 m64n8k16.f16.f16.f32, %a, %a, %0, %1, %2, %3 tie 0=2 count 4\n";
    CHECK(found(begin + more + "  store.f32 global [%y], %8\n  return\n") == product);
    // Round a loop: in flight if it is from both sides.
    const auto loop = [&](const std::string& first) {
        return begin + "  jump ^1(" + first +
               ")\n^1(%c0: f32, %c1: f32, %c2: f32, %c3: f32):\n"
               "  %d0, %d1, %d2, %d3 = wgmma.f32 m64n8k16.f16.f16.f32, %a, %a, %c0, %c1, %c2, %c3 tie 0=2 count 4\n"
               "  branch %p, ^1(%d0, %d1, %d2, %d3), ^2(%d0)\n^2(%e: f32):\n  store.f32 global [%y], %e\n  return\n";
    };
    CHECK(found(loop("%0, %1, %2, %3")) == product);
}
