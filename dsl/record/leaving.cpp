// SPDX-License-Identifier: Apache-2.0
// What leaves a region before its end, the bodies of functions that are inlined, and contraction.
#include <utility>

#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::Region;

namespace {

void leave(Kind kind, std::string_view name, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (kind != Kind::Return && recorder.loops == 0)
        return recorder.complain(std::string(name) + "() outside of a loop",
                                 "it belongs in the body of a range loop or of while_", recorder.here());
    recorder.statement({.kind = kind, .where = recorder.here()});
}

}  // namespace

void break_(const Where& where) { leave(Kind::Break, "break_", where); }
void continue_(const Where& where) { leave(Kind::Continue, "continue_", where); }
void return_(const Where& where) { leave(Kind::Return, "return_", where); }

// ---- functions

Inlined::Inlined(ir::Type result, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (result != ir::Type::Void) result_ = recorder.define(result, {}, ast::no_node);
    const Region body = recorder.add_region();
    region_ = index(recorder.region());
    recorder.statement({.kind = Kind::Scope,
                        .attribute = result != ir::Type::Void,
                        .regions = {body, ast::no_region},
                        .where = recorder.here()});
    recorder.enter(body);
    recorder.functions.push_back({result, result_, std::exchange(recorder.loops, 0)});
}

void Inlined::close() {
    Recorder& recorder = Recorder::active();
    recorder.shut(Region(region_));
    recorder.loops = recorder.functions.back().outer_loops;
    recorder.functions.pop_back();
    open_ = false;
}

/// Still open only if an exception ends the capture.
Inlined::~Inlined() {
    if (Recorder* recorder = Recorder::current(); open_ && recorder) recorder->functions.pop_back();
}

Recorded Inlined::end(Recorded value, const Where& where) {
    assign(result_, value, where);
    close();
    return read(result_);
}

void Inlined::end() { close(); }

ir::Type returned_type(const Where& where) {
    Recorder& recorder = Recorder::active();
    if (!recorder.functions.empty()) return recorder.functions.back().type;
    recorder.complain("return_value() outside of a function",
                      "it leaves a device_fn() or an inline_fn(); return_() ends the thread", Location::of(where));
    return ir::Type::Void;
}

void return_value(ir::Type given, Recorded value, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    // A recorded return gives fewer follow-up errors than a region that records nothing.
    if (recorder.functions.empty()) return void(recorder.statement({.kind = Kind::Return, .where = recorder.here()}));
    const auto [type, result, loops] = recorder.functions.back();
    const auto name = [](ir::Type type) {
        return type == ir::Type::Void ? std::string("nothing") : std::string(ir::info(type).name);
    };
    if (given != type)
        recorder.complain(
            "return_value() of " + name(given) + " in a function that returns " + name(type),
            "all values that a function returns have the type of the value that its lambda returns at its end",
            recorder.here());
    else if (type != ir::Type::Void)
        assign(result, value, where);
    recorder.statement({.kind = Kind::Leave, .where = recorder.here()});
}

// ---- contraction

Contraction::Contraction(bool allowed) : before_(std::exchange(Recorder::active().contracts, allowed)) {}
bool contracted() { return Recorder::active().contracts; }
Contraction::~Contraction() {
    if (Recorder* recorder = Recorder::current()) recorder->contracts = before_;
}

}  // namespace ikat::trace
