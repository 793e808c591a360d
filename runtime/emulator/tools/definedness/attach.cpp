// SPDX-License-Identifier: Apache-2.0
// The checked code: an op before each that computes the definedness of its results or checks that of its sources, from
// what the rule that emits it says (core/micro_info.hpp). See core/definedness.hpp.
#include <bit>

#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/tools/definedness/definedness.hpp"

namespace ikat::emulator {

namespace {

class Checker final : public Tool {
public:
    std::string_view name() const override { return "definedness"; }

    void before_op(Lowering& code, Micro& op) const override {
        const MicroInfo& info = op.info;
        if (info.checked) op.run = info.checked;
        const bool has_sources = op.reads || op.list.count > op.list.results;
        const bool has_results = op.writes || op.list.results;
        if (info.use) {
            if (has_sources || has_results) check_use(code, op);
        } else if (info.checked) {
            return;
        } else if (info.access.bytes) {
            replace_access(code, op);
        } else if (has_results) {
            propagate(code, op);
        }
    }

private:
    static void check_use(Lowering& code, const Micro& op) {
        const std::uint8_t writes = op.info.checked ? 0 : op.writes;
        put(code, op, first_use + std::uint32_t(*op.info.use), op.reads & op.info.used, writes);
    }

    static void propagate(Lowering& code, const Micro& op) {
        IKAT_ASSERT(!op.list.count || op.info.propagation == Propagation::Mix,
                    "listed operands have no places of their own");
        put(code, op, std::uint32_t(op.info.propagation), op.reads, op.writes);
    }

    static void put(Lowering& code, const Micro& op, std::uint32_t what, std::uint32_t reads, std::uint32_t writes) {
        std::uint32_t widths = 0;
        for (unsigned i = 0; i < op.fields.size(); ++i)
            if ((op.reads | op.writes) >> i & 1) widths |= std::uint32_t(code.values[op.fields[i]].width) << 4 * i;
        code.put({.run = select_definedness(),
                  .fields = {what, reads, writes, widths, op.info.parameter, op.list.count ? 1 + op.list.results : 0},
                  .checks = true});
    }

    static void replace_access(Lowering& code, const Micro& op) {
        const MicroInfo::Access& access = op.info.access;
        const bool is_load = access.direction == Direction::Read;
        const std::uint8_t elements = is_load ? op.writes : std::uint8_t(op.reads & ~A);
        code.put({.run = is_load ? select_checked_load() : select_checked_store(),
                  .fields = {elements, std::uint32_t(access.space),
                             access.bytes / std::uint32_t(std::popcount(elements)), code.values[op.fields[1]].slot},
                  .checks = true});
    }
};

}  // namespace

const Tool& definedness() {
    static const Checker checker;
    return checker;
}

}  // namespace ikat::emulator
