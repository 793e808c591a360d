// SPDX-License-Identifier: Apache-2.0
// The result of capturing a kernel: structured control flow over nodes, each evaluated once, in place.
//
// A region is a list of nodes in order of execution. A node is an operation of the op table on earlier nodes, a read or
// an assignment of a mutable variable, a memory access, or a control-flow construct that owns regions. A node's value
// is fixed where the node is: a later store or assignment does not change it. A node may use any earlier node in its
// own region or in an enclosing one. This is not SSA: variables are mutable; lowering turns them into values.
//
//     kernel saxpy(a: f32, x: in f32*, y: inout f32*, n: u32)
//         var i: u32
//         %0 = special.u32 ctaid.x
//         ...
//         i = %4
//         %5 = read i
//         %6 = lt.u32 %5, n
//         if %6
//             %7 = load x[%5]
//
// Everything has the location of the user's statement. A KernelTree is a plain value.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/ir/op/families.hpp"
#include "codegen/kernel/kernel_info.hpp"
#include "codegen/support/chunked.hpp"
#include "codegen/support/diagnostic.hpp"
#include "codegen/support/id.hpp"
#include "codegen/support/inline_vector.hpp"

namespace ikat::ast {

enum class Node : std::uint32_t {};
enum class Variable : std::uint32_t {};
enum class Region : std::uint32_t {};
inline constexpr Node no_node = no_id<Node>;
inline constexpr Region no_region = no_id<Region>;

enum class Kind : std::uint8_t {
    // Values
    Operation,  // op of the op table (no load, store or atomic) at type, from, fp, attribute on arguments
    Read,       // the value of `variable` now
    Load,       // memory.count elements at place[memory.count * arguments[0]]
    Extract,    // result `attribute` of arguments[0], a load of several elements or an operation with several results
    Address,    // of place[memory.count * arguments[0]], whose elements are of type operand_type: an argument of an op
    Atomic,     // op (atomic_*) on place[arguments[0]] with arguments[1...]; its value, if any, is the old element
    // Effects
    Declare,  // `variable` is declared, unassigned
    Assign,   // variable = arguments[0]
    Store,    // memory.count elements arguments[1...] to place[memory.count * arguments[0]]
    // Control flow
    If,        // arguments[0] (pred): regions[0], else regions[1] (which may be no_region)
    For,       // variable from arguments[0] while below arguments[1] by arguments[2] > 0, read once: regions[0]
    While,     // regions[0] computes arguments[0] (a node of it, a pred); while it holds: regions[1]
    Break,     // leaves the innermost For or While
    Continue,  // continues with its next iteration
    Return,    // from the kernel, or from a function with arguments[0]
    Scope,  // regions[0], once: the body of a function that is inlined; attribute: 1 if it ends by assigning its result
    Leave,  // jumps to the end of the innermost Scope, out of the loops in it
};

/// Operands: most operations have few.
using Nodes = InlineVector<Node, 4>;

/// The base of a memory access.
struct Place {
    enum class Base : std::uint8_t { Parameter, Symbol };  // index into KernelTree::parameters, KernelTree::symbols
    Base base = Base::Parameter;
    std::uint32_t index = 0;
    Node offset = no_node;  // elements before element 0 of a row or slice; u64 in a parameter, u32 in a symbol
    Node peer = no_node;    // the address of the symbol in another block of the cluster, where that is meant
    bool operator==(const Place&) const = default;
};

struct NodeInfo {
    Kind kind = Kind::Operation;
    ir::Op op{};                             // Operation, Atomic
    ir::Type type = ir::Type::Void;          // of the value; for a Store, of the elements; Void for an effect
    InlineVector<ir::Type, 8> results{};     // of an operation with several results: their types, the first is `type`
    ir::Type operand_type = ir::Type::Void;  // Operation: the type of its operands (a comparison of f32 gives a pred)
    ir::Type from = ir::Type::Void;          // conversions
    ir::FloatInfo fp{};
    ir::MemoryInfo memory{};  // Load, Store, Atomic; the space follows from the place
    ir::Form attribute =
        0;  // by op, as in ir::Instruction; Extract: which; For: unroll factor (0: the compiler chooses)
    Place place{};
    Variable variable{};  // of a Wgmma: the first of those that it adds to
    Variable factor{};    // Wgmma with A in registers: the first of A's
    Nodes arguments{};    // an access's first argument is the index of the element, or of the vector, u32 or u64
    // Load and Store under a condition (load_if): if it is false, nothing is accessed and a load gives `other`.
    Node guard = no_node;
    Nodes other{};
    std::array<Region, 2> regions{no_region, no_region};
    Location where{};
};

/// The type of the elements that an access is to.
constexpr ir::Type element_type(const NodeInfo& access) {
    return access.kind == Kind::Address ? access.operand_type : access.type;
}

struct VariableInfo {
    ir::Type type = ir::Type::Void;
    std::string name{};  // of a parameter; else empty
    Location where{};
};

/// A kernel, or a function that kernels call: what a launch has to know of it, and its body.
struct KernelTree : KernelInfo {
    bool is_function = false;
    std::vector<KernelTree> functions{};  // that it calls, each after those that it calls itself
    ir::Type gives = ir::Type::Void;      // the result type of a function
    std::vector<ir::Symbol> symbols;
    std::vector<std::string> texts;
    bool checked = false;  // capture has already checked it: check() need not run again

    Chunked<NodeInfo> nodes;  // nodes in no region are unused and not part of the kernel
    std::vector<VariableInfo> variables;
    std::vector<std::vector<Node>> regions;  // region 0 is the body

    const NodeInfo& operator[](Node node) const { return nodes[index(node)]; }
    NodeInfo& operator[](Node node) { return nodes[index(node)]; }
    const VariableInfo& operator[](Variable variable) const { return variables[index(variable)]; }
    std::span<const Node> operator[](Region region) const { return regions[index(region)]; }
    Region body() const { return Region(0); }
};

/// The kernel as text, one node per line, by default without locations.
std::string print(const KernelTree& kernel, bool locations = false);

/// Errors of a captured kernel that capture itself could not detect: a variable read before it is assigned on some
/// path; a barrier or full-mask warp operation in divergent control flow; code after break, continue or return; an
/// access that its pointer's direction forbids. Empty if there are none.
std::vector<Diagnostic> check(const KernelTree& kernel);

}  // namespace ikat::ast
