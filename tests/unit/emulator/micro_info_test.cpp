// SPDX-License-Identifier: Apache-2.0
// What rules say of their ops, and what is assumed of one of which nothing is said.
#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/stated.hpp"

using namespace ikat;
using namespace ikat::emulator;
using tests::kernel;
using tests::Machine;

namespace {

/// All tests of this program hold their kernels against it.
[[maybe_unused]] const bool is_added = [] {
    tests::options_of_machines().tools.push_back(tests::check_stated());
    return true;
}();

/// As if the rules for an operation said nothing.
class Silence final : public Tool {
public:
    explicit Silence(Operation operation) : operation_(operation) {}
    std::string_view name() const override { return "silence"; }
    void before_op(Lowering&, Micro& op) const override {
        if (op.info.operation == operation_) op.info = {};
    }

private:
    Operation operation_;
};

/// The code of the finding of a kernel whose registers are %r, %d, %p.
std::string found(const std::string& body, std::optional<Operation> silent = {}) {
    Machine machine;
    machine.options.step_budget = 100'000;
    if (silent) machine.options.tools.push_back(std::make_shared<Silence>(*silent));
    const auto words = machine.buffer("words", std::vector<std::uint32_t>(64));
    const std::string failure =
        machine.failure(kernel("ld.param.u64 %d1, [p0];\n" + body), {.block = {32, 1, 1}}, words, 0ull, 0ull, 0u);
    return failure == "no failure" ? failure : machine.code;
}

Micro an_op(const MicroInfo& info, std::uint8_t writes, std::uint8_t reads) {
    Micro op = micro_of({nothing, info});
    op.writes = writes;
    op.reads = reads;
    return op;
}

}  // namespace

TEST_CASE("of an op of which nothing is said, all results are undefined if any source is") {
    const std::string masked =
        ".shared .u32 s; ld.shared.u32 %r1, [s]; and.b32 %r2, %r1, 0; setp.eq.u32 %p1, %r2, 0; @%p1 bra $end; "
        "$end: ret;";
    CHECK(found(masked) == "no failure");
    CHECK(found(masked, Op::And) == "undefined-branch");
    CHECK(found(masked, Op::Eq) == "no failure");  // a comparison needs no more
    const std::string chosen =
        ".shared .u32 s; ld.shared.u32 %r1, [s]; mov.u32 %r2, 5; setp.eq.u32 %p1, %r2, 5; selp.u32 %r3, %r2, %r1, %p1; "
        "setp.eq.u32 %p2, %r3, 0; @%p2 bra $end; $end: ret;";
    CHECK(found(chosen) == "no failure");
    CHECK(found(chosen, Op::Select) == "undefined-branch");
}

TEST_CASE("an op of which nothing is said may change anything, so that its loop is not known to be endless") {
    const std::string loop = "mov.u32 %r1, 0; $loop: add.u32 %r2, %r1, 0; not.b32 %r3, %r2; bra $loop;";
    CHECK(found(loop) == "endless-loop");
    CHECK(found(loop, Op::Add) == "step-budget");
    CHECK(found(loop, Op::Not) == "step-budget");
    CHECK(found(loop, Op::Xor) == "endless-loop");
    // Lanes that wait for others at bar.warp.sync may meet at two of them only if that is said.
    const std::string apart =
        "mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 16; @%p1 bra $low; bar.warp.sync -1; ret; "
        "$low: bar.warp.sync -1; ret;";
    CHECK(found(apart) == "no failure");
    CHECK(found(apart, Op::SyncWarp) == "divergent-warp");
}

TEST_CASE("effects follow from what is said of an op") {
    CHECK(effects_of({}) == Changes);
    CHECK(effects_of({Op::Add}) == NoEffect);
    CHECK(effects_of({Op::SyncWarp}) == MeetsApart);
    CHECK(effects_of({.operation = Op::Print, .effects = Changes}) == Changes);
    const auto of = [](Space space, Direction direction) {
        return effects_of({.operation = Op::Load, .access = {space, 4, direction}});
    };
    CHECK(of(Space::Shared, Direction::Read) == ReadsBlock);
    CHECK(of(Space::Global, Direction::Read) == ReadsOthers);
    CHECK(of(Space::Generic, Direction::Atomic) == ReadsOthers);
    CHECK(of(Space::Shared, Direction::Atomic) == ReadsBlock);
    CHECK(of(Space::Generic, Direction::Write) == Changes);
    for (const Direction direction : {Direction::Read, Direction::Write})
        for (const Space space : {Space::Local, Space::Param, Space::Const}) CHECK(of(space, direction) == NoEffect);
}

TEST_CASE("what does not fit together is noticed") {
    const auto problem = [](const MicroInfo& info, std::uint8_t writes = Field::D, std::uint8_t reads = A | B) {
        return tests::problem_of(an_op(info, writes, reads));
    };
    CHECK(problem({Op::Add}) == "");
    CHECK(problem({}) == "its operation is not said");
    CHECK(problem({Op::Load}) == "it accesses memory, or does not");
    CHECK(problem({.operation = Op::Add, .access = {Space::Global, 4}}) == "it accesses memory, or does not");
    CHECK(problem({.operation = Op::Load, .access = {Space::Global, 4}}) == "");
    CHECK(problem({.operation = Op::Load, .access = {Space::Global, 4}}, Field::D, B) == "no lane has an address");
    CHECK(problem({.operation = Op::Load, .access = {Space::Global, 4, Direction::Write}}) ==
          "its direction is another");
    CHECK(problem({.operation = Op::Store, .access = {Space::Global, 4, Direction::Write}}) ==
          "a load has results, a store has none");
    CHECK(problem({.operation = Op::AtomicAdd, .access = {Space::Global, 4, Direction::Atomic}}) ==
          "an atomic uses its operands");
    CHECK(problem({.operation = Op::Barrier, .synchronises = {.scope = Scope::Block}}, 0) == "a barrier releases");
    CHECK(problem({.operation = Op::Barrier, .synchronises = {.releases = true}}, 0) == "it orders no threads");
    CHECK(problem({Op::SyncWarp}, 0) == "the lanes meet, or do not");
    CHECK(problem({OwnOp::Branch}, 0) == "a branch uses its condition");
    CHECK(problem({.operation = Op::And, .propagation = Propagation::And}, Field::D | C) ==
          "only one result follows bit by bit from its sources");
    CHECK(problem({.operation = Op::Convert, .propagation = Propagation::ZeroExtend}) ==
          "its parameter has no meaning");
    CHECK(problem({Op::BulkCopy}, 0) == "it changes what nobody compares");
}

TEST_CASE("what rules say of ops that no table of forms leads to") {
    const auto decoded = [](const std::string& body, const std::string& module_scope = "", int target = 90) {
        Machine machine;
        const std::string text = ".version 8.6\n.target sm_" + std::to_string(target) + (target == 90 ? "a" : "") +
                                 "\n.address_size 64\n" + module_scope +
                                 "\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>; .reg .b16 %h<9>; "
                                 ".reg .b32 %r<99>; .reg .b64 %d<9>; .reg .f32 %f<9>;\n"
                                 ".shared .align 128 .b8 s[4096];\nret;\n@%p1 bra M;\n" +
                                 body + "\nM: ret;\n}\n";
        INFO(body);
        CHECK(machine.failure(text, {}, 0ull) == "no failure");
    };
    for (const char* body :
         {"mbarrier.init.shared.b64 [s], 1;",
          "mbarrier.inval.shared.b64 [s];",
          "mbarrier.arrive.shared.b64 %d1, [s];",
          "mbarrier.arrive.expect_tx.shared.b64 %d1, [s], 16;",
          "mbarrier.expect_tx.relaxed.cta.shared.b64 [s], 16;",
          "mbarrier.test_wait.shared.b64 %p2, [s], %d1;",
          "mbarrier.try_wait.parity.shared.b64 %p2, [s], %r1;",
          "mbarrier.pending_count.b64 %r1, %d1;",
          "cp.async.mbarrier.arrive.shared.b64 [s];",
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1], 16, [s];",
          "cp.async.bulk.global.shared::cta.bulk_group [%d1], [s], 16;",
          "cp.async.bulk.commit_group;",
          "cp.async.bulk.wait_group 0;",
          "cp.async.bulk.wait_group.read 0;",
          "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [s], 16;",
          "cp.async.bulk.prefetch.L2.global [%d1], 16;",
          "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1, {%r1}], [s];",
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
          "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r1], %r2, [%r3];",
          "prefetch.tensormap [%d1];",
          "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], %d1;",
          "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [%d2], 128;",
          "wmma.load.a.sync.aligned.m16n16k16.row.shared.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [s];",
          "wmma.store.d.sync.aligned.m16n16k16.row.f16 [%d1], {%r1, %r2, %r3, %r4};",
          "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, "
          "%r8}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4};",
          "mov.u64 %d1, %clock64;"})
        decoded(body);
    // Functions that are called, and those of the system.
    decoded("{ .param .b32 x; st.param.b32 [x], %r1; call f, (x); }",
            ".func f(.param .b32 x)\n{\n.reg .pred %p<3>; .reg .b32 %r<3>;\n.param .b32 y; ld.param.b32 %r1, [x]; "
            "setp.eq.u32 %p1, %r1, 0; @%p1 ret; st.param.b32 [y], %r1; call f, (y); ret;\n}");
    decoded("{ .param .b64 a; .param .b64 b; .param .b32 c; call (c), vprintf, (a, b); }",
            ".extern .func (.param .b32 c) vprintf(.param .b64 a, .param .b64 b);");
    decoded("{ .param .b64 a; .param .b64 b; call (b), malloc, (a); call free, (b); }",
            ".extern .func (.param .b64 b) malloc(.param .b64 a);\n.extern .func free(.param .b64 a);");
}
