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
#include "dsl/trace.hpp"

namespace ikat::trace {

/// An expression that a Value names. A leaf is a node from the start.
struct Tree {
    Operation what{};
    ast::Node node = ast::no_node;  // as which it was committed last
    bool leaf = false;
    std::uint8_t count = 0;
    std::uint32_t arguments[4]{};
};

/// The value that a text gives, as trace::pure_text; one with effects stays in its place.
Value text_value(const std::string& text, bool pure, Values arguments, ir::Type result);

/// The last bytes of a stack, which grows down to `end`.
struct Reserve {
    std::uintptr_t end = 0;
    std::size_t bytes = 0;
};

class Recorder {
public:
    explicit Recorder(std::uint32_t capture, bool compare_regions);

    /// The recorder of the capture that goes on in this thread. Throws Error if there is none.
    static Recorder& active();
    /// The same; a capture that `capture` is not the number of is the user's error.
    static Recorder* current();
    static Recorder* exchange(Recorder* recorder);

    ast::Kernel kernel;
    std::vector<Diagnostic> diagnostics;

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

    Value tree(const Operation& what, Values arguments);
    /// The node of an operation, here, without its operands.
    ast::NodeInfo node_of(const Operation& what) const;
    /// The operands of one statement as nodes, in the order of the text.
    std::vector<ast::Node> commit_operands(Values arguments);
    Value leaf(ast::Node node);
    std::uint32_t adopt(const Value& value);
    /// Complains about side effects among operands whose order C++ leaves open; what they have done together.
    Value together(Values operands);
    ast::Node commit(const Value& value) { return commit(adopt(value)); }
    ast::Node commit(std::uint32_t tree);
    /// The first load that a tree makes in this expression.
    ast::Node find_load(std::uint32_t tree) const;

    /// The variable that stands for a scalar parameter, with its value.
    Variable define_parameter(std::uint32_t parameter);
    /// A parameter that is no variable.
    Value parameter_value(std::uint32_t parameter);

    // ---- nodes (window.cpp)

    /// Adds a node that is no statement to the window.
    ast::Node append(ast::NodeInfo node);
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
    /// Records a region by calling a function, once or twice.
    void record(ast::Region region, auto&& body) {
        open(region);
        do { body(); } while (close());
    }
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

    std::uint32_t loops = 0;  // that are open
    Value dynamic_end;        // in bytes, behind the last dynamic array

    /// The kernel, without what nothing uses, everything numbered in order.
    ast::Kernel finish();

private:
    void locate();
    void check_stack() const;

    struct Sizes {
        std::size_t nodes, variables, regions, symbols, texts, trees, diagnostics;
        Value dynamic_end;
    };
    struct Round {
        std::vector<ast::NodeInfo> nodes;
        std::vector<ast::VariableInfo> variables;
        std::vector<std::vector<ast::Node>> regions;
        std::vector<ir::Symbol> symbols;
        std::vector<std::string> texts;
        std::vector<ast::Node> content;
    };
    Sizes sizes() const;
    Round tail(ast::Region region) const;
    void roll_back(ast::Region region);
    void compare(ast::Region region);

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
    std::size_t located_ = 0;       // diagnostics that have their place
    bool unlocated_nodes_ = false;  // in the window

    std::vector<Tree> trees_;
    std::vector<ast::Region> homes_;        // by node
    std::vector<std::uint32_t> positions_;  // by node: in the window
    std::vector<ast::Node> window_;
    std::uint32_t window_effects_ = 0;  // nodes of the window that are no pure ones

    std::vector<std::uint32_t> tree_marks_, node_marks_;  // visited by the walk of that number
    std::uint32_t walk_ = 0;
    std::vector<ast::Node> order_;

    std::vector<ast::Region> stack_;    // open regions, the body first
    std::vector<bool> open_;            // by region
    std::vector<ast::Region> parents_;  // by region
    std::optional<Sizes> outermost_;    // when the outermost open region began
    ast::Region outermost_region_{};
    std::optional<Round> first_round_;
};

}  // namespace ikat::trace
