// SPDX-License-Identifier: Apache-2.0
// Counts an answer. The place of highest pressure is the problem's, whatever the answer does about it.
#include "regalloc/text/summary.hpp"

namespace ikat::regalloc {
namespace {

void count(const Edit& edit, ClassSummary& row) {
    switch (edit.kind) {
        case Edit::Kind::Move: ++row.moves; return;
        case Edit::Kind::Spill: ++row.spills; return;
        case Edit::Kind::Reload: ++row.reloads; return;
        case Edit::Kind::Rematerialise: ++row.rematerialised; return;
    }
}

}  // namespace

std::vector<ClassSummary> summary_of(const Problem& problem, const Allocation& allocation) {
    std::vector<ClassSummary> summary(allocation.used.size());
    for (std::size_t c = 0; c < summary.size(); ++c) summary[c].registers = allocation.used[c];
    for (const Edit& edit : allocation.edits) count(edit, summary[edit.register_class]);

    const auto table = pressure(problem);
    for (std::uint32_t b = 0; b < table.size(); ++b)
        for (std::uint32_t place = 0; place < table[b].size(); ++place)
            for (std::size_t c = 0; c < summary.size(); ++c)
                if (ClassSummary& row = summary[c]; table[b][place][c] > row.max_live)
                    row.max_live = table[b][place][c], row.block = FlowBlock{b}, row.before = place;
    return summary;
}

}  // namespace ikat::regalloc
