// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/spelling/mnemonic.hpp"

#include <array>

#include "codegen/ir/op/forms/mbarrier.hpp"
#include "codegen/ir/op/shape.hpp"
#include "codegen/nvptx/spelling/suffix.hpp"

namespace ikat::nvptx {
namespace {

using ir::Op, ir::Shape, ir::Type;

constexpr auto spellings = [] {
    std::array<std::string_view, ir::op_count> out{};
#define SPELLING(name, text) out[std::size_t(Op::name)] = text;
#include "codegen/nvptx/spelling/spellings.def"
    return out;
}();

/// Indexed by Rounding. Conversions to an integral value are spelled differently.
constexpr std::string_view float_rounding[] = {".rn", ".rz", ".rm", ".rp"};
constexpr std::string_view integral_rounding[] = {".rni", ".rzi", ".rmi", ".rpi"};

/// The rounding modifier of a cvt. PTX requires it exactly where an integer becomes a float or the reverse, and where a
/// float loses bits (PTX ISA, cvt).
std::string_view convert_rounding(Type to, Type from, Rounding rounding) {
    if (is_float(to) != is_float(from)) return (is_float(to) ? float_rounding : integral_rounding)[int(rounding)];
    if (!is_float(to) || to == from) return "";
    const bool always = contains(ir::PackedFloat8, from);  // required although it is exact
    return always || bits(to) <= bits(from) ? float_rounding[int(rounding)] : "";
}

/// Written even if it is the default: without it ptxas may fuse a product and a sum.
std::string_view rounding(const ir::Instruction& inst) {
    if (ir::is_conversion(inst.op)) return convert_rounding(inst.type, inst.from, inst.fp.rounding);
    return is_float(inst.type) ? float_rounding[int(inst.fp.rounding)] : "";
}

void append_dotted(std::string& out, std::string_view word) {
    if (!word.empty()) (out += '.') += word;
}

void append_vector(std::string& out, const ir::MemoryInfo& memory) {
    if (memory.count > 1) (out += ".v") += char('0' + memory.count);
}

/// ".relaxed.gpu.global": order and scope, space, cache operator, in the order PTX wants.
void append_memory(std::string& out, const ir::MemoryInfo& memory) {
    if (memory.is_volatile) append_dotted(out, "volatile");
    if (memory.order != ir::Order::Weak) {
        append_dotted(out, ir::order_names[int(memory.order)]);
        append_dotted(out, ir::scope_names[int(memory.scope)]);
    }
    if (memory.space == ir::Space::Peer)
        out += ".shared::cluster";
    else if (memory.space != ir::Space::Generic)
        append_dotted(out, ir::space_names[int(memory.space)]);
    append_dotted(out, ir::cache_operator_names[int(memory.cache)]);
}

/// Fills in one key, the text between braces.
void append_key(std::string& out, std::string_view key, const ir::Instruction& inst) {
    if (const auto bar = key.find('|'); bar != key.npos) {
        out += is_float(inst.type) ? key.substr(bar + 1) : key.substr(0, bar);
        return;
    }
    switch (key[0]) {
        case 't': out += info(inst.type).typed; break;
        case 'b': out += info(inst.type).bits; break;
        case 'd': out += data_type(inst.type); break;
        case 'f': out += info(inst.from).typed; break;
        case 'q': out += inst.fp.approx ? ".approx" : rounding(inst); break;
        case 'r': out += rounding(inst); break;
        case 'z': out += inst.fp.ftz ? ".ftz" : ""; break;
        case 's': out += inst.fp.sat ? ".sat" : ""; break;
        case 'a': out += suffix(inst.op, inst.attribute); break;
        case 'e': out += contains(ir::PackedFloat8, inst.type) ? ".satfinite" : ""; break;
        case 'm': append_memory(out, inst.memory), append_vector(out, inst.memory); break;
        case 'o': append_memory(out, inst.memory); break;
        case 'v': append_vector(out, inst.memory); break;
        case 'w': out += inst.type == Type::I64 ? "u64" : info(inst.type).typed; break;
        case 'n': out += contains(ir::SmallFloat, inst.type) ? ".noftz" : ""; break;
        case 'u':
            if (inst.type == Type::Void) break;
            append_dotted(out, ir::unpack<ir::BulkForm>(inst.attribute).is_bitwise() ? info(inst.type).bits
                                                                                     : info(inst.type).typed);
            break;
        case 'y': out += inst.fp.ftz || lane(inst.type) == Type::BF16 ? ".ftz" : ""; break;
        default: IKAT_ASSERT(false, "an unknown key in the spelling of " + std::string(name(inst.op)));
    }
}

std::string expand(std::string_view format, const ir::Instruction& inst) {
    std::string out;
    while (!format.empty()) {
        const auto open = format.find('{');
        out += format.substr(0, open);
        if (open == format.npos) break;
        const auto close = format.find('}', open);
        append_key(out, format.substr(open + 1, close - open - 1), inst);
        format.remove_prefix(close + 1);
    }
    return out;
}

}  // namespace

std::string_view spelling(ir::Op op) { return spellings[std::size_t(op)]; }

std::string_view data_type(Type type) {
    const bool small = is_float(type) && type != Type::F32 && type != Type::F64;
    return small ? info(type).bits : info(type).typed;
}

bool has_reduction(const ir::Instruction& inst) {
    const Shape& shape = info(inst.op).shape;
    const bool updates = shape.arguments[0] == ir::Slot::Address && shape.result == ir::Slot::T && effects(inst).writes;
    const bool exists = updates && inst.op != Op::AtomicExchange && inst.op != Op::AtomicCas;
    return exists && inst.memory.order != ir::Order::Acquire && inst.memory.order != ir::Order::AcquireRelease;
}

std::string mnemonic(const ir::Instruction& inst, bool result_is_read) {
    IKAT_ASSERT(!spelling(inst.op).empty(), "no line in spellings.def for " + std::string(name(inst.op)));
    std::string text = expand(spelling(inst.op), inst);
    if (!result_is_read && has_reduction(inst)) text.replace(0, 4, "red");
    return text;
}

}  // namespace ikat::nvptx
