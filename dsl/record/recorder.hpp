// SPDX-License-Identifier: Apache-2.0
// The recorder behind trace.hpp: one capture's trees, nodes and open regions. Only the language's own .cpp files see
// it.
//
// Pure nodes (reads, loads, arithmetic) and operations of several lanes wait in the *window* until a statement comes:
// an assignment, a store, a barrier, control flow. Then they enter the region in the order of the window. Until then
// the window can be put in order (arrange): C++ compilers evaluate the operands of + in orders of their own, the AST
// has them left to right.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "codegen/support/diagnostic.hpp"
#include "dsl/record/callers.hpp"
#include "dsl/record/host_stack.hpp"
#include "dsl/record/trace.hpp"

namespace ikat::trace {

/// An expression that a Value names. A leaf is a node from the start.
struct Tree {
    Operation what{};
    ast::Node node = ast::no_node;  // as which it was committed last
    bool leaf = false;
    std::uint8_t count = 0;
    std::uint32_t arguments[4]{};
};

/// The last bytes of a stack, which grows down to `end`.
struct Reserve {
    std::uintptr_t end = 0;
    std::size_t bytes = 0;
};

/// Who records a region: a place in the user's source, and the end of the frame of the function that it is in.
struct Caller {
    const void* frame = nullptr;  // __builtin_dwarf_cfa() of what the user's function calls
    Location where{};
};

/// What a capture is recorded in. Each thread keeps that of its last capture, so that the next one need not grow it
/// again.
struct Arena {
    std::vector<ast::NodeInfo> nodes;
    std::vector<Tree> trees;
    std::vector<ast::Region> homes;        // by node
    std::vector<std::uint32_t> positions;  // by node: in the window
    std::vector<ast::Node> window;
    std::vector<ast::Node> order, before, wished;  // of arrange(), and their places
    std::vector<std::uint32_t> places;
    std::vector<std::uint32_t> tree_marks, node_marks;  // visited by the walk of that number
    void clear();
};

/// Beyond any kernel, and below what the host's memory holds.
inline constexpr std::size_t most_nodes = std::size_t{1} << 21;
inline constexpr std::string_view endless_hint =
    "a C++ loop over a number of the host's is unrolled: write for (auto i : range(n)) or while_(), which the device "
    "runs";

class Recorder {
public:
    explicit Recorder(std::uint32_t capture, bool compare_regions);
    ~Recorder();

    /// The recorder of the capture that goes on in this thread. Throws Error if there is none.
    static Recorder& active();
    /// The same; a capture that `capture` is not the number of is the user's error.
    static Recorder* current();
    static Recorder* exchange(Recorder* recorder);

    ast::Kernel kernel;
    std::vector<Diagnostic> diagnostics;
    Callers callers;

    std::uint32_t capture() const { return capture_; }

    // ---- diagnostics

    /// Something the user got wrong. Without a place it gets that of the statement that follows.
    void complain(std::string message, std::string hint, Location where = {});
    /// Whether something belongs to this capture; if not, that is a diagnostic.
    bool owns(std::uint32_t capture);
    /// A statement or a subscript begins at `where`; its operands have been recorded already.
    void at(const Where& where) { at(Location::of(where)); }
    void at(const Location& where);
    const Location& here() const { return here_; }

    // ---- trees (trace.cpp)

    Recorded tree(const Operation& what, RecordedValues arguments);
    /// The node of an operation, here, without its operands.
    ast::NodeInfo node_of(const Operation& what) const;
    /// The operands of one statement as nodes, in the order of the text.
    ast::Nodes commit_operands(RecordedValues arguments);
    Recorded leaf(ast::Node node);
    std::uint32_t adopt(const Recorded& value);
    /// Complains about side effects among operands whose order C++ leaves open; what they have done together.
    Recorded together(RecordedValues operands);
    ast::Node commit(const Recorded& value) { return commit(adopt(value)); }
    ast::Node commit(std::uint32_t tree);
    /// The first load that a tree makes in this expression.
    ast::Node find_load(std::uint32_t tree) const;

    /// The variable that stands for a scalar parameter, with its value.
    Variable define_parameter(std::uint32_t parameter);
    /// A parameter that is no variable.
    Recorded parameter_value(std::uint32_t parameter);

    // ---- nodes (window.cpp)

    /// Adds a node that is no statement to the window.
    ast::Node append(ast::NodeInfo node);
    /// The same for one that has results of these types; the nodes of the results.
    std::vector<ast::Node> append(ast::NodeInfo node, std::span<const ir::Type> types);
    /// Ends the window and adds a statement behind it.
    ast::Node statement(ast::NodeInfo node);
    /// Declares a variable and, if there is a value, assigns it.
    Variable define(ir::Type type, std::string name, ast::Node value);
    void flush();
    /// Puts the nodes that the trees need in tree order, left to right.
    void arrange(const std::uint32_t* roots, std::size_t count);

    // ---- regions (regions.cpp)

    ast::Region add_region();
    void open(ast::Region region);
    /// Ends the innermost region. True if it has to be recorded once more, and is open again for that.
    bool close();
    /// Records a region by calling a function, once or twice. Nothing of the host's above the caller may have changed
    /// when it returns.
    void record(ast::Region region, const Caller& caller, auto&& body) {
        open(region);
        const HostStack::Mark mark = replaying_ ? HostStack::Mark{} : host_.watch(caller.frame);
        body();
        expect_unchanged(mark, caller.where);
        while (close()) body();
    }
    /// Goes into a region that every thread goes through, once: it may change what the host holds.
    void enter(ast::Region region);
    /// Makes the regions around `region`, from the current one on, open again: for an else behind else_if.
    void reopen(ast::Region region);
    void shut(ast::Region until);
    /// Closes a region that was left in the middle, with all that is open inside it.
    void abandon(ast::Region region);
    bool is_open(ast::Region region) const { return open_[index(region)]; }
    ast::Region region() const { return stack_.back(); }
    ast::Region region_of(ast::Node node) const { return homes_[index(node)]; }
    /// Complains if the region holds nothing.
    void expect_content(ast::Region region, std::string_view what, const Location& where);

    /// How something stands between two nodes of which the recording knows nothing: in the second round, how it stood
    /// in the first.
    bool decide(bool now);
    /// Sets what was left open when the node was recorded: the else of an If, the condition of a While.
    void set_else(ast::Node node, ast::Region otherwise);
    void set_condition(ast::Node node, ast::Node holds);
    /// The frames of the host's that a capture runs in begin below this.
    void watch_host(const void* frame) { host_.begin(compare_regions_ ? frame : nullptr); }

    // ---- what a kernel has besides nodes

    ast::Variable add_variable(ast::VariableInfo variable);
    /// The number of a text among the kernel's; equal ones are one.
    ir::Word add_text(std::string_view text);
    /// Under a name that its space and its number give.
    std::uint32_t add_symbol(ir::Symbol symbol);
    /// Those that have been declared; in the second round, again.
    std::span<const ir::Symbol> symbols() const {
        return std::span(kernel.symbols).first(replaying_ ? now_.symbols : kernel.symbols.size());
    }

    std::uint32_t loops = 0;  // that are open, of the innermost function
    /// A function that is being inlined.
    struct Function {
        ir::Type type = ir::Type::Void;  // of what it gives
        Variable result{};
        std::uint32_t outer_loops = 0;
    };
    std::vector<Function> functions;  // innermost last
    bool contracts = false;           // a product and a sum may become one fma
    Recorded dynamic_end;             // in bytes, behind the last dynamic array

    /// The kernel, without what nothing uses, everything numbered in order.
    ast::Kernel finish();

private:
    void locate();
    void check_stack() const;

    /// How much there is of everything.
    struct Sizes {
        std::size_t nodes, variables, regions, symbols, trees, diagnostics, decisions;
        Recorded dynamic_end;
    };
    /// A tree from outside of a region, and as which node it was committed there before.
    struct Recommitted {
        std::uint32_t tree;
        ast::Node node;
    };
    Sizes sizes() const;
    void begin_replay();
    void end_replay();
    /// The second round is not as the first: what is left of the first is dropped, and the recording goes on.
    void diverge(const Location& where);
    /// Whether the node is the one that the first round made here.
    bool repeats(const ast::NodeInfo& node);
    void expect_unchanged(const HostStack::Mark& mark, const Location& where);

    template <class F>
    void each_earlier(ast::Node node, F&& f) const;
    void collect_tree(std::uint32_t tree);
    void collect_node(ast::Node node);
    void legalise(std::span<const ast::Node> before);
    void place(ast::Node node, std::span<const ast::Node> before);
    bool is_pending(ast::Node node) const { return positions_[index(node)] != settled_position; }

    static constexpr std::uint32_t settled_position = ~0u;

    std::uint32_t capture_;
    bool compare_regions_;
    Reserve reserve_;  // a frame in it says that the host's stack is nearly used up
    Location here_{};
    std::size_t located_ = 0;          // diagnostics that have their place
    std::string unlocated_complaint_;  // the last one without a place, of the statement that goes on
    bool unlocated_nodes_ = false;     // in the window

    Arena arena_;
    std::vector<Tree>& trees_ = arena_.trees;
    std::vector<ast::Region>& homes_ = arena_.homes;
    std::vector<std::uint32_t>& positions_ = arena_.positions;
    std::vector<ast::Node>& window_ = arena_.window;
    std::vector<ast::Node>&order_ = arena_.order, &before_ = arena_.before, &wished_ = arena_.wished;
    std::vector<std::uint32_t>& places_ = arena_.places;
    std::vector<std::uint32_t>&tree_marks_ = arena_.tree_marks, &node_marks_ = arena_.node_marks;
    std::uint32_t window_effects_ = 0;  // nodes of the window that are no pure ones
    std::uint32_t walk_ = 0;

    std::vector<ast::Region> stack_;    // open regions, the body first
    std::vector<bool> open_;            // by region
    std::vector<ast::Region> parents_;  // by region
    // Regions are recorded twice: regions.cpp.
    std::optional<Sizes> outermost_;  // when the outermost open region began
    ast::Region outermost_region_{};
    bool replaying_ = false;  // the second round goes on, and has come so far:
    Sizes now_{};
    std::vector<bool> decisions_;
    std::vector<Recommitted> recommitted_;
    HostStack host_;
};

}  // namespace ikat::trace
