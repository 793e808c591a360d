// SPDX-License-Identifier: Apache-2.0
// All members are bound, so that none is forgotten.
#include "codegen/ast/digest.hpp"

#include "codegen/kernel/parts.hpp"

namespace ikat::ast {
namespace {

using ikat::parts;

void parts(auto& archive, Is<ir::FloatInfo> auto& it) {
    auto& [rounding, ftz, sat, approx, contract] = it;
    archive(rounding, ftz, sat, approx, contract);
}
void parts(auto& archive, Is<ir::MemoryInfo> auto& it) {
    auto& [space, count, cache, order, scope, is_volatile, offset] = it;
    archive(space, count, cache, order, scope, is_volatile, offset);
}
void parts(auto& archive, Is<ir::Symbol> auto& it) {
    auto& [name, space, element, count, alignment, dynamic, offset, values, where] = it;
    archive(name, space, element, count, alignment, dynamic, offset, values, where);
}
void parts(auto& archive, Is<Place> auto& it) {
    auto& [base, index, offset, peer] = it;
    archive(base, index, offset, peer);
}
void parts(auto& archive, Is<NodeInfo> auto& it) {
    auto& [kind, op, type, results, operand_type, from, fp, memory, attribute, place, variable, factor, arguments,
           guard, other, regions, where] = it;
    archive(kind, op, type, results, operand_type, from, fp, memory, attribute, place, variable, factor, arguments,
            guard, other, regions, where);
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
    template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>) void add(T part) { digester_(part); }
    void add(const std::string& text) { digester_(std::string_view(text)); }
    /// Most have the file of the one before, whose name need not be read again.
    void add(const Location& it) {
        if (it.file != file_) {
            Digester name;
            name(std::string_view(it.file));
            file_ = it.file, file_digest_ = name.digest().low;
        }
        digester_(file_digest_), digester_(std::uint64_t{it.line} << 32 | it.column);
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
    std::uint64_t file_digest_ = 0;
};

}  // namespace

Digest digest(const KernelTree& kernel) {
    TreeDigester digester;
    digester(kernel);
    return digester.digest();
}

}  // namespace ikat::ast
