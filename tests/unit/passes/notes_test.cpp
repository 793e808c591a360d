// SPDX-License-Identifier: Apache-2.0
// Dumps of stages, and where they go.
#include <string>

#include "codegen/pipeline/compile.hpp"
#include "codegen/support/notes.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tests/catch.hpp"

namespace ikat {
namespace {

std::string noted;

struct Notes {
    Notes() {
        noted.clear();
        send_notes_to([](std::string_view text) { noted += text; });
    }
    ~Notes() { send_notes_to(nullptr); }
};

TEST_CASE("the stages that an option asks for are noted, of that kernel alone") {
    const Notes notes;
    const ast::KernelTree& saxpy = stdlib::find("saxpy")->handle().ast();
    compile(saxpy, {.dump = "fold:gemm"});
    CHECK(noted.empty());
    compile(saxpy, {.dump = "fold:saxpy"});
    CHECK(noted.starts_with("// after fold\nkernel @saxpy("));
    CHECK(noted.find("// after", 1) == noted.npos);
    compile(saxpy, {.dump = "all"});
    CHECK(noted.find("// after fuse\n") != noted.npos);
}

}  // namespace
}  // namespace ikat
