// SPDX-License-Identifier: Apache-2.0
// Regions: opening and closing them, the constructs of control flow, and the second recording that finds host state
// which changes inside a region:
//
//     int k = 0;
//     if_(c, [&] { y[k++] = 1; });     first time y[0], second time y[1]: k runs on the host, once, at capture
//
// In debug capture, each outermost region is recorded twice, from the same state of the recorder, and compared.
#include <algorithm>
#include <exception>

#include "dsl/recorder.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::Node;
using ast::Region;

// ---- opening and closing

Region Recorder::add_region() {
    kernel.regions.emplace_back();
    open_.push_back(false);
    parents_.push_back(stack_.empty() ? ast::no_region : stack_.back());
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
        if (!first_round_) {
            first_round_ = tail(region);
            roll_back(region);
            return true;
        }
        compare(region);
        first_round_.reset();
        outermost_.reset();
    }
    open_[index(region)] = false;
    stack_.pop_back();
    return false;
}

void Recorder::reopen(Region region) {
    if (is_open(region)) return;
    reopen(parents_[index(region)]);
    flush();
    stack_.push_back(region);
    open_[index(region)] = true;
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

// ---- recording twice

Recorder::Sizes Recorder::sizes() const {
    return {kernel.nodes.size(), kernel.variables.size(), kernel.regions.size(), kernel.symbols.size(),
            kernel.texts.size(), trees_.size(),           diagnostics.size(),    dynamic_end};
}

Recorder::Round Recorder::tail(Region region) const {
    const Sizes& from = *outermost_;
    const auto behind = [](const auto& all, std::size_t first) {
        return std::vector(all.begin() + std::ptrdiff_t(first), all.end());
    };
    return {behind(kernel.nodes, from.nodes),     behind(kernel.variables, from.variables),
            behind(kernel.regions, from.regions), behind(kernel.symbols, from.symbols),
            behind(kernel.texts, from.texts),     kernel.regions[index(region)]};
}

void Recorder::roll_back(Region region) {
    const Sizes& to = *outermost_;
    kernel.nodes.resize(to.nodes);
    homes_.resize(to.nodes);
    positions_.resize(to.nodes);
    node_marks_.resize(std::min(node_marks_.size(), to.nodes));
    kernel.variables.resize(to.variables);
    kernel.regions.resize(to.regions);
    open_.resize(to.regions);
    parents_.resize(to.regions);
    kernel.symbols.resize(to.symbols);
    kernel.texts.resize(to.texts);
    trees_.resize(to.trees);
    tree_marks_.resize(std::min(tree_marks_.size(), to.trees));
    for (Tree& tree : trees_)
        if (!tree.leaf && tree.node != ast::no_node && index(tree.node) >= to.nodes) tree.node = ast::no_node;
    diagnostics.resize(to.diagnostics);
    located_ = std::min(located_, to.diagnostics);
    dynamic_end = to.dynamic_end;
    kernel.regions[index(region)].clear();
}

namespace {

bool same(const ast::NodeInfo& a, const ast::NodeInfo& b) {
    return a.kind == b.kind && a.op == b.op && a.type == b.type && a.operand_type == b.operand_type &&
           a.from == b.from && a.fp == b.fp && a.memory == b.memory && a.attribute == b.attribute &&
           a.place == b.place && a.variable == b.variable && a.arguments == b.arguments && a.guard == b.guard &&
           a.other == b.other && a.regions == b.regions;
}

}  // namespace

void Recorder::compare(Region region) {
    const Round now = tail(region);
    const auto same_variable = [](const auto& a, const auto& b) { return a.type == b.type; };
    const auto [first, second] = std::ranges::mismatch(first_round_->nodes, now.nodes, same);
    const bool equal = first == first_round_->nodes.end() && second == now.nodes.end() &&
                       std::ranges::equal(first_round_->variables, now.variables, same_variable) &&
                       first_round_->regions == now.regions && first_round_->symbols == now.symbols &&
                       first_round_->texts == now.texts && first_round_->content == now.content;
    if (equal) return;
    complain("host state changes inside a device region: recorded a second time, the region is another one",
             "a region is recorded once, not once per thread or round: keep what changes in a device variable (u32, "
             "f32 ...), and host counters outside of regions",
             second != now.nodes.end() ? second->where : here_);
}

// ---- if

namespace {

constexpr std::string_view if_body = "the body of if_", else_body = "the body of else_";

/// Adds an If to the current region and records its first arm.
Node record_if(Recorder& recorder, Value condition, Body body, std::string_view what) {
    const Location where = recorder.here();
    const Node test = recorder.commit(condition);
    const Region then = recorder.add_region();
    const Node node =
        recorder.statement({.kind = Kind::If, .arguments = {test}, .regions = {then, ast::no_region}, .where = where});
    recorder.record(then, [&] { body.call(body.object); });
    recorder.expect_content(then, what, where);
    return node;
}

/// Opens what is around an If, if it was made by else_if, for the time of its life.
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

/// Whether the If is what was recorded last and has no else yet.
bool continues(Recorder& recorder, If open, std::string_view what) {
    if (!recorder.owns(open.capture)) return false;
    const Region home = recorder.region_of(Node(open.node));
    const bool last = recorder.kernel[home].back() == Node(open.node);
    if (!last)
        recorder.complain(std::string(what) + " does not follow its if_ directly",
                          "write if_(condition, [&] { ... })." + std::string(what) + "(...) in one expression",
                          recorder.here());
    const bool taken = recorder.kernel[Node(open.node)].regions[1] != ast::no_region;
    if (last && taken)
        recorder.complain(std::string(what) + " of an if_ that has its else already",
                          "continue what the last else_if gives: if_(...).else_if(...).else_(...) in one expression",
                          recorder.here());
    return last && !taken;
}

}  // namespace

If if_(Value condition, Body body, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    return {index(record_if(recorder, condition, body, if_body)), recorder.capture()};
}

If else_if(If open, Condition condition, Body body, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!continues(recorder, open, "else_if")) return open;
    const Around around(recorder, Node(open.node));
    const Region otherwise = recorder.add_region();
    recorder.kernel[Node(open.node)].regions[1] = otherwise;
    Node inner{};
    recorder.record(
        otherwise, [&] { inner = record_if(recorder, condition.call(condition.object), body, "the body of else_if"); });
    return {index(inner), recorder.capture()};
}

void else_(If open, Body body, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!continues(recorder, open, "else_")) return;
    const Around around(recorder, Node(open.node));
    const Region otherwise = recorder.add_region();
    recorder.kernel[Node(open.node)].regions[1] = otherwise;
    const Location here = recorder.here();
    recorder.record(otherwise, [&] { body.call(body.object); });
    recorder.expect_content(otherwise, else_body, here);
}

// ---- loops

namespace {

/// Whether something in the region may differ from round to round.
bool may_change(const ast::Kernel& kernel, Region region) {
    return std::ranges::any_of(kernel[region], [&](Node id) {
        const ast::NodeInfo& node = kernel[id];
        return node.kind != Kind::Operation || !ir::is_pure(node.op);
    });
}

}  // namespace

void while_(Condition condition, Body body, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const Location here = recorder.here();
    const Region test = recorder.add_region();
    const Region inside = recorder.add_region();
    const Node loop = recorder.statement({.kind = Kind::While, .regions = {test, inside}, .where = here});
    Node holds{};
    recorder.record(test, [&] { holds = recorder.commit(condition.call(condition.object)); });
    recorder.kernel[loop].arguments = {holds};
    if (!may_change(recorder.kernel, test))
        recorder.complain("the condition of while_ reads nothing inside its lambda, so it never changes",
                          "read the variables inside: while_([&] { return i < n; }, ...)", here);
    ++recorder.loops;
    recorder.record(inside, [&] { body.call(body.object); });
    --recorder.loops;
    recorder.expect_content(inside, "the body of while_", here);
}

void check_step(double step, const Where& where) {
    if (step <= 0)
        Recorder::active().complain("the step of a range is not positive",
                                    "count upwards; an index that falls is end - 1 - i", Location::of(where));
}

Loop::Loop(ir::Type type, Value begin, Value end, Value step, std::uint32_t unroll, const Where& where)
    : type_(type), begin_(begin), end_(end), step_(step), unroll_(unroll), where_(where) {}

Value Loop::open() {
    Recorder& recorder = Recorder::active();
    if (state_ == State::Unused) {
        recorder.at(where_);
        exceptions_ = std::uint32_t(std::uncaught_exceptions());
        const std::uint32_t bounds[] = {recorder.adopt(begin_), recorder.adopt(end_), recorder.adopt(step_)};
        const Value operands[] = {begin_, end_, step_};
        recorder.together({operands, 3});
        recorder.arrange(bounds, 3);
        std::vector<Node> arguments;
        for (std::uint32_t tree : bounds) arguments.push_back(recorder.commit(tree));
        const auto variable = ast::Variable(recorder.kernel.variables.size());
        recorder.kernel.variables.push_back({.type = type_, .name = {}, .where = recorder.here()});
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

bool Loop::close() {
    Recorder& recorder = Recorder::active();
    const Location where = Location::of(where_);
    const Region body = recorder.kernel[Node(node_)].regions[0];
    if (recorder.close()) return false;
    --recorder.loops;
    state_ = State::Done;
    // The read of the loop's variable is always there.
    if (recorder.kernel[body].size() == 1) {
        recorder.kernel.regions[index(body)].clear();
        recorder.expect_content(body, "the body of a range loop", where);
    }
    return true;
}

Loop::~Loop() {
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
            first_round_.reset();
            outermost_.reset();
        }
        open_[index(stack_.back())] = false;
        stack_.pop_back();
    }
    --loops;
}

// ---- leaving

namespace {

void leave(Kind kind, std::string_view name, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (kind != Kind::Return && recorder.loops == 0)
        return recorder.complain(std::string(name) + "() outside of a loop",
                                 "it belongs into the body of a range loop or of while_", recorder.here());
    recorder.statement({.kind = kind, .where = recorder.here()});
}

}  // namespace

void break_(const Where& where) { leave(Kind::Break, "break_", where); }
void continue_(const Where& where) { leave(Kind::Continue, "continue_", where); }
void return_(const Where& where) { leave(Kind::Return, "return_", where); }

}  // namespace ikat::trace
