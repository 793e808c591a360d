// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "codegen/ptx/text/parse/grammar.hpp"

namespace ikat::ptx {

Module parse(std::string_view text, std::string_view file) {
    Build build(text, file);
    const char* first = build.source.finish(build.source.begin());
    const auto whole = grammar::x3::with<grammar::BuildTag>(std::ref(build))[grammar::module];
    grammar::x3::parse(first, build.source.end(), whole);
    return std::move(build.module);
}

}  // namespace ikat::ptx
