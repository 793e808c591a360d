// SPDX-License-Identifier: Apache-2.0
// From a user's lambda to an ast::KernelTree: its parameters, and running its body. contracts.cpp applies what was
// promised, finish.cpp removes unused nodes at the end.
#include "dsl/record/capture.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <string_view>
#include <thread>

#include "codegen/ast/digest.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/support/environment.hpp"
#include "dsl/record/kernel_state.hpp"
#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::Node;
using ast::Region;

namespace {

std::atomic<std::uint32_t> captures = 0;

bool compares_by_default() {
    const std::string_view set = environment("IKAT_CHECK_CAPTURE");
    if (set.empty() || set == "0" || set == "1") return set != "0";
    throw Error("IKAT_CHECK_CAPTURE is '" + std::string(set) + "'",
                "it is 0 or 1: whether host state is checked for that changes inside a region of a kernel");
}

std::atomic<bool>& compares() {
    static std::atomic<bool> on = compares_by_default();
    return on;
}

/// Runs the user's lambda. A separate function, so that the recorder's frame is above the frames it watches.
__attribute__((noinline)) void run_code(Recorder& recorder, const Code& code, const Argument* arguments) {
    recorder.watch_host(__builtin_dwarf_cfa());
    code.run(*code.lambda, arguments);
    recorder.watch_host(nullptr);
}

/// Makes a recorder the thread's active one during a capture; captures may nest.
class Active {
public:
    explicit Active(Recorder& recorder) : outer_(Recorder::exchange(&recorder)) {}
    ~Active() { Recorder::exchange(outer_); }
    Active(const Active&) = delete;

private:
    Recorder* outer_;
};

/// Names that begin with $ belong to the compiler, and _ is PTX's placeholder for an unused result.
bool is_name(std::string_view name) { return ir::is_identifier(name) && name[0] != '$' && name != "_"; }

}  // namespace

void KernelHandle::State::check_names(Recorder& recorder) const {
    const auto bad = [&](const std::string& what, const std::string& given) {
        recorder.complain("`" + given + "` cannot be the name of a " + what,
                          "names are letters, digits, _ and $, begin with a letter or _, and are not _ alone", where);
    };
    if (!is_name(name)) bad(is_function ? "device function" : "kernel", name);
    constexpr std::string_view system[] = {"vprintf", "__assertfail", "malloc", "free"};
    if (std::ranges::find(system, name) != std::end(system))
        recorder.complain("`" + name + "` is a built-in function of CUDA", "give yours another name", where);
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!is_name(names[i])) bad("parameter", names[i]);
        if (std::find(names.begin(), names.begin() + std::ptrdiff_t(i), names[i]) != names.begin() + std::ptrdiff_t(i))
            recorder.complain("two parameters are called `" + names[i] + "`", "give each its own name", where);
    }
}

Argument KernelHandle::State::add_parameter(Recorder& recorder, std::uint32_t i) const {
    const ParameterType& type = types[i];
    constexpr ir::Access accesses[] = {ir::Access::In, ir::Access::Out, ir::Access::InOut};
    ir::Parameter parameter{.name = names[i], .type = type.type};
    Argument argument;
    if (type.part && !type.pointer) {
        recorder.kernel.parameters.push_back(std::move(parameter));
        argument.value = recorder.parameter_value(i);
    } else if (type.bytes) {
        parameter.bytes = type.bytes;
        parameter.alignment = type.alignment;
        argument.array = {.index = i, .capture = recorder.capture(), .direction = Direction::Read};
        if (type.map) {
            recorder.kernel.maps.push_back(*type.map);
            recorder.kernel.maps.back().parameter = i;
        }
        recorder.kernel.parameters.push_back(std::move(parameter));
    } else if (type.pointer) {
        parameter.type = ir::Type::U64;
        parameter.access = accesses[int(type.direction)];
        parameter.element = type.type;
        argument.array = {.index = i, .capture = recorder.capture(), .direction = type.direction, .element = type.type};
        if (type.rank > 1) recorder.kernel.views.push_back({.pointer = i, .rank = type.rank});
        recorder.kernel.parameters.push_back(std::move(parameter));
    } else {
        recorder.kernel.parameters.push_back(std::move(parameter));
        argument.variable = recorder.define_parameter(i);
    }
    return argument;
}

std::vector<Argument> KernelHandle::State::add_parameters(Recorder& recorder) const {
    std::vector<Argument> out;
    for (const Declared& parameter : declared) {
        if (parameter.is_there) {
            for (std::uint32_t i = 0; i < parameter.count; ++i)
                out.push_back(add_parameter(recorder, parameter.first + i));
            continue;
        }
        recorder.kernel.absent.push_back({parameter.name, parameter.first});
        out.emplace_back().absent = parameter.name.c_str();
    }
    return out;
}

namespace {

/// Finds what is allowed in kernels only.
std::vector<Diagnostic> unfit_for_functions(const ast::KernelTree& function) {
    std::vector<Diagnostic> out;
    const auto complain = [&](const Location& where, const char* message, const char* hint) {
        out.push_back({.where = where, .message = message, .hint = hint});
    };
    for (const ast::NodeInfo& node : function.nodes) {
        if (node.kind == Kind::Return && node.arguments.empty())
            complain(node.where, "return_() in a device function",
                     "a function returns a value on every path: leave it with return_value(v)");
        if (node.kind == Kind::Operation && (node.op == ir::Op::Print || node.op == ir::Op::Check))
            complain(node.where, "print() or check() in a device function",
                     "use them in kernels, and in C++ functions that kernels call");
        if (node.kind == Kind::Operation && (node.op == ir::Op::GridWait || node.op == ir::Op::LaunchNext))
            complain(node.where, "grid_wait() or launch_next() in a device function",
                     "call them in kernels, and in C++ functions, which are inlined");
        if (node.kind == Kind::Operation && ir::is_collective(node.op))
            complain(node.where, "a barrier or an operation of several lanes in a device function",
                     "it cannot be checked that all threads call it together: use a C++ function, which is inlined");
    }
    for (const ir::Symbol& symbol : function.symbols)
        if (symbol.space != ir::Space::Local)
            complain(function.where, "shared or constant memory in a device function",
                     "declare it in the kernel and give the function values");
    return out;
}

}  // namespace

void KernelHandle::State::capture(bool compares) {
    Recorder recorder(++captures, compares);
    const Active active(recorder);
    recorder.kernel.name = name;
    recorder.kernel.is_function = is_function;
    recorder.kernel.where = where;
    recorder.callers = Callers(where);
    recorder.contracts = contracted;
    check_names(recorder);
    recorder.diagnostics.insert(recorder.diagnostics.end(), misdeclared.begin(), misdeclared.end());
    try {
        const std::vector<Argument> arguments = add_parameters(recorder);
        run_code(recorder, code, arguments.data());
    } catch (const Error& error) { diagnostics = error.diagnostics(); } catch (const std::bad_alloc&) {
        diagnostics = {{.where = recorder.here(),
                        .message = "the host's memory is exhausted while the kernel is captured",
                        .hint = std::string(endless_hint)}};
    } catch (...) {
        thrown = std::current_exception();
        return;
    }
    apply_contracts(recorder);
    kernel = recorder.finish();
    diagnostics.insert(diagnostics.begin(), recorder.diagnostics.begin(), recorder.diagnostics.end());
    // After a recording mistake, the checks of the whole kernel would report false errors.
    if (diagnostics.empty()) diagnostics = ast::check(*kernel);
    if (diagnostics.empty()) diagnostics = wrong_swizzles(*kernel, recorder.swizzled);
    kernel->checked = diagnostics.empty();
    if (diagnostics.empty() && is_function) diagnostics = unfit_for_functions(*kernel);
    recorder.callers.explain(diagnostics);
}

namespace {

/// Whether a function's result depends only on its arguments, so threads with equal arguments get equal results.
bool is_pure(const ast::KernelTree& function) {
    return std::ranges::all_of(function.nodes, [](const ast::NodeInfo& node) {
        if (node.kind == Kind::Operation) return ir::effects(node.op).none() && node.op != ir::Op::Special;
        return node.kind != Kind::Store && node.kind != Kind::Load && node.kind != Kind::Atomic &&
               node.kind != Kind::While;
    });
}

/// Adds a function after those that it calls; a diagnostic if another has its name.
void add_function(Recorder& recorder, const ast::KernelTree& function) {
    for (const ast::KernelTree& called : function.functions) add_function(recorder, called);
    auto& functions = recorder.kernel.functions;
    const auto found = std::ranges::find(functions, function.name, &ast::KernelTree::name);
    if (found == functions.end() && function.name != recorder.kernel.name) {
        functions.push_back(function);
        functions.back().functions.clear();
    } else if (found == functions.end() || !(found->where == function.where)) {
        recorder.complain("two functions are called `" + function.name + "`", "give each its own name");
    }
}

}  // namespace

Recorded call(const KernelHandle& function, ir::Type result, RecordedValues arguments, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const KernelHandle::State& called = *function.state_;
    const bool calls_itself = called.is_captured_here() && recorder.kernel.is_function &&
                              recorder.kernel.name == called.name && recorder.kernel.where == called.where;
    bool pure = false;
    try {
        if (!calls_itself) {
            const ast::KernelTree& body = function.ast();
            add_function(recorder, body);
            pure = is_pure(body);
        }
    } catch (const Error& error) {
        for (const Diagnostic& each : error.diagnostics()) recorder.diagnostics.push_back(each);
        return literal(result, std::int64_t{0});
    }
    ast::NodeInfo node = recorder.node_of({.op = pure ? ir::Op::PureCall : ir::Op::Call, .type = result});
    node.attribute = recorder.add_text(called.name);
    node.arguments = recorder.commit_operands(arguments);
    Recorded out = recorder.leaf(recorder.append(std::move(node)));
    out.effects = pure ? 0 : 1;
    return out;
}

void give(Recorded value, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const ast::Node node = recorder.commit(value);
    recorder.kernel.gives = recorder.kernel[node].type;
    recorder.statement({.kind = Kind::Return, .arguments = {node}, .where = recorder.here()});
}

void refuse_absent(const char* name) {
    const Recorder& recorder = Recorder::active();
    throw Error(
        Diagnostic{.where = recorder.here().known() ? recorder.here() : recorder.kernel.where,
                   .message = "parameter `" + std::string(name) + "` is used, and this kernel is made without it",
                   .hint = "ask first: if (" + std::string(name) + ") ..., an if of the host"});
}

void KernelHandle::make_function() { state_->is_function = true; }

KernelHandle::KernelHandle(const char* name, const DeclaredName* names, const ParameterTypes* types,
                           std::uint32_t count, Code code, const Where& where)
    : state_(make_reference<State>()) {
    State& state = *state_;
    state.name = name;
    state.code = std::move(code);
    state.where = Location::of(where);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (names && names[i].further) {
            for (const FurtherParameter& each : *names[i].further) state.declare(each.name, each.types);
            continue;
        }
        const std::string given = names && names[i].name ? names[i].name : "p" + std::to_string(i);
        const bool is_left_out = names && !names[i].is_there;
        if (is_left_out && !types[i].is_optional)
            state.misdeclared.push_back(
                {.where = state.where,
                 .message = "parameter `" + given + "` is given with only_if(), but its type is not Optional",
                 .hint = "declare it as Optional<In<float>>, Optional<u32> ..."});
        state.declare(given, types[i], !is_left_out || !types[i].is_optional);
    }
}

void KernelHandle::State::declare(const std::string& given, const ParameterTypes& as, bool is_there) {
    const auto first = std::uint32_t(types.size());
    for (const ParameterType& type : std::span(as.first, is_there ? as.count : 0)) {
        names.push_back(type.part ? given + '_' + type.part : given);
        types.push_back(type);
    }
    declared.push_back({given, first, std::uint32_t(types.size()) - first, is_there});
}

KernelHandle::KernelHandle(const KernelHandle& other) = default;
KernelHandle& KernelHandle::operator=(const KernelHandle& other) = default;
KernelHandle::~KernelHandle() = default;

const char* KernelHandle::name() const { return state_->name.c_str(); }

namespace {

/// Which thread waits for which capture. Two functions that call each other, used by two threads at once, would
/// deadlock.
struct Captures {
    std::mutex mutex;
    std::condition_variable ended;
    std::map<std::thread::id, const std::atomic<std::thread::id>*> waiting;  // waits for the capture by that thread

    /// Whether the thread that `capturing` names waits for this one, directly or through others.
    bool closes_circle(const std::atomic<std::thread::id>& capturing) const {
        std::thread::id thread = capturing;
        for (auto next = waiting.find(thread); next != waiting.end(); next = waiting.find(thread))
            thread = *next->second;
        return thread == std::this_thread::get_id();
    }
};
Captures& all_captures() {
    static Captures captures;
    return captures;
}

}  // namespace

void KernelHandle::State::refuse_circle() const {
    if (is_function)
        throw Error("the device function `" + name + "` is called by a function that it calls",
                    "a function may call itself, but not another one that calls it: merge them, or write a loop");
    throw Error("the kernel `" + name + "` is used while it is being captured",
                "its own body cannot launch or check it");
}

void KernelHandle::State::capture_once() {
    const bool compares = trace::compares();  // or throws, before anyone waits for this capture
    Captures& all = all_captures();
    std::unique_lock lock(all.mutex);
    const std::thread::id nobody, here = std::this_thread::get_id();
    while (!captured && capturing != nobody) {
        if (all.closes_circle(capturing)) refuse_circle();
        all.waiting[here] = &capturing;
        all.ended.wait(lock);
        all.waiting.erase(here);
    }
    if (captured) return;
    capturing = here;
    lock.unlock();
    capture(compares);
    lock.lock();
    captured = true;
    capturing = nobody;
    all.ended.notify_all();
}

const ast::KernelTree& KernelHandle::ast() const {
    if (!state_->captured) state_->capture_once();
    if (state_->thrown) std::rethrow_exception(state_->thrown);
    if (!state_->diagnostics.empty()) throw Error(state_->diagnostics);
    return *state_->kernel;
}

const KernelInfo& KernelHandle::info() const { return ast(); }
const Digest& KernelHandle::digest() const {
    const ast::KernelTree& kernel = ast();
    std::call_once(state_->has_digest, [&] { state_->digest = ast::digest(kernel); });
    return state_->digest;
}

void KernelHandle::require(const Contract& contract) { state_->contracts.push_back(contract); }
void KernelHandle::launch_bounds(std::uint32_t max_threads, std::uint32_t min_blocks) {
    state_->bounds.max_threads = max_threads;
    state_->bounds.min_blocks = min_blocks;
}
void KernelHandle::cluster(std::uint32_t x, std::uint32_t y, std::uint32_t z) { state_->bounds.cluster = {x, y, z}; }
void KernelHandle::max_registers(std::uint32_t count) { state_->bounds.max_registers = count; }
void KernelHandle::contract() { state_->contracted = true; }

}  // namespace ikat::trace

void ikat::check_capture(bool on) { trace::compares() = on; }
