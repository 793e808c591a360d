// SPDX-License-Identifier: Apache-2.0
// The recorder of trace.hpp: one capture's trees, nodes and open regions. Only the language's own .cpp files
// include it.
// Pure nodes (reads, loads, arithmetic) and operations of several lanes wait in the *window* until the next statement:
// an assignment, a store, a barrier, control flow. Then they enter the region in the order of the window. Until then
// the window can be reordered (arrange): C++ compilers evaluate the operands of + in any order, the AST has them left
// to right.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "codegen/support/chunked.hpp"
#include "codegen/support/diagnostic.hpp"
#include "dsl/record/async/swizzles.hpp"
#include "dsl/record/callers.hpp"
#include "dsl/record/host_stack.hpp"
#include "dsl/record/trace.hpp"

namespace ikat::trace {

/// An expression that a Value refers to, unless that is a node from the start, a *leaf*: then the number of its "tree"
/// is that of the node, and this bit.
inline constexpr std::uint32_t leaf_bit = std::uint32_t{1} << 31;
constexpr bool is_leaf(std::uint32_t tree) { return tree & leaf_bit; }
constexpr ast::Node node_of_leaf(std::uint32_t tree) { return ast::Node(tree & ~leaf_bit); }
struct Tree {
    Operation what{};
    ast::Node node = ast::no_node;  // the node it was last committed as
    std::uint32_t count = 0;
    std::uint32_t arguments[4]{};
};

/// The last bytes of a stack, which grows down to `end`.
struct Reserve {
    std::uintptr_t end = 0;
    std::size_t bytes = 0;
};

/// The caller that records a region: a location in the user's source, and the end of that function's frame.
struct Caller {
    const void* frame = nullptr;  // __builtin_dwarf_cfa() of the function that the user's function calls
    Location where{};
};

/// The buffers of a capture. Each thread keeps those of its last capture, so that the next one need not grow them
/// again.
struct Arena {
    Chunked<Tree> trees;
    std::vector<ast::Region> homes;        // by node
    std::vector<std::uint32_t> positions;  // by node: in the window
    std::vector<ast::Node> window;
    std::vector<ast::Node> order, before, wished;  // for arrange(), and positions of the first
    std::vector<std::uint32_t> places;
    std::vector<std::uint32_t> tree_marks, node_marks;  // number of the walk that last visited it
    void clear();
};

/// More than any kernel needs, and little enough for the host's memory.
inline constexpr std::size_t max_nodes = std::size_t{1} << 21;
inline constexpr std::string_view endless_hint =
    "a C++ loop over a host number is unrolled: write for (auto i : range(n)) or while_(), which run on the device";

class Recorder {
public:
    explicit Recorder(std::uint32_t capture, bool compare_regions);
    ~Recorder();

    /// The recorder of the current capture in this thread. Throws Error if there is none.
    static Recorder& active();
    /// The same, or null if there is none.
    static Recorder* current();
    static Recorder* exchange(Recorder* recorder);

    ast::KernelTree kernel;
    std::vector<Diagnostic> diagnostics;
    Callers callers;
    std::vector<SwizzledPlace> swizzled;

    std::uint32_t capture() const { return capture_; }

    // ---- diagnostics

    /// Reports a user's mistake. Without a location it gets that of the next statement.
    void complain(std::string message, std::string hint, Location where = {}, std::vector<Diagnostic::Note> notes = {});
    /// Whether a value of capture number `capture` belongs to this capture; a diagnostic if not.
    bool owns(std::uint32_t capture);
    /// Starts a statement or a subscript at `where`; its operands have already been recorded.
    void at(const Where& where) { at(Location::of(where)); }
    void at(const Location& where);
    const Location& here() const { return here_; }

    // ---- trees (recorder.cpp)

    Recorded tree(const Operation& what, RecordedValues arguments);
    Recorded constant(ir::Type type, ir::Word bits);
    /// The node of an operation at the current location, without its operands.
    ast::NodeInfo node_of(const Operation& what) const;
    /// The operands of one statement as nodes, in source order.
    ast::Nodes commit_operands(RecordedValues arguments);
    Recorded leaf(ast::Node node) const { return {.tree = leaf_bit | index(node), .capture = capture_}; }
    std::uint32_t adopt(const Recorded& value);
    /// The combined effects of operands; a diagnostic if they have side effects whose order C++ does not specify.
    Recorded together(RecordedValues operands);
    ast::Node commit(const Recorded& value) { return commit(adopt(value)); }
    ast::Node commit(std::uint32_t tree);
    /// The first load that a tree makes in this expression.
    ast::Node find_load(std::uint32_t tree) const;

    // ---- parameters (trace.cpp)

    /// The variable for a scalar parameter, assigned its value.
    Variable define_parameter(std::uint32_t parameter);
    /// A parameter that is not a variable.
    Recorded parameter_value(std::uint32_t parameter);

    // ---- nodes (window.cpp)

    /// Adds a node that is no statement to the window.
    ast::Node append(ast::NodeInfo node);
    /// The same for one that has results of these types; the nodes of the results.
    std::vector<ast::Node> append(ast::NodeInfo node, std::span<const ir::Type> types);
    /// Ends the window and adds a statement after it.
    ast::Node statement(ast::NodeInfo node);
    /// Declares a variable and, if there is a value, assigns it.
    Variable define(ir::Type type, std::string name, ast::Node value);
    void flush();
    /// Puts the nodes that the trees need in tree order, left to right.
    void arrange(const std::uint32_t* roots, std::size_t count);
    /// The same, and the other nodes after them: the elements of arrays whose places are meant were loaded, too, and
    /// these loads, which go later, would hold on to the order of evaluation.
    void arrange_first(const std::uint32_t* roots, std::size_t count);

    // ---- regions (regions.cpp)

    ast::Region add_region();
    void open(ast::Region region);
    /// Ends the innermost region. True if it must be recorded once more, and has been reopened for that.
    bool close();
    /// Records a region by calling a function, once or twice. Host frames above the caller must not change.
    void record(ast::Region region, const Caller& caller, auto&& body) {
        open(region);
        const HostStack::Mark mark = replaying_ ? HostStack::Mark{} : host_.watch(caller.frame);
        body();
        expect_unchanged(mark, caller.where);
        while (close()) body();
    }
    /// Enters a region that every thread executes exactly once: it may change host state.
    void enter(ast::Region region);
    /// Reopens the regions around `region`, from the current one on: for an else after else_if.
    void reopen(ast::Region region);
    void shut(ast::Region until);
    /// Closes a region that was left early, with everything open inside it.
    void abandon(ast::Region region);
    bool is_open(ast::Region region) const { return open_[index(region)]; }
    /// Whether the value of a node can be used here. A host variable may keep a node that was dropped with its region.
    bool is_usable(ast::Node node) const {
        return node != ast::no_node && index(node) < homes_.size() && is_open(region_of(node));
    }
    ast::Region region() const { return stack_.back(); }
    ast::Region region_of(ast::Node node) const { return homes_[index(node)]; }
    /// Complains if the region is empty.
    void expect_content(ast::Region region, std::string_view what, const Location& where);

    /// A decision that depends on more than the recording; the second round repeats that of the first.
    bool decide(bool now);
    /// Sets what was not yet known when the node was recorded: the else of an If, the condition of a While.
    void set_else(ast::Node node, ast::Region otherwise);
    void set_condition(ast::Node node, ast::Node holds);
    /// The host frames of a capture begin below this one.
    void watch_host(const void* frame) { host_.begin(compare_regions_ ? frame : nullptr); }

    // ---- what a kernel has besides nodes

    ast::Variable add_variable(ast::VariableInfo variable);
    /// The number of a text among the kernel's texts; equal texts are shared.
    ir::Word add_text(std::string_view text);
    /// An array as a place in the AST, with the committed start of a slice.
    ast::Place place_of(const Array& array, ast::Node first) {
        return {array.symbol ? ast::Place::Base::Symbol : ast::Place::Base::Parameter, array.index, first,
                array.peer ? commit(array.base) : ast::no_node};
    }
    /// The address of a slot whose index, and before it the start of a slice, are the next operands.
    ast::Node address(const Slot& slot, const ast::Node*& operand);
    /// The addresses of places, then values, as the operands of one statement.
    ast::Nodes commit_places(std::initializer_list<const Slot*> places, RecordedValues values);
    /// Whether it is in the block's own shared memory.
    bool is_shared(const Slot& slot) const { return !slot.array.peer && is_shared(slot.array); }
    bool is_shared(const Array& array) const {
        return array.symbol && kernel.symbols[array.index].space == ir::Space::Shared;
    }
    /// The remainder of an integer that is divided by a power of two, if that can be seen.
    std::optional<ir::Word> remainder(ast::Node node, ir::Word power) const;
    /// The byte of its array that an address is at, if that is known.
    std::optional<std::uint64_t> byte_in_array(ast::Node address) const;
    /// Whether an address is surely not a multiple of this many bytes, a power of two, if its array is.
    bool is_misaligned(ast::Node address, std::uint32_t bytes) const;
    /// Adds a symbol, named by its space and its number.
    std::uint32_t add_symbol(ir::Symbol symbol);
    /// The symbols declared so far; in the second round, in that round.
    std::span<const ir::Symbol> symbols() const {
        return std::span(kernel.symbols).first(replaying_ ? now_.symbols : kernel.symbols.size());
    }

    std::uint32_t loops = 0;  // open loops of the innermost function
    /// A function that is being inlined.
    struct Function {
        ir::Type type = ir::Type::Void;  // of its result
        Variable result{};
        std::uint32_t outer_loops = 0;
    };
    std::vector<Function> functions;  // innermost last
    bool contracts = false;           // a product and a sum may become one fma
    Recorded dynamic_end;             // in bytes, the end of the last dynamic array

    /// The finished kernel, without unused nodes and symbols, everything numbered in order.
    ast::KernelTree finish();

private:
    void locate();
    void check_stack() const;

    /// How much of everything has been recorded.
    struct Sizes {
        std::size_t nodes, variables, regions, symbols, trees, diagnostics, decisions;
        Recorded dynamic_end;
    };
    /// A tree from outside a region, and the node it was committed as there before.
    struct Recommitted {
        std::uint32_t tree;
        ast::Node node;
    };
    Sizes sizes() const;
    void begin_replay();
    void end_replay();
    /// The second round differs from the first: the rest of the first is dropped, and recording continues.
    void diverge(const Location& where);
    /// Whether the node equals the one that the first round recorded here.
    bool repeats(const ast::NodeInfo& node);
    void expect_unchanged(const HostStack::Mark& mark, const Location& where);

    template <class F>
    void each_earlier(ast::Node node, F&& f) const;
    /// Puts the nodes that the trees need into order_, in tree order.
    void collect(const std::uint32_t* roots, std::size_t count);
    void collect_tree(std::uint32_t tree);
    void collect_node(ast::Node node);
    void legalise(std::size_t first);
    void place(ast::Node node, std::size_t first);
    bool is_pending(ast::Node node) const { return positions_[index(node)] != settled_position; }

    static constexpr std::uint32_t settled_position = ~0u;

    std::uint32_t capture_;
    bool compare_regions_;
    Reserve reserve_;  // a frame in here means that the host's stack is nearly exhausted
    Location here_{};
    std::size_t located_ = 0;          // diagnostics that have a location
    std::string unlocated_complaint_;  // the last one without a location, of the current statement
    bool unlocated_nodes_ = false;     // in the window

    Arena arena_;
    Chunked<Tree>& trees_ = arena_.trees;
    std::vector<ast::Region>& homes_ = arena_.homes;
    std::vector<std::uint32_t>& positions_ = arena_.positions;
    std::vector<ast::Node>& window_ = arena_.window;
    std::vector<ast::Node>&order_ = arena_.order, &before_ = arena_.before, &wished_ = arena_.wished;
    std::vector<std::uint32_t>& places_ = arena_.places;
    std::vector<std::uint32_t>&tree_marks_ = arena_.tree_marks, &node_marks_ = arena_.node_marks;
    std::uint32_t window_effects_ = 0;  // nodes of the window that are not pure
    std::uint32_t walk_ = 0;
    std::size_t placed_ = 0;  // in legalise(): the positions of the window before this one have their nodes

    std::vector<ast::Region> stack_;    // open regions, the body first
    std::vector<bool> open_;            // by region
    std::vector<ast::Region> parents_;  // by region
    // Regions are recorded twice: regions.cpp.
    std::optional<Sizes> outermost_;  // when the outermost open region began
    ast::Region outermost_region_{};
    bool replaying_ = false;  // during the second round; how far it has come:
    Sizes now_{};
    std::vector<bool> decisions_;
    std::vector<Recommitted> recommitted_;
    HostStack host_;
};

}  // namespace ikat::trace
