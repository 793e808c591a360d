// SPDX-License-Identifier: Apache-2.0
// Forms: a plain value of any struct that fits, and texts that are read as they are written.
#include "codegen/ir/op/accesses.hpp"
#include "codegen/ir/op/forms/all.hpp"
#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/text/print.hpp"
#include "tests/catch.hpp"

using namespace ikat::ir;

namespace {

/// More than a word.
struct LargeForm {
    std::uint64_t first = 0;
    std::uint16_t second = 0, third = 0;
    std::uint32_t fourth = 0;
    bool operator==(const LargeForm&) const = default;
};

}  // namespace

TEST_CASE("a form is compared by its content") {
    const LargeForm one{1, 2, 3, 4}, other{1, 2, 3, 5};
    CHECK(unpack<LargeForm>(pack(one)) == one);
    CHECK(pack(one) == pack(LargeForm{1, 2, 3, 4}));
    CHECK(pack(one) != pack(other));
    CHECK(pack(one).words()[0] == pack(other).words()[0]);
    CHECK(Form(7) == Word{7});
    CHECK(pack(one) != Word{1});
    CHECK(pack(FenceForm{FenceOrder::Async, Scope::None}) == Word{2});
}

TEST_CASE("the text of a form is read as it is written") {
    const std::pair<Op, const char*> texts[] = {
        {Op::At, "4"},
        {Op::At, "4-8"},
        {Op::At, "12+16"},
        {Op::Barrier, "3"},
        {Op::Barrier, "count"},
        {Op::ClusterBarrier, "wait"},
        {Op::Fence, "acq_rel.gpu"},
        {Op::Fence, "barrier_init"},
        {Op::SetRegisters, "grow.240"},
        {Op::Shuffle, "bfly"},
        {Op::CopyAsync, "16.cg"},
        {Op::CopyAsync, "16.cg.128B"},
        {Op::CopyWait, "all"},
        {Op::WgmmaWait, "2"},
        {Op::Mbarrier, "arrive.peer"},
        {Op::Mbarrier, "try.cluster"},
        {Op::BulkCopy, "load.2d.multicast"},
        {Op::BulkCopy, "store.add"},
        {Op::Mma, "m8n8k4.f16.f16.f32.trans_a.trans_b"},
        {Op::Mma, "m16n8k32.s8.u8.s32.sat"},
        {Op::LoadMatrix, "x4.trans"},
        {Op::Wgmma, "m64n8k32.s8.u8.s32.pred.registers.sat"},
    };
    for (const auto& [op, text] : texts) {
        INFO(name(op) << ' ' << text);
        const auto form = attribute_named(op, text);
        REQUIRE(form);
        CHECK(attribute_text(op, *form) == text);
        const bool is_told = conduct(op, *form).effects == effects(op, *form, {});
        CHECK(is_told);  // else its row lacks FormActs
    }
}

TEST_CASE("what is no form is not read as one") {
    const std::pair<Op, const char*> texts[] = {
        {Op::At, "4*8"},
        {Op::Barrier, "300"},
        {Op::Barrier, "3.sync"},
        {Op::Fence, "acq_rel"},
        {Op::Fence, "async.gpu"},
        {Op::Fence, "gpu.acq_rel"},
        {Op::CopyAsync, "cg.16"},
        {Op::CopyAsync, "16"},
        {Op::CopyAsync, "16.cg.128B.128B"},
        {Op::Mbarrier, "init.peer"},
        {Op::BulkCopy, "2d.load"},
        {Op::BulkCopy, "load.0d"},
        {Op::BulkCopy, "load.add"},
        {Op::Mma, "m8n8k4.f16.f16"},
        {Op::LoadMatrix, "x3"},
        {Op::LoadMatrix, "4"},
        {Op::Wgmma, "m64n8k16.s8.u8.s32"},
        {Op::SetRegisters, "240.grow"},
    };
    for (const auto& [op, text] : texts) {
        INFO(name(op) << ' ' << text);
        CHECK_FALSE(attribute_named(op, text));
    }
}

TEST_CASE("a form changes what its row says") {
    const auto conduct_of = [](Op op, const char* text) { return conduct(op, *attribute_named(op, text)); };
    CHECK(conduct_of(Op::Barrier, "0").meets == Meeting::Block);
    CHECK(conduct_of(Op::Barrier, "sync").meets == Meeting::Warp);
    CHECK(conduct_of(Op::ClusterBarrier, "arrive").meets == Meeting::Warp);
    CHECK(conduct_of(Op::Shuffle, "bfly").likely == Extent::Warp);
    CHECK(conduct_of(Op::Shuffle, "up").likely == Extent::Thread);
    const Effects init = conduct_of(Op::Mbarrier, "init").effects, test = conduct_of(Op::Mbarrier, "test").effects,
                  arrive = conduct_of(Op::Mbarrier, "arrive").effects;
    CHECK((init.writes && !init.reads && init.orders));
    CHECK((test.reads && !test.writes && test.orders));
    CHECK((arrive.reads && arrive.writes && arrive.orders));
    CHECK(conduct_of(Op::Mbarrier, "test").flight.awaits == Work::Loads);
    CHECK(conduct_of(Op::BulkCopy, "load").flight.starts == Work::Loads);
    CHECK(conduct_of(Op::BulkCopy, "store").flight.starts == Work::Stores);
    CHECK(conduct_of(Op::CopyWait, "all").flight.all);
    CHECK(conduct_of(Op::WgmmaWait, "2").flight.groups == 2);
}
