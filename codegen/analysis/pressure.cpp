// SPDX-License-Identifier: Apache-2.0
#include "codegen/analysis/pressure.hpp"

#include <algorithm>

namespace ikat::analysis {
namespace {

using namespace ir;

bool takes_register(const Function& fn, Value value) {
    const Inst inst = fn[value].instruction;
    return inst == no_inst || fn[inst].op != Op::Const;
}

RegisterCount count(const Function& fn, const Bitset& live) {
    RegisterCount out;
    live.each([&](std::size_t v) {
        if (takes_register(fn, Value(v))) ++out[width_of(fn.type(Value(v)))];
    });
    return out;
}

}  // namespace

Pressure::Pressure(const Function& fn, const Liveness& liveness) : at_(fn.inst_count()) {
    const auto raise = [&](const RegisterCount& by) {
        for (std::size_t i = 0; i < by.of.size(); ++i) peak_.of[i] = std::max(peak_.of[i], by.of[i]);
    };
    for (Block block : fn.blocks())
        each_point(fn, liveness, block, [&](Inst inst, const Bitset& live) {
            if (inst == no_inst) {
                RegisterCount entry = count(fn, live);
                for (Value parameter : fn[block].parameters)
                    if (!live.test(index(parameter))) ++entry[width_of(fn.type(parameter))];
                return raise(entry);
            }
            RegisterCount& here = at_[index(inst)];
            here = count(fn, live);
            for (Value result : fn.results(inst))
                if (!live.test(index(result)) && takes_register(fn, result)) ++here[width_of(fn.type(result))];
            raise(here);
        });
}

}  // namespace ikat::analysis
