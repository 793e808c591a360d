// SPDX-License-Identifier: Apache-2.0
// What operations do besides computing: effects() compared with the rows of the table, and separately where a row does
// not determine it (weak and other accesses).
#include "codegen/ir/op/effects.hpp"

#include <algorithm>

#include "tests/catch.hpp"

using namespace ikat::ir;

TEST_CASE("operations that can be evaluated have no effects") {
    for (int i = 0; i < op_count; ++i) {
        INFO(name(Op(i)));
        const Effects does = effects(Op(i));
        if (!info(Op(i)).effect) CHECK(does.none());
        if (does.none()) CHECK(does.removable());
        if (does.writes || does.orders || does.convergent) CHECK_FALSE(does.removable());
    }
}

TEST_CASE("operations with effects have them in their row") {
    const Op without[] = {Op::Convert,    Op::Bitcast,      Op::Unpack,  Op::ConvertPair, Op::Const,
                          Op::Param,      Op::ParamAddress, Op::Special, Op::Symbol,      Op::OpaqueValue,
                          Op::CarryChain, Op::PureCall,     Op::Peer};
    for (int i = 0; i < op_count; ++i) {
        INFO(name(Op(i)));
        if (info(Op(i)).effect) CHECK(effects(Op(i)).none() == (std::ranges::count(without, Op(i)) == 1));
    }
}

TEST_CASE("a weak access orders nothing") {
    const MemoryInfo weak{.space = Space::Global};
    CHECK(effects(Op::Load, weak) == Effects{.reads = true});
    CHECK(effects(Op::Load, weak).removable());
    CHECK(effects(Op::Store, weak) == Effects{.writes = true});
    MemoryInfo cached = weak;
    cached.cache = CacheOperator::Cg;
    CHECK_FALSE(effects(Op::Load, cached).orders);
}

TEST_CASE("volatile, ordered and .cv accesses stay in place") {
    const MemoryInfo accesses[] = {{.space = Space::Global, .is_volatile = true},
                                   {.space = Space::Global, .cache = CacheOperator::Cv},
                                   {.space = Space::Global, .order = Order::Relaxed, .scope = Scope::Gpu}};
    for (const MemoryInfo& memory : accesses) {
        CHECK(effects(Op::Load, memory) == Effects{.reads = true, .orders = true});
        CHECK_FALSE(effects(Op::Load, memory).removable());
        CHECK(effects(Op::Store, memory).orders);
    }
}

TEST_CASE("atomics, fences and barriers order, shuffles do not") {
    for (const Op op : {Op::AtomicAdd, Op::VectorReduce, Op::Fence, Op::Barrier, Op::SyncWarp, Op::Opaque})
        CHECK(effects(op).orders);
    CHECK(effects(Op::Shuffle) == Effects{.convergent = true});
    CHECK(effects(Op::Print) == Effects{.writes = true});
    CHECK(effects(Op::OpaqueValue).none());
}
