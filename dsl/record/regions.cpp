// SPDX-License-Identifier: Apache-2.0
// Regions: opening and closing them, the constructs of control flow, and the second round, which finds host state that
// changes inside a region:
//
//     int k = 0;
//     if_(c, [&] { y[k++] = 1; });     first time y[0], second time y[1]: k runs on the host, once, at capture
// Each outermost region is recorded twice. The second round creates nothing: each node, variable, region and symbol is
// compared with the one that the first round recorded at that point. Where they differ, the rest of the first round is
// dropped and recording continues, so that all mistakes are reported together. Trees are made anew.
//
//     int k = 0;
//     if_(c, [&] { k = 5; y[0] = 1; });    both rounds are the same; but k has changed after the region
//
// That is found by looking at the host's stack (host_stack.hpp).
#include <algorithm>
#include <exception>

#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::Node;
using ast::Region;

// ---- opening and closing

Region Recorder::add_region() {
    const Region parent = stack_.empty() ? ast::no_region : stack_.back();
    if (replaying_) {
        if (now_.regions < kernel.regions.size() && parents_[now_.regions] == parent) return Region(now_.regions++);
        diverge(here_);
    }
    kernel.regions.emplace_back();
    open_.push_back(false);
    parents_.push_back(parent);
    return Region(kernel.regions.size() - 1);
}

void Recorder::open(Region region) {
    flush();
    stack_.push_back(region);
    open_[index(region)] = true;
    if (compare_regions_ && !outermost_) outermost_ = sizes(), outermost_region_ = region;
}

bool Recorder::close() {
    flush();
    const Region region = stack_.back();
    if (outermost_ && outermost_region_ == region) {
        if (!replaying_) {
            begin_replay();
            return true;
        }
        end_replay();
    }
    open_[index(region)] = false;
    stack_.pop_back();
    return false;
}

void Recorder::enter(Region region) {
    flush();
    stack_.push_back(region);
    open_[index(region)] = true;
}

void Recorder::reopen(Region region) {
    if (is_open(region)) return;
    reopen(parents_[index(region)]);
    enter(region);
}

void Recorder::shut(Region until) {
    flush();
    while (stack_.back() != until) {
        open_[index(stack_.back())] = false;
        stack_.pop_back();
    }
}

void Recorder::expect_content(Region region, std::string_view what, const Location& where) {
    if (!kernel[region].empty()) return;
    complain(std::string(what) + " records nothing for the device",
             "a C++ return, break or continue inside it acts on the host, once, while the kernel is captured: use "
             "return_if(), break_() or continue_()",
             where);
}

// ---- the second round

Recorder::Sizes Recorder::sizes() const {
    return {kernel.nodes.size(), kernel.variables.size(), kernel.regions.size(), kernel.symbols.size(),
            trees_.size(),       diagnostics.size(),      decisions_.size(),     dynamic_end};
}

void Recorder::begin_replay() {
    replaying_ = true;
    now_ = *outermost_;
    trees_.cut(now_.trees);
    tree_marks_.resize(std::min(tree_marks_.size(), now_.trees));
    for (; !recommitted_.empty(); recommitted_.pop_back())
        trees_[recommitted_.back().tree].node = recommitted_.back().node;
    dynamic_end = now_.dynamic_end;
}

void Recorder::end_replay() {
    const bool complete = now_.nodes == kernel.nodes.size() && now_.variables == kernel.variables.size() &&
                          now_.regions == kernel.regions.size() && now_.symbols == kernel.symbols.size();
    if (!complete) diverge(here_);
    replaying_ = false;
    outermost_.reset();
    recommitted_.clear();
}

namespace {

/// Compares nodes as they were first recorded: the else of an If and the condition of a While are set later.
bool same(const ast::NodeInfo& a, const ast::NodeInfo& b) {
    return a.kind == b.kind && a.op == b.op && a.type == b.type && a.operand_type == b.operand_type &&
           a.from == b.from && a.fp == b.fp && a.memory == b.memory && a.attribute == b.attribute &&
           a.place == b.place && a.variable == b.variable && a.factor == b.factor && a.guard == b.guard &&
           a.regions[0] == b.regions[0] && (a.kind == Kind::While || a.arguments == b.arguments) &&
           a.other == b.other && a.results == b.results;
}

template <class T>
void cut(std::vector<T>& all, std::size_t size) {
    if (all.size() > size) all.erase(all.begin() + std::ptrdiff_t(size), all.end());
}

}  // namespace

bool Recorder::repeats(const ast::NodeInfo& node) {
    const bool repeated =
        now_.nodes < kernel.nodes.size() && homes_[now_.nodes] == region() && same(kernel.nodes[now_.nodes], node);
    if (!repeated) diverge(node.where);
    return repeated;
}

void Recorder::diverge(const Location& where) {
    replaying_ = false;
    outermost_.reset();
    recommitted_.clear();
    cut(diagnostics, now_.diagnostics);
    located_ = std::min(located_, diagnostics.size());
    kernel.nodes.cut(now_.nodes);
    cut(homes_, now_.nodes);
    cut(positions_, now_.nodes);
    cut(node_marks_, now_.nodes);
    cut(kernel.variables, now_.variables);
    cut(kernel.regions, now_.regions);
    cut(open_, now_.regions);
    cut(parents_, now_.regions);
    cut(kernel.symbols, now_.symbols);
    const auto dropped = [&](Node node) { return index(node) >= now_.nodes; };
    for (auto& region : kernel.regions) std::erase_if(region, dropped);
    for (ast::NodeInfo& node : kernel.nodes) {
        if (node.regions[1] != ast::no_region && index(node.regions[1]) >= now_.regions)
            node.regions[1] = ast::no_region;
        if (node.kind == Kind::While && !node.arguments.empty() && dropped(node.arguments[0])) node.arguments = {};
    }
    complain("host state changes inside a device region: recording it a second time gave a different result",
             "a region is recorded once, not once per thread or iteration: keep what changes in a device variable "
             "(u32, f32 ...), and host counters outside of regions",
             where);
}

void Recorder::expect_unchanged(const HostStack::Mark& mark, const Location& where) {
    if (!host_.changed(mark)) return;
    complain("a host variable is assigned inside a device region, which happens only once, when the kernel is captured",
             "declare it as u32, f32 ... if it differs between threads or iterations; move a host variable that only "
             "the region uses inside it",
             where);
}

bool Recorder::decide(bool now) {
    if (replaying_ && now_.decisions < decisions_.size()) return decisions_[now_.decisions++];
    if (outermost_) decisions_.push_back(now);
    return now;
}

void Recorder::set_else(Node node, Region otherwise) {
    if (replaying_ && kernel[node].regions[1] != otherwise) diverge(here_);
    kernel[node].regions[1] = otherwise;
}

void Recorder::set_condition(Node node, Node holds) {
    ast::NodeInfo& loop = kernel[node];
    if (replaying_ && loop.arguments[0] != holds) diverge(here_);
    kernel[node].arguments = {holds};
}

// ---- if

namespace {

constexpr std::string_view if_body = "the body of if_", else_body = "the body of else_";

/// Adds an If to the current region and records its first arm.
Node record_if(Recorder& recorder, Recorded condition, Body body, std::string_view what, const void* frame) {
    const Location where = recorder.here();
    const Node test = recorder.commit(condition);
    const Region then = recorder.add_region();
    const Node node =
        recorder.statement({.kind = Kind::If, .arguments = {test}, .regions = {then, ast::no_region}, .where = where});
    recorder.record(then, {frame, where}, [&] { body.call(body.object); });
    recorder.expect_content(then, what, where);
    return node;
}

/// Reopens the regions around an If that else_if made, for the lifetime of this object.
class Around {
public:
    Around(Recorder& recorder, Node node) : recorder_(recorder), outside_(recorder.region()) {
        recorder.reopen(recorder.region_of(node));
    }
    ~Around() { recorder_.shut(outside_); }
    Around(const Around&) = delete;

private:
    Recorder& recorder_;
    Region outside_;
};

/// Whether the If is the last thing recorded and has no else yet.
bool continues(Recorder& recorder, If open, std::string_view what) {
    if (!recorder.owns(open.capture)) return false;
    const Region home = recorder.region_of(Node(open.node));
    const bool last = recorder.decide(recorder.kernel[home].back() == Node(open.node));
    if (!last)
        recorder.complain(std::string(what) + " does not follow its if_ directly",
                          "write if_(condition, [&] { ... })." + std::string(what) + "(...) in one expression",
                          recorder.here());
    const bool taken = recorder.decide(recorder.kernel[Node(open.node)].regions[1] != ast::no_region);
    if (last && taken)
        recorder.complain(std::string(what) + " of an if_ that already has an else",
                          "continue the result of the last else_if: if_(...).else_if(...).else_(...) in one expression",
                          recorder.here());
    return last && !taken;
}

}  // namespace

If if_(Recorded condition, Body body, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    return {index(record_if(recorder, condition, body, if_body, __builtin_dwarf_cfa())), recorder.capture()};
}

If else_if(If open, Condition condition, Body body, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!continues(recorder, open, "else_if")) return open;
    const Around around(recorder, Node(open.node));
    const Region otherwise = recorder.add_region();
    recorder.set_else(Node(open.node), otherwise);
    Node inner{};
    const Caller caller{__builtin_dwarf_cfa(), recorder.here()};
    recorder.record(otherwise, caller, [&] {
        inner = record_if(recorder, condition.call(condition.object), body, "the body of else_if", caller.frame);
    });
    return {index(inner), recorder.capture()};
}

void else_(If open, Body body, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!continues(recorder, open, "else_")) return;
    const Around around(recorder, Node(open.node));
    const Region otherwise = recorder.add_region();
    recorder.set_else(Node(open.node), otherwise);
    const Location here = recorder.here();
    recorder.record(otherwise, {__builtin_dwarf_cfa(), here}, [&] { body.call(body.object); });
    recorder.expect_content(otherwise, else_body, here);
}

// ---- loops

namespace {

/// Whether something in the region may differ between iterations.
bool may_change(const ast::KernelTree& kernel, Region region) {
    return std::ranges::any_of(kernel[region], [&](Node id) {
        const ast::NodeInfo& node = kernel[id];
        return node.kind != Kind::Operation || !ir::effects(node.op).none();
    });
}

}  // namespace

void while_(Condition condition, Body body, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const Location here = recorder.here();
    const Caller caller{__builtin_dwarf_cfa(), here};
    const Region test = recorder.add_region();
    const Region inside = recorder.add_region();
    const Node loop = recorder.statement({.kind = Kind::While, .regions = {test, inside}, .where = here});
    Node holds{};
    recorder.record(test, caller, [&] { holds = recorder.commit(condition.call(condition.object)); });
    recorder.set_condition(loop, holds);
    if (!may_change(recorder.kernel, test))
        recorder.complain("the condition of while_ reads nothing inside its lambda, so it never changes",
                          "read the variables inside: while_([&] { return i < n; }, ...)", here);
    ++recorder.loops;
    recorder.record(inside, caller, [&] { body.call(body.object); });
    --recorder.loops;
    recorder.expect_content(inside, "the body of while_", here);
}

bool counts_down(double step, const Where& where) {
    if (step == 0)
        Recorder::active().complain("the step of a range is 0",
                                    "range(begin, end, 2) counts upwards, range(begin, end, -1) down",
                                    Location::of(where));
    return step < 0;
}

RangeLoop::RangeLoop(ir::Type type, Recorded begin, Recorded end, Recorded step, std::uint32_t unroll,
                     const Where& where)
    : type_(type), begin_(begin), end_(end), step_(step), unroll_(unroll), where_(where) {}

Recorded RangeLoop::open() {
    Recorder& recorder = Recorder::active();
    if (state_ == State::Unused) {
        recorder.at(where_);
        exceptions_ = std::uint32_t(std::uncaught_exceptions());
        const std::uint32_t bounds[] = {recorder.adopt(begin_), recorder.adopt(end_), recorder.adopt(step_)};
        const Recorded operands[] = {begin_, end_, step_};
        recorder.together({operands, 3});
        recorder.arrange(bounds, 3);
        ast::Nodes arguments;
        for (std::uint32_t tree : bounds) arguments.push_back(recorder.commit(tree));
        const ast::Variable variable = recorder.add_variable({.type = type_, .name = {}, .where = recorder.here()});
        const Region body = recorder.add_region();
        node_ = index(recorder.statement({.kind = Kind::For,
                                          .attribute = unroll_,
                                          .variable = variable,
                                          .arguments = std::move(arguments),
                                          .regions = {body, ast::no_region},
                                          .where = recorder.here()}));
        ++recorder.loops;
        recorder.open(body);
        state_ = State::Open;
    }
    return read({index(recorder.kernel[Node(node_)].variable), recorder.capture()});
}

bool RangeLoop::close() {
    Recorder& recorder = Recorder::active();
    const Location where = Location::of(where_);
    const Region body = recorder.kernel[Node(node_)].regions[0];
    if (recorder.close()) return false;
    --recorder.loops;
    state_ = State::Done;
    // Even an empty body contains the read of the loop variable.
    if (recorder.kernel[body].size() <= 1) {
        recorder.kernel.regions[index(body)].clear();
        recorder.expect_content(body, "the body of a range loop", where);
    }
    return true;
}

RangeLoop::~RangeLoop() {
    Recorder* recorder = Recorder::current();
    if (state_ != State::Open || !recorder || std::uncaught_exceptions() > int(exceptions_)) return;
    recorder->abandon(recorder->kernel[Node(node_)].regions[0]);
    recorder->complain("the body of a range loop is left by a C++ break, return or goto",
                       "that acts on the host, once, while the kernel is captured: use break_() or return_if()",
                       Location::of(where_));
}

void Recorder::abandon(Region region) {
    flush();
    while (is_open(region)) {
        if (outermost_ && outermost_region_ == stack_.back()) {
            replaying_ = false;
            outermost_.reset();
            recommitted_.clear();
        }
        open_[index(stack_.back())] = false;
        stack_.pop_back();
    }
    --loops;
}

}  // namespace ikat::trace
