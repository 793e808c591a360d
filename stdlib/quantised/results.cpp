// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/results.hpp"

#include <memory>

#include "dsl/threads/control.hpp"
#include "dsl/threads/simt.hpp"

namespace ikat::stdlib {

using blocks::F, blocks::U;

std::string suffix_of(const EpilogueCode& code) { return code ? "_" + code.name() : ""; }

void add_epilogue(MoreParameters& more, const EpilogueCode& code) {
    if (!code) return;
    more.add<u32>("first_token");
    more.add<u32>("first_row");
    more.add(code.more());
}

StoreResult by_epilogue(const EpilogueCode& code, More& rest, const u32& rows, StoreResult store) {
    if (!code) return store;
    const U first_token = value(rest.next<u32>()), first_row = value(rest.next<u32>());
    const U all = value(first_row + rows);
    return [&code, first_token, first_row, all, store = std::move(store),
            epilogue = std::make_shared<const BoundEpilogue>(code, rest)](const Leaf<bool>& condition, const U& token,
                                                                          const U& row, const F& x) {
        const EpilogueGroup at{value(u32(0u)), value(first_token + token), value(first_row + row), all};
        const RowSumsOfGroup rows_of_group = epilogue->row_sums();
        if_(condition, [&] {
            Regs<f32, 1> results(x);
            epilogue->apply<float, float>(at, {results.begin(), 1}, {results.begin(), 1}, rows_of_group);
            store(value(pred(true)), token, row, value(results[0]));
        });
        if (code.has_row_sums()) epilogue->store(rows_of_group, at, 1, condition);
    };
}

}  // namespace ikat::stdlib
