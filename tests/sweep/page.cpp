// SPDX-License-Identifier: Apache-2.0
#include "tests/sweep/page.hpp"

#include <fmt/format.h>

#include <sstream>

#include "codegen/pipeline/compile.hpp"
#include "dsl/kernel/kernel.hpp"
#include "tests/sweep/functions.hpp"
#include "tests/sweep/measured.hpp"

namespace ikat::test {
namespace {

/// PTX instructions: on the common path, and in the parts that it skips.
struct Size {
    int usual = 0, rare = 0;
};

Size operator-(const Size& a, const Size& b) { return {a.usual - b.usual, a.rare - b.rare}; }

Size size_of(const auto& kernel) {
    Size size;
    std::istringstream lines(compile(kernel.ast()).ptx);
    std::string over;  // the target of the jump
    for (std::string line; std::getline(lines, line);) {
        const std::string text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
        if (!over.empty() && text == over + ":") over.clear();
        if (text.empty() || !text.ends_with(';') || text.starts_with('.')) continue;
        ++(over.empty() ? size.usual : size.rare);
        const std::size_t target = text.rfind(' ') + 1;
        if (over.empty() && text.starts_with('@') && text.find(" bra") != text.npos)
            over = text.substr(target, text.size() - target - 1);
    }
    return size;
}

/// The size of y[0] = f(x), minus that of y[0] = x.
template <class T>
Size size_of(Leaf<T> (*f)(const Leaf<T>&)) {
    const auto with = [](auto function) {
        return size_of(kernel("size", params("y", "x"), [=](Out<T> y, Var<T> x) { y[0] = function(value(x)); }));
    };
    return with(f) - with([](const Leaf<T>& x) { return x; });
}
Size size_of(Leaf<float> (*f)(const Leaf<float>&, const Leaf<float>&)) {
    const auto with = [](auto function) {
        return size_of(kernel("size", params("z", "x", "y"),
                              [=](Out<float> z, f32 x, f32 y) { z[0] = function(value(x), value(y)); }));
    };
    return with(f) - with([](const Leaf<float>& x, const Leaf<float>&) { return x; });
}

std::string row(const auto& function, std::string_view arguments) {
    const Measured& found = measured(function.name);
    const Size size = size_of(function.device);
    const bool fast = function.unit != nullptr;
    return fmt::format("| `{}` | {} | {} | {:.4f}{} | {:a}{} | {} | {}{} |\n",
                       function.name.substr(function.name.starts_with("f64:") ? 4 : 0), arguments,
                       fast ? std::string(function.unit_text) : fmt::format("{:g} ulp", function.bound), found.error,
                       fast ? " of that" : "", found.at, found.y == 0 ? "" : fmt::format(", {:a}", found.y),
                       fast ? "" : fmt::format("{:.2f} %", found.misrounded_percent), size.usual,
                       size.rare == 0 ? "" : fmt::format(" + {}", size.rare));
}

}  // namespace

std::string table_of_errors() {
    std::string out =
        "| function | arguments | stated | largest error | at | not the nearest | instructions |\n"
        "|---|---|---|---|---|---|---|\n";
    for (const auto& f : f32_functions()) out += row(f, "all f32");
    for (const auto& f : power_functions()) out += row(f, "2^30 pairs");
    for (const auto& f : f64_functions()) out += row(f, "2^26 f64");
    return out;
}

}  // namespace ikat::test
