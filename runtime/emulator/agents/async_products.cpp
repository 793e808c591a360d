// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/async_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

constexpr std::uint32_t all_warps = 15;

unsigned place_in_group(const Warp* w) { return w->index % warps_of_group; }

const ptx::Instruction* instruction_of(const Warp* w, const MicroOp* op) {
    return w->kernel->instructions[w->index_of(op)];
}

}  // namespace

// ---- state

void AsyncProducts::start() {
    state_ = block_.seed_of(0);
    found = nullptr;
    for (Group& group : groups_)
        for (std::unique_ptr<Product>& product : group.products) spare_.push_back(std::move(product));
    groups_.clear();
}

std::uint64_t AsyncProducts::Group::computed() const {
    std::uint64_t first = warps[0].started;
    for (const OfWarp& each : warps) first = std::min(first, each.started);
    return first;
}

AsyncProducts::Group& AsyncProducts::group_of(const Warp* w) {
    if (groups_.empty()) groups_ = std::vector<Group>((block_.warps().size() + warps_of_group - 1) / warps_of_group);
    return groups_[w->index / warps_of_group];
}

AsyncProducts::OfWarp& AsyncProducts::of(const Warp* w) { return group_of(w).warps[place_in_group(w)]; }

AsyncProducts::Register& AsyncProducts::register_at(OfWarp& of, const Warp* w, std::uint32_t offset) {
    std::vector<Register>& registers = of.registers;
    if (registers.empty()) [[unlikely]]
        registers.resize((w->kernel->register_bytes - w->kernel->predicate_bytes) / 128);
    return registers[(offset - w->kernel->predicate_bytes) / 128];
}

std::unique_ptr<AsyncProducts::Product> AsyncProducts::new_product(const Issue& issue, ListedOperands registers) {
    std::unique_ptr<Product> product;
    if (spare_.empty()) {
        product = std::make_unique<Product>();
    } else {
        product = std::move(spare_.back());
        spare_.pop_back();
    }
    static_cast<Issue&>(*product) = issue;
    product->registers = registers;
    product->came = 0;
    product->operation = block_.next_operation();
    product->is_over = product->has_undefined = false;
    product->undefined_rows = 0;
    product->undefined_columns = {};
    return product;
}

/// xorshift
unsigned AsyncProducts::draw(unsigned choices) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_ % choices;
}

/// Whether the products that a warp waits for continue while others run.
bool AsyncProducts::is_late() {
    switch (block_.schedule().arrivals) {
        case Schedule::Arrivals::Early: return false;
        case Schedule::Arrivals::Late: return true;
        case Schedule::Arrivals::BySeed: break;
    }
    return !state_ || draw(2) == 0;
}

bool AsyncProducts::find(const MicroOp* op, Warp* w, FaultCode code, std::string what, const ptx::Instruction* other,
                         const char* is) {
    block_.finding = std::move(what);
    found = other;
    found_is = is;
    return passes(w, op, {.code = code});
}

// ---- registers

bool AsyncProducts::touch(const MicroOp* op, Warp* w) {
    if (groups_.empty()) return true;
    OfWarp& mine = of(w);
    const ListedOperands touched{w->lists + op->d};
    for (unsigned i = 0; i < touched.list[0]; ++i) {
        Register& each = register_at(mine, w, touched.offset(i));
        if (each.in_flight_to > mine.over &&
            !find(op, w, FaultCode::ProductNotAwaited,
                  each.used_as ? "a register is used while a product that writes it is in flight"
                               : "a register is used while a product that reads it as a part of a is in flight",
                  each.used_by, "the product"))
            return false;
        each.touched_at = mine.fences;
        each.touched_by = instruction_of(w, op);
    }
    return true;
}

/// A product uses a register as none that is in flight does, or one that has been touched since the last fence.
bool AsyncProducts::may_take(const MicroOp* op, Warp* w, const OfWarp& mine, const Register& its,
                             std::uint32_t used_as) {
    const bool is_new = its.used_as != used_as;
    if (is_new && its.in_flight_to > mine.over)
        return find(op, w, FaultCode::ProductNotAwaited,
                    "a product uses a register in another way than one that is in flight, as a or in d, at another "
                    "place or in another shape",
                    its.used_by, "the product in flight");
    if (its.touched_by && its.touched_at == mine.fences)
        return find(op, w, FaultCode::ProductNotFenced,
                    "a product uses a register that another instruction has used since the last `wgmma.fence`",
                    its.touched_by, "that instruction");
    if (is_new && its.used_by && its.used_at == mine.fences)
        return find(op, w, FaultCode::ProductNotFenced,
                    "a product uses a register that a product of another shape has used since the last `wgmma.fence`",
                    its.used_by, "that product");
    return true;
}

bool AsyncProducts::take_registers(const MicroOp* op, Warp* w, const WarpgroupProduct& form) {
    OfWarp& mine = of(w);
    if (mine.fences == 0 &&
        !find(op, w, FaultCode::ProductNotFenced, "the first product of a warp, without `wgmma.fence` before it"))
        return false;
    const ListedOperands registers{w->lists + op->d};
    const ptx::Instruction* const instruction = instruction_of(w, op);
    const unsigned count = registers.list[0], of_sums = form.registers();
    for (unsigned i = 0; i < count; ++i) {
        const std::uint32_t used_as = i < of_sums ? 1 + (i | form.shape() << 8) : 0;
        Register& its = register_at(mine, w, registers.offset(i));
        const bool is_simple = its.used_as == used_as && its.touched_at != mine.fences;
        if (!is_simple && !may_take(op, w, mine, its, used_as)) return false;
        its.in_flight_to = mine.started + 1;
        its.used_as = used_as;
        its.used_at = mine.fences;
        its.used_by = instruction;
    }
    return true;
}

// ---- a product starts

bool AsyncProducts::has_whole_group(const MicroOp* op, Warp* w) {
    const auto& warps = block_.warps();
    const unsigned first = w->index - place_in_group(w);
    const auto lacks = [&](const char* what, unsigned number) {
        return find(op, w, FaultCode::PartialWarpgroup,
                    fmt::format("a product of warps {} to {}, of which warp {} {}", first, first + 3, number, what));
    };
    for (unsigned i = first; i < first + warps_of_group; ++i) {
        if (i >= warps.size() || warps[i].existing != all_lanes) return lacks("does not have 32 threads", i);
        if (block_.has_ended(warps[i])) return lacks("has exited", i);
    }
    return true;
}

/// What the lanes of a warp agree in.
bool AsyncProducts::read_operands(const MicroOp* op, Warp* w, const std::byte* frame, Issue& now) {
    const auto is_same = [&](std::uint32_t offset, std::uint64_t& value) {
        const auto* const lanes = reinterpret_cast<const std::uint64_t*>(frame + offset);
        value = lanes[0];
        return std::all_of(lanes, lanes + warp_size, [&](std::uint64_t each) { return each == value; });
    };
    const auto differs = [&](const char* what) {
        return find(op, w, FaultCode::WarpgroupDisagrees,
                    fmt::format("{} differs between the threads of a warp", what));
    };
    if (!now.form.a_in_registers && !is_same(op->a, now.a)) return differs("the descriptor of a");
    if (!is_same(op->b, now.b)) return differs("the descriptor of b");
    const std::uint32_t adds = *reinterpret_cast<const std::uint32_t*>(frame + op->c);
    if (adds != 0 && adds != all_lanes) return differs("scale-d");
    now.adds = adds != 0;
    now.instruction = instruction_of(w, op);
    return true;
}

bool AsyncProducts::agrees(const MicroOp* op, Warp* w, const Issue& first, const Issue& now) {
    if (now.instruction != first.instruction)
        return find(op, w, FaultCode::DivergentWarpgroup,
                    fmt::format("warp {} comes to another product than the others of its warpgroup", w->index),
                    first.instruction, "theirs");
    const auto differs = [&](const char* what, std::uint64_t here, std::uint64_t there) {
        return find(op, w, FaultCode::WarpgroupDisagrees,
                    fmt::format("{} differs between the warps of a warpgroup: 0x{:x}, and 0x{:x} in another one", what,
                                here, there));
    };
    if (now.a != first.a) return differs("the descriptor of a", now.a, first.a);
    if (now.b != first.b) return differs("the descriptor of b", now.b, first.b);
    if (now.adds != first.adds) return differs("scale-d", now.adds, first.adds);
    return true;
}

bool AsyncProducts::begin(const MicroOp* op, Warp* w, std::byte* frame) {
    Issue now{.form = WarpgroupProduct::of(op->y)};
    if (!has_whole_group(op, w) || !read_operands(op, w, frame, now) || !take_registers(op, w, now.form)) return false;
    Group& group = group_of(w);
    OfWarp& mine = of(w);
    const std::size_t at = mine.started - group.first;
    if (at == group.products.size()) {
        std::unique_ptr<Product> product = new_product(now, {w->lists + op->d});
        if (!gather(op, w, *product) || !tell(op, w, *product)) return false;
        group.products.push_back(std::move(product));
    }
    Product& product = *group.products[at];
    if (!agrees(op, w, product, now)) return false;
    const unsigned place = place_in_group(w);
    product.came |= 1u << place;
    product.frames[place] = frame;
    if (product.form.a_in_registers)
        for (unsigned i = 0; i < 4; ++i)  // 8 rows, the next 8, and the second halves of both
            std::memcpy(product.rows.data() + block_bytes * (2 * place + i % 2 + 8 * (i / 2)),
                        frame + product.registers.offset(product.form.registers() + i), block_bytes);
    if (product.form.a_in_registers && w->definedness) {
        product.undefined_rows |= undefined_rows_of_a(w, product.registers, product.form.registers()) << 16 * place;
        product.has_undefined |= product.undefined_rows != 0;
    }
    ++mine.started;
    if (product.came != all_warps) return true;
    const WarpgroupWork work{.form = product.form,
                             .adds = product.adds,
                             .frames = product.frames,
                             .d = product.registers,
                             .a = product.rows.data(),
                             .b = product.columns.data()};
    block_.each_tool([&](BlockTool& tool) { tool.before_product(work); });
    multiply_by_warpgroup(work);
    block_.wake_for(std::size_t(slot));
    bool goes_on = true;
    if (!product.has_undefined)
        block_.each_tool([&](BlockTool& tool) { goes_on = goes_on && tool.after_product(work, *w, op); });
    return goes_on;
}

// ---- waits

void AsyncProducts::commit(const Warp* w) {
    OfWarp& mine = of(w);
    mine.groups.push_back(mine.started);
}

bool AsyncProducts::is_met(const Warp& warp) { return group_of(&warp).computed() >= of(&warp).awaits; }

std::string AsyncProducts::awaited_by(const Warp&) const { return "wait for the other warps of the warpgroup"; }

AsyncProducts::Wait AsyncProducts::await(const MicroOp* op, Warp* w) {
    Group& group = group_of(w);
    OfWarp& mine = of(w);
    if (mine.groups.size() <= op->y) return Wait::Over;
    const auto covered = mine.groups.end() - std::ptrdiff_t(op->y);
    mine.awaits = covered[-1];
    if (mine.awaits != mine.over) {
        if (!is_met(*w)) return mine.lets_others = true, Wait::ForOthers;
        if (!std::exchange(mine.lets_others, true) && is_late()) return Wait::Later;
    }
    const unsigned place = place_in_group(w);
    for (std::uint64_t number = mine.over; number < mine.awaits; ++number) {
        Product& product = *group.products[number - group.first];
        if (!product.is_over && !complete(op, w, product)) return Wait::Finding;
        if (product.has_undefined && !w->definedness) return Wait::Recheck;
    }
    for (; mine.over < mine.awaits; ++mine.over) {
        const Product& product = *group.products[mine.over - group.first];
        block_.each_tool([&](BlockTool& tool) { tool.await(*w, all_lanes, product.operation, false); });
        if (w->definedness)
            warpgroup_definedness(w, product.registers, product.form, product.adds,
                                  std::uint32_t(product.undefined_rows >> 16 * place & 0xffff),
                                  product.undefined_columns, w->index_of(op));
    }
    mine.lets_others = false;
    mine.groups.erase(mine.groups.begin(), covered);
    while (std::ranges::all_of(group.warps, [&](const OfWarp& each) { return each.over > group.first; })) {
        spare_.push_back(std::move(group.products.front()));
        group.products.pop_front();
        ++group.first;
    }
    return Wait::Over;
}

void AsyncProducts::end_warp(const Warp& warp) {
    if (groups_.empty()) return;
    const Group& group = group_of(&warp);
    const OfWarp& mine = of(&warp);
    const auto at = [&](std::uint64_t number) { return group.products[number - group.first]->instruction; };
    if (mine.over < mine.started)
        block_.report(product_error(block_, warp, FaultCode::ProductAtExit,
                                    "a warp ends while its product is in flight", at(mine.over)));
    if (mine.started - group.first < group.products.size())
        throw product_error(
            block_, warp, FaultCode::PartialWarpgroup,
            fmt::format("warp {} has exited and does not come to a product of its warpgroup", warp.index),
            at(mine.started));
}

}  // namespace ikat::emulator
