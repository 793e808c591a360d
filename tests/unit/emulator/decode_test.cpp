// SPDX-License-Identifier: Apache-2.0
// The decoder's rules compared with the table of forms: which instructions are run, and by which rule.
#include <map>
#include <set>
#include <string>

#include "runtime/emulator/decode/rules/rules.hpp"
#include "tests/catch.hpp"

using namespace ikat;

namespace {

/// The modifiers of a row: "sat s32".
std::string words(const emulator::RuleRow& row) {
    std::string out;
    for (const ptx::Modifier each : row.modifiers()) out += (out.empty() ? "" : " ") + std::string(ptx::name(each));
    return out;
}

}  // namespace

TEST_CASE("every rule matches some form, and no two rules are alike") {
    std::set<const emulator::RuleRow*> used;
    for (std::size_t opcode = 1; opcode < ptx::opcode_count; ++opcode)
        for (const ptx::Form& form : ptx::forms_of(ptx::Opcode(opcode)))
            if (const emulator::RuleRow* const row = emulator::row_of(form)) used.insert(row);
    std::set<std::pair<ptx::Opcode, std::string>> seen;
    for (const emulator::Family* family : emulator::families())
        for (const emulator::RuleRow& row : family->rows) {
            INFO(ptx::info(row.opcode).name << " with '" << words(row) << "'");
            CHECK(used.contains(&row));
            CHECK(seen.insert({row.opcode, words(row)}).second);
        }
}

TEST_CASE("each form of an opcode has a row, or none has; these rows say that they are not run") {
    std::set<std::string> not_run;
    for (std::size_t opcode = 1; opcode < ptx::opcode_count; ++opcode) {
        INFO(ptx::info(ptx::Opcode(opcode)).name);
        std::set<bool> have_rows;
        for (const ptx::Form& form : ptx::forms_of(ptx::Opcode(opcode))) {
            const emulator::RuleRow* const row = emulator::row_of(form);
            have_rows.insert(row != nullptr);
            if (row && row->rule == emulator::not_run)
                not_run.insert(std::string(ptx::info(row->opcode).name) + " " + words(*row));
        }
        CHECK(have_rows.size() == 1);
    }
    CHECK(not_run == std::set<std::string>{"cp bulk cp_mask", "ldmatrix m16n16", "ldmatrix m8n16", "mma block_scale",
                                           "mma kind::f8f6f4", "mma sp block_scale", "mma sp kind::f8f6f4",
                                           "stmatrix m16n8", "wgmma mma_async sp"});
}

TEST_CASE("the row that requires most of a form's modifiers is used") {
    const auto with = [](const char* stem, std::string_view modifiers) {
        ptx::Module module = ptx::parse(".version 8.0\n.target sm_100\n.address_size 64\n.visible .entry k()\n{\n" +
                                            std::string(stem) + std::string(modifiers) + " %r1, %r2, %r3;\n}\n",
                                        "row.ptx");
        const ptx::Match match = ptx::match(module, module.functions[0].instructions[0]);
        const emulator::RuleRow* const row = match.form ? emulator::row_of(*match.form) : nullptr;
        return row ? words(*row) : "none";
    };
    CHECK(with("add", ".u32") == "");
    CHECK(with("add", ".sat.s32") == "sat s32");
    CHECK(with("add", ".sat.f32") == "");
    CHECK(with("add", ".cc.u32") == "cc");
    CHECK(with("add", ".u16x2") == "s16x2");
    CHECK(with("add", ".f32.f16") == "f32 bf16");
    CHECK(with("min", ".relu.s32") == "relu s32");
    CHECK(with("min", ".xorsign.abs.f16") == "abs");
    CHECK(with("mul", ".wide.u16") == "wide");
    CHECK(with("wgmma", ".fence.sync.aligned") == "fence");
    CHECK(with("tcgen05", ".wait::ld.sync.aligned") == "none");
}
