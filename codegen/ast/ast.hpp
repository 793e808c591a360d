// SPDX-License-Identifier: Apache-2.0
// What capturing a kernel yields: structured control flow over nodes, each evaluated once, where it stands.
//
// A region is a list of nodes in order of execution. A node is an operation of the op table on earlier nodes, a read or
// an assignment of a mutable variable, a memory access, or a control-flow construct that owns regions. A node's value
// belongs to the place where the node stands: a later store or assignment does not change it. A node may use any node
// that comes before it in its own region or in a region around it. There is no SSA here: variables are mutable,
// lowering makes them values.
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
// Everything has the location of the user's statement. A Kernel is a plain value.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/ir/op/families.hpp"
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
    Operation,  // op of the op table (no memory access) at type, from, fp, attribute on arguments
    Read,       // the value of `variable` now
    Load,       // memory.count elements at place[memory.count * arguments[0]]
    Extract,    // result `attribute` of arguments[0], a load of several elements or an operation with several results
    Atomic,     // op (atomic_*) on place[arguments[0]] with arguments[1...]; its value, if any, is the old element
    // Effects
    Declare,  // `variable` begins to exist, unassigned
    Assign,   // variable = arguments[0]
    Store,    // memory.count elements arguments[1...] to place[memory.count * arguments[0]]
    // Control flow
    If,        // arguments[0] (pred): regions[0], else regions[1] (which may be no_region)
    For,       // variable from arguments[0] while below arguments[1] by arguments[2] > 0, read once: regions[0]
    While,     // regions[0] computes arguments[0] (a node of it, a pred); while it holds: regions[1]
    Break,     // out of the innermost For or While
    Continue,  // to its next round
    Return,    // from the kernel, or from a function with arguments[0]
    Scope,  // regions[0], once: the body of a function that is inlined; attribute: 1 if it ends by assigning its result
    Leave,  // behind the innermost Scope, out of the loops in it
};

/// Most operations have few operands.
using Nodes = InlineVector<Node, 4>;

/// What a memory access is relative to.
struct Place {
    enum class Base : std::uint8_t { Parameter, Symbol };  // index into Kernel::parameters, Kernel::symbols
    Base base = Base::Parameter;
    std::uint32_t index = 0;
    Node offset = no_node;  // elements in front of element 0: of a row or slice; u64 in a parameter, u32 in a symbol
    bool operator==(const Place&) const = default;
};

struct NodeInfo {
    Kind kind = Kind::Operation;
    ir::Op op{};                             // Operation, Atomic
    ir::Type type = ir::Type::Void;          // of the value; of a Store: of the elements; Void for an effect
    InlineVector<ir::Type, 8> results{};     // of an operation with several: their types, the first of them `type`
    ir::Type operand_type = ir::Type::Void;  // Operation: the type it is written at (a compare of f32 gives a pred)
    ir::Type from = ir::Type::Void;          // conversions
    ir::FloatInfo fp{};
    ir::MemoryInfo memory{};  // Load, Store, Atomic; the space follows from the place
    ir::Word attribute = 0;   // by op, as in ir::Instruction; Extract: which; For: unroll factor (0, 1 = none)
    Place place{};
    Variable variable{};
    Nodes arguments{};  // a Load's or Store's first argument is the index of the element, or of the vector, u32 or u64
    // Load and Store under a condition (load_if): where it is false, nothing is accessed and a load gives `other`.
    Node guard = no_node;
    Nodes other{};
    std::array<Region, 2> regions{no_region, no_region};
    Location where{};
};

struct VariableInfo {
    ir::Type type = ir::Type::Void;
    std::string name{};  // of a parameter; else empty
    Location where{};
};

/// A parameter of rank 2 or 3: parameters[pointer], behind it its extents (u32; rows, columns), then its pitches (u32;
/// elements from one row to the next, of rank 3 from one plane to the next before that).
struct View {
    std::uint32_t pointer = 0;
    std::uint32_t rank = 2;
    std::uint32_t parameters() const { return 2 * rank; }  // that it takes, the pointer included
    std::uint32_t extent(std::uint32_t dimension) const { return pointer + 1 + dimension; }
    std::uint32_t pitch(std::uint32_t dimension) const { return pointer + 1 + rank + dimension; }
};

/// What the body demands of the blocks and the grid that it is launched in; each launch checks it.
struct BlockShape {
    bool whole_warps = false;   // a multiple of 32 threads
    bool linear = false;        // one dimension
    bool linear_grid = false;   // and so has the grid
    std::uint32_t threads = 0;  // exactly so many; 0: any number
};

/// A kernel, or a function that kernels call.
struct Kernel {
    std::string name;
    bool is_function = false;
    std::vector<Kernel> functions{};  // that it calls, each behind those that it calls itself
    std::vector<ir::Parameter> parameters;
    ir::Type gives = ir::Type::Void;  // to the caller of a function
    std::vector<View> views{};        // in the order of their pointers
    std::vector<ir::Symbol> symbols;
    std::vector<std::string> texts;
    ir::LaunchBounds bounds;
    BlockShape block{};
    bool checked = false;  // capture has found nothing wrong with it: check() need not look again
    Location where{};

    std::vector<NodeInfo> nodes;  // those of no region are none of the kernel's: nothing used them
    std::vector<VariableInfo> variables;
    std::vector<std::vector<Node>> regions;  // region 0 is the body

    const NodeInfo& operator[](Node node) const { return nodes[index(node)]; }
    NodeInfo& operator[](Node node) { return nodes[index(node)]; }
    const VariableInfo& operator[](Variable variable) const { return variables[index(variable)]; }
    std::span<const Node> operator[](Region region) const { return regions[index(region)]; }
    Region body() const { return Region(0); }
    /// The view that has this parameter as its pointer, or null.
    const View* view_at(std::uint32_t parameter) const {
        for (const View& view : views)
            if (view.pointer == parameter) return &view;
        return nullptr;
    }
};

/// The kernel as text, one node a line. Without locations unless asked for.
std::string print(const Kernel& kernel, bool locations = false);

/// What is wrong with a captured kernel that capture itself could not see: a variable read before it is assigned on
/// some path; a barrier or full-mask warp operation in divergent control flow; code after break, continue or return; an
/// access that its pointer's direction forbids. Empty if nothing is.
std::vector<Diagnostic> check(const Kernel& kernel);

}  // namespace ikat::ast
