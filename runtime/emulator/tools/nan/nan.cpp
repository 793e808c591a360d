// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/nan/nan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/ops/matrix/warpgroup.hpp"
#include "runtime/emulator/tools/nan/numbers.hpp"

namespace ikat::emulator {

namespace {

using nans::BlockNans;
using nans::Found;
using nans::Numbers;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

BlockNans& nans_of(const Warp* w, u32 slot) { return static_cast<BlockNans&>(*w->tools[slot]); }

/// Field b of the ops that look at results.
struct Form {
    std::uint8_t slot = 0;  // of the tool
    Type to = Type::F32;
    std::array<Type, 3> from{};
    bool drops_negative = false;

    u32 bits() const {
        return slot | u32(to) << 8 | u32(from[0]) << 13 | u32(from[1]) << 18 | u32(from[2]) << 23 |
               u32(drops_negative) << 28;
    }
    static Form of(u32 bits) {
        const auto type = [&](int i) { return Type(bits >> i & 31); };
        return {std::uint8_t(bits), type(8), {type(13), type(18), type(23)}, (bits >> 28 & 1) != 0};
    }
};
static_assert(ir::type_count <= 32);

/// The registers of the list d of an op.
struct Registers {
    const u32* list;
    const std::byte* frame;
    u32 count() const { return list[0]; }
    const std::byte* at(u32 i) const { return frame + list[1 + 2 * i]; }
    /// The lanes in which it is defined.
    u32 defined(const Warp* w, u32 i) const {
        if (!w->definedness) return all_lanes;
        const u32* const masks = undefined_at(w, list[1 + 2 * i]);
        u32 undefined = 0;
        for (u32 k = 0; k < list[2 + 2 * i]; ++k) undefined |= masks[k];
        return ~undefined;
    }
};

/// The first lane with a NaN, and the first with an infinity.
class FirstOfEach {
public:
    struct Place {
        unsigned lane = 0, number = 0;
        double value = 0;
    };
    void add(const Place& place) {
        auto& first = places_[place.value != place.value];
        if (!first) first = place;
    }
    bool any() const { return places_[0] || places_[1]; }
    auto begin() const { return places_.begin(); }
    auto end() const { return places_.end(); }

private:
    std::array<std::optional<Place>, 2> places_;
};

// Separate from the handlers, whose last calls are jumps only if no address of their locals escapes.
[[gnu::noinline]] bool look_at_lanes(const MicroOp* op, Warp* w, const std::byte* frame, u32 mask) {
    const Form form = Form::of(op->b);
    const Registers registers{w->lists + op->d, frame};
    const Numbers to = Numbers::of(form.to), from = Numbers::of(form.from[0]);
    FirstOfEach made;
    for (u32 rest = mask & registers.defined(w, 0); rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        for (unsigned i = 0; i < to.count; ++i) {
            const u64 result = to.number(to.cell(registers.at(0), lane), i);
            if (to.is_finite(result) || (form.drops_negative && to.value(result) < 0)) continue;
            bool is_made = true;
            for (u32 k = 1; k < registers.count(); ++k)
                is_made &= from.is_finite(from.number(from.cell(registers.at(k), lane), i));
            if (is_made) made.add({lane, i, to.value(result)});
        }
    }
    for (const auto& place : made) {
        if (!place) continue;
        Found found{.operation = {}, .to = to.type, .result = place->value, .count = registers.count() - 1};
        found.operation.number = std::uint16_t(op->c);
        for (u32 k = 0; k < found.count; ++k) {
            found.from[k] = from.type;
            found.operands[k] = from.number(from.cell(registers.at(1 + k), place->lane), place->number);
        }
        if (!nans_of(w, form.slot).report(w, op, place->lane, found)) return false;
    }
    return true;
}

/// After an op: a is its result, a number of 16 or 32 bits or a pair, of which x or y are all set if it is not finite;
/// the list d has the result and the sources; b is the Form, c the number of the operation.
const MicroOp* look_at_words(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    const u32* const d = reinterpret_cast<const u32*>(frame + op->a);
    const u32 low = op->x, high = op->y;
    u32 any = 0;
    for (unsigned i = 0; i < warp_size; ++i) any |= u32((d[i] & low) == low) | u32((d[i] & high) == high);
    if (any && !look_at_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

/// The same of 64 bits.
const MicroOp* look_at_doubles(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    const u64* const d = reinterpret_cast<const u64*>(frame + op->a);
    constexpr u64 exponent = Numbers::of(Type::F64).exponent;
    u64 any = 0;
    for (unsigned i = 0; i < warp_size; ++i) any |= u64((d[i] & exponent) == exponent);
    if (any && !look_at_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

/// The largest of the numbers that fill `registers` of all lanes; none: one is not finite.
template <class At>
std::optional<double> largest_of(Type type, u32 registers, At at) {
    const Numbers of = Numbers::of(type, true);
    double largest = 0;
    for (u32 i = 0; i < registers; ++i)
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            const u64 cell = of.cell(at(i), lane);
            if (!of.are_finite(cell)) return {};
            for (unsigned k = 0; k < of.count; ++k) largest = std::max(largest, std::abs(of.value(of.number(cell, k))));
        }
    return largest;
}

/// Adds what is not finite in some lanes of a register that is full of numbers.
void add_made(FirstOfEach& made, const Numbers& of, const std::byte* at, u32 lanes) {
    for (; lanes; lanes &= lanes - 1) {
        const auto lane = unsigned(std::countr_zero(lanes));
        const u64 cell = of.cell(at, lane);
        for (unsigned i = 0; i < of.count; ++i)
            if (!of.is_finite(of.number(cell, i))) made.add({lane, i, of.value(of.number(cell, i))});
    }
}

bool report_product(BlockNans& nans, Warp* w, const MicroOp* op, Type to, const FirstOfEach& made,
                    const std::array<double, 3>& largest) {
    for (const auto& place : made) {
        if (!place) continue;
        Found found{.to = to, .result = place->value, .is_of_matrices = true};
        for (unsigned i = 0; i < 3; ++i) found.operands[i] = std::bit_cast<u64>(largest[i]);
        if (!nans.report(w, op, place->lane, found)) return false;
    }
    return true;
}

[[gnu::noinline]] bool look_at_matrices(const MicroOp* op, Warp* w, const std::byte* frame) {
    const Form form = Form::of(op->b);
    const Registers registers{w->lists + op->d, frame};
    const Numbers to = Numbers::of(form.to, true);
    FirstOfEach made;
    u32 at = 0;
    for (; at < op->c; ++at) add_made(made, to, registers.at(at), registers.defined(w, at));
    if (!made.any()) return true;
    std::array<double, 3> largest{};
    for (unsigned matrix = 0; matrix < 3; ++matrix) {
        const u32 count = op->x >> 8 * matrix & 255;
        const auto found = largest_of(form.from[matrix], count, [&](u32 i) { return registers.at(at + i); });
        if (!found) return true;
        largest[matrix] = *found;
        at += count;
    }
    return report_product(nans_of(w, form.slot), w, op, to.type, made, largest);
}

/// After a product of matrices: the list d has the registers of d, of which there are c, and of a, b and c, x says how
/// many of each; b is the Form.
const MicroOp* look_at_product(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    if (!look_at_matrices(op, w, frame)) return nullptr;
    IKAT_NEXT;
}

class Finder final : public Tool {
public:
    std::string_view name() const override { return "numbers"; }

    /// Keeps the sources that the op overwrites.
    void before_op(Lowering& code, Micro& op) const override {
        if (op.info.arithmetic.to == Type::Void) return;
        std::vector<VReg> kept;
        for (const VReg source : sources_of(code, op)) {
            if (!is_result(code, op, source)) continue;
            const std::uint8_t slot = code.values[index(source)].slot;
            kept.push_back(code.temporary(slot));
            Micro copy = micro_of(select_move(slot, slot));
            copy.fields = {index(kept.back()), index(source)};
            copy.writes = D;
            copy.reads = A;
            code.put(copy);
        }
        op.kept = code.list({}, kept);
    }

    void after_op(Lowering& code, const Micro& op) const override {
        const Arithmetic& arithmetic = op.info.arithmetic;
        if (arithmetic.to == Type::Void) return;
        std::vector<VReg> all = results_of(code, op);
        const auto results = std::uint32_t(all.size());
        std::uint32_t next = op.kept.first;
        for (const VReg source : sources_of(code, op))
            all.push_back(is_result(code, op, source) ? code.listed[next++] : source);
        const Form form{.slot = std::uint8_t(code.asked),
                        .to = arithmetic.to,
                        .from = arithmetic.from,
                        .drops_negative = arithmetic.drops_negative};
        Micro look;
        look.list = code.list({}, all);
        if (arithmetic.registers[0]) {
            const auto& [a, b, c] = arithmetic.registers;
            look.run = look_at_product;
            look.fields = {0, 0, form.bits(), results, a | std::uint32_t(b) << 8 | std::uint32_t(c) << 16};
        } else {
            const Numbers to = Numbers::of(arithmetic.to);
            const auto exponent = std::uint32_t(to.exponent);
            look.run = to.bits == 64 ? look_at_doubles : look_at_words;
            look.fields = {0,           index(all.front()),
                           form.bits(), op.info.operation.number,
                           exponent,    exponent << (to.count - 1) * to.bits};
            look.reads = A;
        }
        code.put(look);
    }

    std::unique_ptr<LaunchTool> of(LaunchState&, std::size_t) const override {
        struct OfLaunch final : LaunchTool {
            std::unique_ptr<BlockTool> of(ThreadBlock& block) override { return std::make_unique<BlockNans>(block); }
        };
        return std::make_unique<OfLaunch>();
    }

private:
    static std::vector<VReg> results_of(const Lowering& code, const Micro& op) {
        if (!op.list.count) return {VReg(op.fields[0])};
        const auto first = code.listed.begin() + op.list.first;
        return {first, first + op.list.results};
    }
    static std::vector<VReg> sources_of(const Lowering& code, const Micro& op) {
        const auto first = code.listed.begin() + op.list.first;
        std::vector<VReg> sources(first + op.list.results, first + op.list.count);
        for (unsigned i = 1; i < 4 && !op.list.count; ++i)
            if (op.reads >> i & 1) sources.push_back(VReg(op.fields[i]));
        return sources;
    }
    static bool is_result(const Lowering& code, const Micro& op, VReg value) {
        const std::vector<VReg> results = results_of(code, op);
        return std::ranges::find(results, value) != results.end();
    }
};

}  // namespace

namespace nans {

bool BlockNans::report(Warp* w, const MicroOp* op, unsigned lane, const Found& found) {
    found_ = found;
    found_->instruction = w->kernel->instructions[w->index_of(op)];
    const bool is_nan = found.result != found.result;
    return passes(w, op, {.code = is_nan ? FaultCode::MadeNan : FaultCode::MadeInfinity, .lane = lane});
}

void BlockNans::before_product(const WarpgroupWork& work) {
    largest_sum_.reset();
    if (work.form.d == MatrixProduct::Sum::S32) return;
    largest_sum_ = 0;
    for (unsigned warp = 0; warp < warps_of_group && work.adds && largest_sum_; ++warp) {
        const auto at = [&](u32 i) { return work.frames[warp] + work.d.offset(i); };
        const auto largest = largest_of(type_of(work.form.d), work.form.registers(), at);
        largest_sum_ = largest ? std::optional(std::max(*largest_sum_, *largest)) : std::nullopt;
    }
}

bool BlockNans::after_product(const WarpgroupWork& work, Warp& warp, const MicroOp* op) {
    if (!largest_sum_) return true;
    const Numbers to = Numbers::of(type_of(work.form.d), true);
    FirstOfEach made;
    for (const std::byte* const frame : work.frames)
        for (u32 i = 0; i < work.form.registers(); ++i) add_made(made, to, frame + work.d.offset(i), all_lanes);
    if (!made.any()) return true;
    constexpr unsigned blocks_of_rows = 16;
    const auto a = largest_of(type_of(work.form.a), blocks_of_rows, [&](u32 i) { return work.a + block_bytes * i; });
    const auto b =
        largest_of(type_of(work.form.b), work.form.columns / 4u, [&](u32 i) { return work.b + block_bytes * i; });
    return !a || !b || report_product(*this, &warp, op, to.type, made, {*a, *b, *largest_sum_});
}

}  // namespace nans

const Tool& made_of_numbers() {
    static const Finder finder;
    return finder;
}

}  // namespace ikat::emulator
