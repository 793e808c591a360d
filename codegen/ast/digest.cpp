// SPDX-License-Identifier: Apache-2.0
// All members are bound, so that none is forgotten.
#include "codegen/ast/digest.hpp"

#include "codegen/kernel/parts.hpp"

namespace ikat::ast {
namespace {

using ikat::parts;

void parts(auto& archive, Is<ir::Symbol> auto& it) {
    auto& [name, space, element, count, alignment, dynamic, offset, values, where] = it;
    archive(name, space, element, count, alignment, dynamic, offset, values, where);
}
void parts(auto& archive, Is<VariableInfo> auto& it) {
    auto& [type, name, where] = it;
    archive(type, name, where);
}
void parts(auto& archive, Is<KernelTree> auto& it) {
    parts(archive, static_cast<const KernelInfo&>(it));
    archive(it.is_function, it.functions, it.gives, it.symbols, it.texts, it.nodes, it.variables, it.regions);
}

class TreeDigester {
public:
    void operator()(const auto&... parts) { (add(parts), ...); }
    void lines(const std::vector<Location>& lines) { add(lines); }
    Digest digest() const { return digester_.digest(); }

private:
    /// Several small parts as one word.
    template <class... T>
    void pack(T... parts) {
        static_assert((sizeof(T) + ...) <= sizeof(std::uint64_t));
        std::uint64_t word = 0;
        ((word = word << (8 * sizeof(T) % 64) | (std::uint64_t(parts) & ~std::uint64_t{0} >> (64 - 8 * sizeof(T)))),
         ...);
        digester_(word);
    }
    template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>) void add(T part) { digester_(part); }
    void add(const std::string& text) { digester_(std::string_view(text)); }
    /// Most have the file of the one before.
    void add(const Location& it) {
        const auto& [file, line, column] = it;
        const bool is_other = file != file_;
        digester_(std::uint64_t{line} << 32 | std::uint64_t{column} << 1 | is_other);
        if (is_other) digester_(std::string_view(file));
        file_ = file;
    }
    /// There are thousands: what it consists of goes into few words.
    void add(const NodeInfo& it) {
        const auto& [kind, op, type, results, operand_type, from, fp, memory, attribute, place, variable, factor,
                     arguments, guard, other, regions, where] = it;
        const auto& [rounding, ftz, sat, approx, contract] = fp;
        const auto& [space, count, cache, order, scope, is_volatile, offset] = memory;
        const auto& [base, index, first, peer] = place;
        const bool flags[] = {ftz, sat, approx, contract};
        pack(kind, op, type, operand_type, from, rounding,
             std::uint8_t(flags[0] | flags[1] << 1 | flags[2] << 2 | flags[3] << 3));
        pack(space, count, cache, order, scope, is_volatile, base);
        pack(offset, index), pack(first, peer), pack(variable, factor);
        for (const ir::Word word : attribute.words()) digester_(word);
        pack(std::uint16_t(results.size()), std::uint16_t(other.size()), std::uint32_t(arguments.size()));
        for (const ir::Type each : results) digester_(each);
        for (const Node each : arguments) digester_(each);
        for (const Node each : other) digester_(each);
        pack(regions[0], regions[1]), digester_(guard);
        add(where);
    }
    template <class T>
    requires requires(const T& list) { list.size(), list.begin(); }
    void add(const T& list) {
        digester_(list.size());
        for (const auto& item : list) add(item);
    }
    template <class T>
    requires(std::is_class_v<T> && !requires(const T& list) { list.size(); }) void add(const T& structure) {
        parts(*this, structure);
    }

    Digester digester_;
    const char* file_ = nullptr;
};

}  // namespace

Digest digest(const KernelTree& kernel) {
    TreeDigester digester;
    digester(kernel);
    return digester.digest();
}

}  // namespace ikat::ast
