// SPDX-License-Identifier: Apache-2.0
// A captured kernel as text. Values are numbered in text order; variables without a name are $0, $1 ...
//
//     kernel saxpy(a: f32, x: in f32*, y: inout f32*, n: u32)
//       var $0: u32
//       $0 = %3
//       %4 = read $0
//       %6 = lt.u32 %4, %5
//       if %6
//         %8 = load.f32.nc x[%7]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/ast/ast.hpp"
#include "codegen/ast/products.hpp"
#include "codegen/ir/text/literal.hpp"
#include "codegen/ir/text/print.hpp"

namespace ikat::ast {
namespace {

class Printer {
public:
    Printer(const KernelTree& kernel, bool locations) : kernel_(kernel), locations_(locations) {
        numbers_.resize(kernel.nodes.size());
        variables_.resize(kernel.variables.size());
    }

    std::string run() {
        header();
        for (const ir::Symbol& symbol : kernel_.symbols) line(1, this->symbol(symbol), {});
        region(kernel_.body(), 1);
        return std::move(out_);
    }

private:
    // ---- the kernel

    void header() {
        out_ += "kernel " + kernel_.name + '(';
        for (std::size_t i = 0; i < kernel_.parameters.size(); ++i) {
            if (i > 0) out_ += ", ";
            parameter(kernel_.parameters[i]);
            for (const KernelInfo::MinSize& size : kernel_.sizes)
                if (size.pointer == i) out_ += " at_least " + product(kernel_, size);
            for (const KernelInfo::Halo& halo : kernel_.halos)
                if (halo.pointer == i) out_ += fmt::format(" halo {}", fmt::join(halo.widths, " x "));
        }
        out_ += ')';
        keyword("max_threads", kernel_.bounds.max_threads, 0);
        keyword("min_blocks", kernel_.bounds.min_blocks, 0);
        keyword("max_registers", kernel_.bounds.max_registers, 0);
        for (std::size_t axis = 0; axis < 3; ++axis) keyword(ir::cluster_words[axis], kernel_.bounds.cluster[axis], 1);
        if (kernel_.block.whole_warps) out_ += " whole_warps";
        if (kernel_.block.whole_warpgroups) out_ += " whole_warpgroups";
        if (kernel_.block.linear) out_ += kernel_.block.linear_grid ? " linear_grid" : " linear_blocks";
        keyword("block_threads", kernel_.block.threads, 0);
        out_ += '\n';
    }

    void keyword(std::string_view word, std::uint64_t number, std::uint64_t unsaid) {
        if (number != unsaid) out_ += fmt::format(" {} {}", word, number);
    }

    void parameter(const ir::Parameter& parameter) {
        if (parameter.access == ir::Access::Value)
            out_ += fmt::format("{}: {}", parameter.name, name(parameter.type));
        else
            out_ += fmt::format("{}: {} {}*", parameter.name, ir::access_names[int(parameter.access)],
                                name(parameter.element));
        keyword("bytes", parameter.bytes, 0);
        keyword("align", parameter.alignment, 0);
        keyword("multiple", parameter.multiple, 1);
    }

    static std::string symbol(const ir::Symbol& symbol) {
        std::string out =
            fmt::format("{} {}: {}[{}] align {}", ir::space_names[int(symbol.space)], symbol.name, name(symbol.element),
                        symbol.dynamic ? "" : std::to_string(symbol.count), symbol.alignment);
        for (const ir::Word& value : symbol.values)
            (out += &value == &symbol.values.front() ? " = " : ", ") += ir::literal_text(symbol.element, value);
        return out;
    }

    // ---- regions and lines

    void region(Region region, int depth) {
        for (Node id : kernel_[region]) node(id, depth);
    }

    void line(int depth, const std::string& text, const Location& where) {
        out_.append(std::size_t(depth) * 2, ' ');
        out_ += text;
        if (locations_ && where.known()) out_ += "  // " + to_string(where);
        out_ += '\n';
    }

    void node(Node id, int depth) {
        const NodeInfo& node = kernel_[id];
        std::string text;
        if (node.type != ir::Type::Void && node.kind != Kind::Store) {
            numbers_[index(id)] = next_++;
            text = value(id) + " = ";
        }
        line(depth, text + statement(node), node.where);
        if (node.kind == Kind::While) {
            region(node.regions[0], depth + 1);
            line(depth, "holds " + value(node.arguments[0]), {});
        } else if (node.regions[0] != no_region) {
            region(node.regions[0], depth + 1);
        }
        if (node.regions[1] == no_region) return;
        if (node.kind == Kind::If) line(depth, "else", {});
        region(node.regions[1], depth + 1);
    }

    // ---- one node

    std::string statement(const NodeInfo& node) {
        switch (node.kind) {
            case Kind::Operation: return operation(node);
            case Kind::Read: return "read " + variable(node.variable);
            case Kind::Load:
                return fmt::format("load.{} {}{}", access(node), element(node),
                                   node.guard == no_node ? "" : guard(node) + " else " + list(node.other));
            case Kind::Extract: return fmt::format("extract {} of {}", node.attribute, value(node.arguments[0]));
            case Kind::Address: return fmt::format("address.{} {}", access(node), element(node));
            case Kind::Atomic:
                return fmt::format("{}.{} {}{}{}{}{} {}", std::string_view(ir::name(node.op)), name(node.type),
                                   attribute(node), attribute(node).empty() ? "" : ", ", element(node),
                                   tail(node).empty() ? "" : ", ", list(tail(node)), order(node));
            case Kind::Declare:
                return fmt::format("var {}: {}", variable(node.variable), name(kernel_[node.variable].type));
            case Kind::Assign: return variable(node.variable) + " = " + value(node.arguments[0]);
            case Kind::Store:
                return fmt::format("store.{} {} = {}{}{}", access(node), element(node), list(tail(node)), guard(node),
                                   is_plain(node) ? "" : " " + order(node));
            case Kind::If: return "if " + value(node.arguments[0]);
            case Kind::For: return loop(node);
            case Kind::While: return "while";
            case Kind::Break: return "break";
            case Kind::Continue: return "continue";
            case Kind::Return: return node.arguments.empty() ? "return" : "return " + value(node.arguments[0]);
            case Kind::Scope: return "scope";
            case Kind::Leave: return "leave";
        }
        return {};
    }

    std::string operation(const NodeInfo& node) {
        std::string out{std::string_view(ir::name(node.op))};
        if (node.operand_type != ir::Type::Void) (out += '.') += name(node.operand_type);
        if (node.from != ir::Type::Void) (out += '.') += name(node.from);
        out += ir::print(node.fp);
        std::string what = attribute(node);
        if (node.op == ir::Op::Wgmma)
            for (const VariableRange& variables : {sums_of(node), factors_of(node)})
                if (variables.count) what += ", " + run(variables);
        const std::string arguments = list(node.arguments);
        if (!what.empty()) out += ' ' + what;
        if (!arguments.empty()) out += (what.empty() ? " " : ", ") + arguments;
        return out;
    }

    std::string attribute(const NodeInfo& node) const {
        switch (ir::info(node.op).attribute) {
            case ir::Attribute::Constant: return ir::literal_text(node.type, node.attribute);
            case ir::Attribute::Parameter: {
                const std::uint32_t offset = ir::offset_in_parameter(node.attribute);
                const std::string& name = kernel_.parameters[ir::parameter_of(node.attribute)].name;
                return offset ? fmt::format("[{}+{}]", name, offset) : name;
            }
            case ir::Attribute::Symbol: return kernel_.symbols[node.attribute].name;
            case ir::Attribute::Text: return ir::quoted(kernel_.texts[node.attribute]);
            case ir::Attribute::Callee: return kernel_.texts[node.attribute];
            default: return ir::attribute_text(node.op, node.attribute);
        }
    }

    std::string loop(const NodeInfo& node) {
        std::string out =
            fmt::format("for {}: {} from {} below {} by {}", variable(node.variable), name(kernel_[node.variable].type),
                        value(node.arguments[0]), value(node.arguments[1]), value(node.arguments[2]));
        if (node.attribute > 0) out += fmt::format(" unroll {}", node.attribute);
        return out;
    }

    /// "f32.v4.nc"
    static std::string access(const NodeInfo& node) {
        std::string out{name(element_type(node))};
        if (node.memory.count > 1) out += ".v" + std::to_string(node.memory.count);
        if (node.memory.cache != ir::CacheOperator::None)
            (out += '.') += ir::cache_operator_names[int(node.memory.cache)];
        return out;
    }

    static bool is_plain(const NodeInfo& node) {
        return node.memory.order == ir::Order::Weak && !node.memory.is_volatile;
    }
    /// "acquire gpu"
    static std::string order(const NodeInfo& node) {
        if (node.memory.is_volatile) return "volatile";
        return fmt::format("{} {}", ir::order_names[int(node.memory.order)], ir::scope_names[int(node.memory.scope)]);
    }

    std::string element(const NodeInfo& node) {
        const std::string& array = node.place.base == Place::Base::Parameter ? kernel_.parameters[node.place.index].name
                                                                             : kernel_.symbols[node.place.index].name;
        const std::string offset = node.place.offset == no_node ? "" : value(node.place.offset) + " + ";
        const std::string factor = node.memory.count == 1 ? "" : std::to_string(node.memory.count) + " * ";
        const std::string peer = node.place.peer == no_node ? "" : value(node.place.peer) + ' ';
        return peer + array + '[' + offset + factor + value(node.arguments[0]) + ']';
    }

    std::string guard(const NodeInfo& node) const {
        return node.guard == no_node ? std::string() : " where " + value(node.guard);
    }

    static std::span<const Node> tail(const NodeInfo& node) { return std::span(node.arguments).subspan(1); }

    std::string list(std::span<const Node> nodes) const {
        std::string out;
        for (Node node : nodes) {
            if (!out.empty()) out += ", ";
            out += value(node);
        }
        return out;
    }

    std::string value(Node node) const { return '%' + std::to_string(numbers_[index(node)]); }

    std::string variable(Variable variable) {
        const std::string& given = kernel_[variable].name;
        std::uint32_t& number = variables_[index(variable)];
        if (number == 0) number = ++next_variable_;
        return given.empty() ? '$' + std::to_string(number - 1) : given;
    }

    /// Consecutive variables: "$0 to $3".
    std::string run(VariableRange variables) {
        std::string out;
        for (std::uint32_t i = 0; i < variables.count; ++i) {
            const std::string name = variable(Variable(index(variables.first) + i));
            if (i == 0 || i + 1 == variables.count) out += (i ? " to " : "") + name;
        }
        return out;
    }

    static std::string_view name(ir::Type type) { return ir::info(type).name; }

    const KernelTree& kernel_;
    bool locations_;
    std::string out_;
    std::vector<std::uint32_t> numbers_;  // by node
    std::uint32_t next_ = 0, next_variable_ = 0;
    std::vector<std::uint32_t> variables_;  // their numbers plus one; 0: not seen yet
};

}  // namespace

std::string print(const KernelTree& kernel, bool locations) { return Printer(kernel, locations).run(); }

}  // namespace ikat::ast
