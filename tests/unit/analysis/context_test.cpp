// SPDX-License-Identifier: Apache-2.0
// What is known of a function is found once and kept until a change makes it stale; a pass that does not say what it
// changed is found.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "codegen/analysis/context.hpp"
#include "codegen/ir/edit/split.hpp"
#include "codegen/ir/text/parse.hpp"
#include "codegen/nvptx/target.hpp"
#include "codegen/pipeline/stages.hpp"
#include "tests/catch.hpp"

namespace {

using namespace ikat;
using analysis::Changed, analysis::Context;

ir::Function counting() {
    return ir::parse_function(R"(kernel @k(%x: out u32*, %n: u32) {
^0:
  %0 = param.u64 %x
  %1 = param.u32 %n
  %2 = special.u32 tid.x
  %3 = const.u32 0
  jump ^1(%3)
^1(%4: u32):
  %5 = const.u32 1
  %6 = add.u32 %4, %5
  %7 = lt.u32 %6, %1
  branch %7, ^1(%6), ^2
^2:
  store.u32 global [%0], %6
  return
})");
}

/// What the program says when it aborts; "" if it does not.
std::string said_when_aborting(auto&& f) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, SIG_DFL);  // Catch would report them
        f();
        _exit(0);
    }
    close(ends[1]);
    std::string out;
    char part[256];
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) out.append(part, std::size_t(n));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? out : "";
}

// Passes that say less than they do.
Changed splits_and_says_nothing(ir::Function& fn, Context&, const Target*) {
    ir::split_edge(fn, fn.entry(), 0);
    return Changed::Nothing;
}
Changed splits_and_says_instructions(ir::Function& fn, Context&, const Target*) {
    ir::split_edge(fn, fn.entry(), 0);
    return Changed::Instructions;
}
Changed forgets_to_say(ir::Function& fn, Context&, const Target*) {
    fn[fn.entry()].instructions.pop_back();
    return Changed::Nothing;
}
Changed says_all(ir::Function& fn, Context&, const Target*) {
    ir::split_edge(fn, fn.entry(), 0);
    return Changed::ControlFlow;
}

/// A barrier to which all come, and a branch of each thread after it.
ir::Function meeting() {
    return ir::parse_function(R"(kernel @k(%n: u32) {
^0:
  %0 = param.u32 %n
  %1 = special.u32 tid.x
  barrier 0
  %2 = lt.u32 %1, %0
  branch %2, ^1, ^2
^1:
  jump ^2
^2:
  return
})");
}
Changed moves_the_barrier(ir::Function& fn, Context&, const Target*) {
    auto& from = fn[fn.entry()].instructions;
    const auto barrier = std::ranges::find_if(from, [&](ir::Inst inst) { return fn[inst].op == ir::Op::Barrier; });
    fn[ir::Block(1)].instructions.push_back(*barrier);
    from.erase(barrier);
    return Changed::Instructions;
}

/// What the pipeline says of a pass, when it verifies.
std::string said_of(decltype(pipeline::Stage::run) pass, ir::Function fn) {
    return said_when_aborting([&] {
        const pipeline::Stage stage{.name = "liar", .run = pass};
        const pipeline::Stage* const list[] = {&stage};
        pipeline::run(
            list, {&fn, 1}, &nvptx::target("sm_80"), [](auto&&...) {}, true);
    });
}

}  // namespace

TEST_CASE("what is known is found once and kept while it holds") {
    ir::Function fn = counting();
    Context context(fn);
    const analysis::Dominators* const dominators = &context.dominators();
    const analysis::Loops before = context.loops();
    REQUIRE(before.all().size() == 1);
    CHECK(&context.dominators() == dominators);
    CHECK(!context.uniformity().is_uniform(fn.result(fn[fn.entry()].instructions[2])));

    // In place of tid.x: the branches are what they were, and what varies is not.
    fn[fn[fn.entry()].instructions[2]].attribute = ir::Word(ir::SpecialRegister::CtaidX);
    CHECK(context.stale() == "uniformity");
    context.changed(Changed::Instructions);
    CHECK(context.stale() == "");
    CHECK(context.loops() == before);
    CHECK(context.uniformity().is_uniform(fn.result(fn[fn.entry()].instructions[2])));

    const ir::Block between = ir::split_edge(fn, fn.entry(), 0);
    CHECK(context.stale() == "dominators");
    context.changed(Changed::ControlFlow);
    CHECK(context.stale() == "");
    CHECK(context.dominators().parent(ir::Block(1)) == between);
}

TEST_CASE("a stage that does not say what it changed is found") {
    const auto run = [](decltype(pipeline::Stage::run) pass) { return said_of(pass, counting()); };
    const auto finds = [](const std::string& said, std::string_view what) {
        INFO(said);
        return said.find("liar has not said that it changed " + std::string(what)) != said.npos;
    };
    CHECK(finds(run(splits_and_says_nothing), "the function"));
    CHECK(finds(run(splits_and_says_instructions), "dominators"));
    CHECK(finds(run(forgets_to_say), "the function"));
    CHECK(run(says_all) == "");
}

TEST_CASE("the steps of selection say what they change, and where they change nothing, that") {
    const auto that_change = [](ir::Function fn) {
        std::string out;
        pipeline::run(
            pipeline::selection(nvptx::target("sm_80")), {&fn, 1}, &nvptx::target("sm_80"),
            [&](const pipeline::Stage& stage, auto&&, bool changed) {
                if (changed) (out += stage.name) += ' ';
            },
            true);
        return out;
    };
    CHECK(that_change(meeting()) == "");
    // Its constants leave the loop, tid.x is not used, the edge back is critical, a jump passes a constant.
    CHECK(that_change(counting()) == "licm dce blocks immediates ");
}

TEST_CASE("a stage that moves a barrier to where only some threads come is found") {
    const std::string said = said_of(moves_the_barrier, meeting());
    INFO(said);
    CHECK(said.find("after liar: ") != said.npos);
    CHECK(said.find("only some threads of a block can come to barrier 0") != said.npos);
    CHECK(said_of([](ir::Function&, Context&, const Target*) { return Changed::Nothing; }, meeting()) == "");
}
