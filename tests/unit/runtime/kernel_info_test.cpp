// SPDX-License-Identifier: Apache-2.0
// What is known of a kernel, beside its PTX: it comes back from the text as it was, and launches of the text are
// checked as those of the kernel are.
#include <ikat/ikat.hpp>

#include <set>

#include "codegen/ast/digest.hpp"
#include "codegen/kernel/section.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/text/module.hpp"
#include "runtime/embedded.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;

/// With something of everything.
KernelInfo everything(const std::string& folder = {}) {
    const char* const file = intern(folder + "k.cpp");
    const char* const other = intern(folder + "lib/tile.hpp");
    return {
        .name = "everything",
        .parameters = {{.name = "x", .access = ir::Access::In, .element = ir::Type::F32, .alignment = 16},
                       {.name = "y", .access = ir::Access::InOut, .element = ir::Type::BF16},
                       {.name = "y_extent0", .type = ir::Type::U32},
                       {.name = "y_extent1", .type = ir::Type::U32},
                       {.name = "y_pitch", .type = ir::Type::U32},
                       {.name = "map", .type = ir::Type::U8, .alignment = 64, .bytes = 128},
                       {.name = "n", .type = ir::Type::I64, .multiple = 1ull << 40}},
        .absent = {{"bias", 1}, {"last", 7}},
        .views = {{.pointer = 1, .rank = 2}},
        .maps = {{.parameter = 5,
                  .element = ir::Type::F16,
                  .rank = 2,
                  .box = {4, 32},
                  .every = {1, 2},
                  .swizzle = 64,
                  .fills_with_nan = true,
                  .is_written = true}},
        .bounds = {.max_threads = 256, .min_blocks = 2, .max_registers = 64, .cluster = {2, 1, 4}},
        .block = {.whole_warps = true, .whole_warpgroups = true, .linear = true, .linear_grid = true, .threads = 128},
        .sizes = {{.pointer = 0, .count = 18, .per = 32, .factors = {2, 6}}},
        .halos = {{.pointer = 1, .widths = {1, 3}}},
        .expectations =
            {{.parameter = 4, .multiple = 8, .what = "it \"copies\"", .hint = "pad\n", .where = {other, 7, 3}}},
        .takes_dynamic_shared = true,
        .where = {file, 12, 5},
        .target = "sm_90a",
        .static_shared_bytes = 49152,
        .own_dynamic_shared_bytes = 70000,
        .source_lines = {{}, {}, {file, 14, 9}, {file, 14, 9}, {other, 3, 1}, {}, {file, 13, 2}, {file, 13, 2}}};
}

std::string malformed(const std::string& section) {
    return message_of([&] { infos_in(".version 7.0\n" + section, "k.ptx"); });
}

/// kernel(x: in f32[], n: a multiple of 4, y: out f32[][])
const auto scaled = kernel("scaled", params("x", "n", "y"),
                           [](In<float> x, u32 n, Out<float, 2> y) {
                               u32 i = global_id().x;
                               if_(i < n, [&] { y[i / y.extent(1), i % y.extent(1)] = 2.0f * x[i]; });
                           })
                        .require(multiple_of<4>("n"), at_least("x", "n"))
                        .launch_bounds(64);

/// More shared memory than a kernel has without asking.
const auto large = kernel("large", params("y"), [](Out<float> y) {
    Shared<float, 16 * 1024> all;
    all[thread_id().x] = 1.0f;
    sync();
    y[thread_id().x] = all[thread_id().x ^ 1u];
});

std::string text_of(const trace::KernelHandle& kernel) { return file_text(compile(kernel.ast())); }

}  // namespace

TEST_CASE("kernel info: it comes back from its section as it was") {
    const std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n" + section_of(everything());
    const std::vector<KernelInfo> back = infos_in(text, "k.ptx");
    REQUIRE(back.size() == 1);
    KernelInfo expected = everything();
    const char* const tile = intern("tile.hpp");  // locations lose their folders
    expected.expectations[0].where.file = expected.source_lines[4].file = tile;
    CHECK(back[0] == expected);
    CHECK(problem(back[0]).empty());
    CHECK(section_of(back[0]) == section_of(everything()));
    CHECK(infos_in(text + section_of({.name = "other"}), "k.ptx").size() == 2);
    CHECK(infos_in(text + section_of({.name = "other"}), "k.ptx")[1] == KernelInfo{.name = "other"});
}

TEST_CASE("kernel info: the section is the same from every folder") {
    CHECK(section_of(everything("/home/a/ikat/")) == section_of(everything("/tmp/b/")));
    CHECK(section_of(everything("/home/a/ikat/")).find("home") == std::string::npos);
}

TEST_CASE("kernel info: PTX is printed with its section, and can be had without it") {
    const Compiled compiled = compile(scaled.ast());
    const std::string text = file_text(compiled);
    CHECK(text.size() > compiled.ptx.size());
    CHECK(without_sections(text) == compiled.ptx);
    CHECK(without_sections(compiled.ptx) == compiled.ptx);
    CHECK(without_sections(with_sections(compiled.ptx, std::vector{compiled.info, everything()})) == compiled.ptx);
    const std::string printed = ptx::print(ptx::parse(text, "scaled.ptx"));
    CHECK(infos_in(printed, "scaled.ptx") == infos_in(text, "scaled.ptx"));
    CHECK(printed == text);
    CHECK(without_sections(printed) == compiled.ptx);
    // Not one: in a comment, of another name, after something else.
    CHECK(
        infos_in("// .section .ikat { .b64 1 }\n.section .ikatx { .b64 1 }\nret; .section .ikat { .b64 1 }\n", "k.ptx")
            .empty());
}

TEST_CASE("kernel info: a section that cannot be read is an error with its line") {
    const std::string whole = section_of(everything());
    CHECK(malformed(whole).empty());
    CHECK_THAT(
        malformed("\n\n.section .ikat\n{\n    .b64 0x4\n}\n"),
        contains("k.ptx:4:1: error: the section .ikat, which tells what a launch has to know of a kernel, cannot be "
                 "read: it is of format 4, and this is ikat with format 3"));
    CHECK_THAT(malformed(".section .ikat { }"), contains("it ends too soon"));
    CHECK_THAT(malformed(".section .ikat { .b64 0x1 }"), contains("cannot be read"));
    CHECK_THAT(malformed(".section .ikat { .b32 1 }"), contains("it has '.b32 1 ' where a word is expected"));
    CHECK_THAT(malformed(".section .ikat { .b64 99999999999999999999 }"), contains("where a word is expected"));
    CHECK_THAT(malformed(".section .ikat { .b64 0x1"), contains("cannot be read"));
    // Without any of its words, and with one more.
    std::size_t words = 0;
    for (std::size_t at = whole.find(" 0x"); at != whole.npos; at = whole.find(" 0x", at + 1), ++words) {
        const std::size_t end = whole.find_first_of(",\n", at);
        std::string less = whole;
        less.erase(at, end - at + (whole[end] == ','));
        CHECK_THAT(malformed(less), contains("cannot be read"));
    }
    CHECK(words > 20);
    std::string more = whole;
    more.insert(more.rfind('\n', more.rfind('}')), ", 0");
    CHECK_THAT(malformed(more), contains("there is something after its end"));
}

TEST_CASE("kernel info: what no kernel can be is an error") {
    const auto refused = [](auto change) {
        KernelInfo info = everything();
        change(info);
        return malformed(section_of(info));
    };
    CHECK_THAT(refused([](KernelInfo& i) { i.views[0].pointer = 0; }), contains("a view has no extents"));
    CHECK_THAT(refused([](KernelInfo& i) { i.views[0].pointer = 2; }), contains("a view is not of a pointer"));
    CHECK_THAT(refused([](KernelInfo& i) { i.views[0].pointer = 1000; }), contains("a view is not of a pointer"));
    CHECK_THAT(refused([](KernelInfo& i) { i.views[0].rank = 1000000; }), contains("a view is not of a pointer"));
    CHECK_THAT(refused([](KernelInfo& i) { i.maps[0].parameter = 7; }), contains("a map is none"));
    CHECK_THAT(refused([](KernelInfo& i) { i.maps[0].parameter = 6; }), contains("a map is none"));
    CHECK_THAT(refused([](KernelInfo& i) { i.maps[0].rank = 6; }), contains("a map is none"));
    CHECK_THAT(refused([](KernelInfo& i) { i.sizes[0].per = 0; }), contains("a size is not of a pointer"));
    CHECK_THAT(refused([](KernelInfo& i) { i.sizes[0].factors = {0}; }),
               contains("a size is not a product of numbers"));
    CHECK_THAT(refused([](KernelInfo& i) { i.sizes[0].factors = {9}; }),
               contains("a size is not a product of numbers"));
    CHECK_THAT(refused([](KernelInfo& i) { i.halos[0].pointer = 6; }), contains("a halo is not of a pointer"));
    CHECK_THAT(refused([](KernelInfo& i) { i.expectations[0].multiple = 0; }),
               contains("an expectation is of no parameter"));
    CHECK_THAT(refused([](KernelInfo& i) { i.expectations[0].parameter = 7; }),
               contains("an expectation is of no parameter"));
    CHECK_THAT(refused([](KernelInfo& i) { i.parameters[6].multiple = 0; }), contains("'n' is a multiple of 0"));
    CHECK_THAT(refused([](KernelInfo& i) { i.parameters[6].type = ir::Type::Void; }),
               contains("'n' is of no type that memory holds"));
    CHECK_THAT(refused([](KernelInfo& i) { i.parameters[5].bytes = 5000; }), contains("'map' has 5000 bytes"));
    CHECK_THAT(refused([](KernelInfo& i) { i.parameters[0].alignment = 3; }), contains("'x' has no alignment"));
    CHECK_THAT(refused([](KernelInfo& i) { i.bounds.cluster[1] = 0; }), contains("a cluster has no blocks"));
}

TEST_CASE("kernel info: PTX as text is launched with arguments, checked as the kernel's") {
    const Device device = emulator();
    const Module module = device.load(text_of(scaled), "scaled.ptx");
    const Buffer<float> x = device.upload(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, "x");
    Buffer<float> y = device.upload(std::vector<float>(12), "y");
    device.launch(module, "scaled", grid(8, 32), x, 8, y.view(2, 4).pitched(6));
    CHECK(y.download() == std::vector<float>{2, 4, 6, 8, 0, 0, 10, 12, 14, 16, 0, 0});
    const Stream stream = device.stream();
    stream.launch(module, "scaled", grid(4, 32), x.slice(4, 4), 4u, y.view(1, 4));
    stream.synchronize();
    CHECK(y.download() == std::vector<float>{10, 12, 14, 16, 0, 0, 10, 12, 14, 16, 0, 0});

    const auto refused = [&](const Grid& grid, auto&&... arguments) {
        const std::string by_text = message_of([&] { device.launch(module, "scaled", grid, arguments...); });
        return by_text;
    };
    const auto rows = y.view(2, 4);
    CHECK_THAT(refused(grid(8, 32), x, 6, rows), contains("kernel_info_test.cpp"));
    CHECK_THAT(refused(grid(8, 32), x, 6, rows),
               contains("launch of 'scaled': 'n' is 6, which is not a multiple of 4"));
    CHECK_THAT(refused(grid(8, 128), x, 8, rows),
               contains("a block of 128 threads, but its launch bounds say at most 64"));
    CHECK_THAT(refused(grid(8, 32), x, 12, rows), contains("buffer 'x' has 8 elements, fewer than n = 12"));
    CHECK_THAT(refused(grid(8, 32), x, -4, rows), contains("-4 does not fit parameter 'n', which is u32"));
    CHECK_THAT(refused(grid(8, 32), x, 1.5f, rows), contains("parameter 'n' is u32") && contains("convert it"));
    CHECK_THAT(refused(grid(8, 32), x, x, rows), contains("parameter 'n' is u32"));
    CHECK_THAT(refused(grid(8, 32), 1, 8, rows), contains("parameter 'x' is an array of rank 1"));
    CHECK_THAT(refused(grid(8, 32), x.view(2, 4), 8, rows), contains("parameter 'x' is an array of rank 1"));
    CHECK_THAT(refused(grid(8, 32), x, 8, y), contains("parameter 'y' is an array of rank 2"));
    CHECK_THAT(refused(grid(8, 32), x, 8, x.view(2, 4)), contains("parameter 'y' is written, and the buffer is const"));
    CHECK_THAT(refused(grid(8, 32), y.slice(0, 8), 8, rows),
               contains("'x' (in f32[]) and 'y' (out f32[]) are the same memory"));
    const auto wider = device.buffer<double>(8);
    CHECK_THAT(refused(grid(8, 32), wider, 8, rows),
               contains("parameter 'x' has elements of type f32") && contains("those of the buffer are f64"));
    CHECK_THAT(refused(grid(8, 32), x, 8),
               contains("it takes 3 arguments, not 2") && contains("its parameters are x, n, y"));
    CHECK_THAT(refused(grid(8, 32), x, 8, rows, 1), contains("it takes 3 arguments, not 4"));
    CHECK_THAT(message_of([&] { device.launch(module, "other", grid(1, 1), 1); }),
               contains("launch of 'other': its PTX does not say what its parameters are"));
}

TEST_CASE("kernel info: parameters as bytes are checked as far as they tell") {
    const Device device = emulator();
    const Module module = device.load(text_of(scaled), "scaled.ptx");
    const Buffer<float> x = device.upload(std::vector<float>(8, 1), "x");
    Buffer<float> y = device.upload(std::vector<float>(8), "y");
    const auto bytes = [&](std::uint32_t n) { return runtime::parameters(x, n, y, 2u, 4u, 4u); };
    device.launch(module, "scaled", grid(8, 32), bytes(8));
    CHECK(y.download() == std::vector<float>(8, 2));
    const auto refused = [&](const Grid& grid, const std::vector<std::byte>& bytes) {
        return message_of([&] { device.launch(module, "scaled", grid, bytes); });
    };
    CHECK_THAT(refused(grid(8, 32), bytes(6)), contains("'n' is 6, which is not a multiple of 4"));
    CHECK_THAT(refused(grid(8, 128), bytes(8)), contains("its launch bounds say at most 64"));
    CHECK_THAT(refused(grid(8, 32), runtime::parameters(x, 8u)), contains("it takes 36 bytes of parameters, not 12"));
    const std::string ptx = compile(scaled.ast()).ptx;
    const Module silent = device.load(ptx, "scaled.ptx");
    CHECK(silent.info("scaled") == nullptr);
    CHECK_NOTHROW(device.launch(silent, "scaled", grid(8, 32), bytes(6)));
}

TEST_CASE("kernel info: a launch of text gives the kernel's own dynamic shared memory") {
    const Device device = emulator();
    const std::string text = text_of(large);
    REQUIRE(infos_in(text, "large.ptx").front().own_dynamic_shared_bytes == 64 * 1024);
    const Module module = device.load(text, "large.ptx");
    Buffer<float> y = device.buffer<float>(32, "y");
    device.launch(module, "large", grid(32, 32), y);
    CHECK(y.download() == std::vector<float>(32, 1));
    y.fill(0);
    device.launch(module, "large", grid(32, 32), runtime::parameters(y));
    CHECK(y.download() == std::vector<float>(32, 1));
    const Module printed = device.load(ptx::print(ptx::parse(text, "large.ptx")), "printed.ptx");
    device.launch(printed, "large", grid(32, 32), y);
    CHECK_THROWS_WITH(
        device.launch(device.load(without_sections(text), "bare.ptx"), "large", grid(32, 32), runtime::parameters(y)),
        contains("bytes of dynamic shared memory"));
}

TEST_CASE("digest: equal kernels have equal ones, and every difference is one") {
    const auto made = [](float by, const char* name = "k") {
        return kernel(name, params("x", "n"), [by](InOut<float> x, u32 n) { x[n] = x[n] * by; });
    };
    const auto digest = [](const trace::KernelHandle& kernel) { return kernel.digest(); };
    std::set<Digest> all;
    CHECK(digest(made(2)) == digest(made(2)));
    const auto is_new = [&](const trace::KernelHandle& kernel) { return all.insert(kernel.digest()).second; };
    CHECK(is_new(made(2)));
    CHECK(is_new(made(3)));
    CHECK(is_new(made(2, "l")));
    CHECK(is_new(made(2).launch_bounds(64)));
    CHECK(is_new(made(2).launch_bounds(64, 2)));
    CHECK(is_new(made(2).max_registers(64)));
    CHECK(is_new(made(2).cluster(2)));
    CHECK(is_new(made(2).require(multiple_of<2>("n"))));
    CHECK(is_new(made(2).require(multiple_of<4>("n"))));
    CHECK(is_new(made(2).require(aligned<16>("x"))));
    CHECK(is_new(made(2).require(at_least("x", "n"))));
    CHECK(is_new(made(2).require(halo<1>("x"))));
    CHECK_FALSE(is_new(made(2)));
    ast::KernelTree tree = made(2).ast();
    const auto changed = [&](auto change) {
        ast::KernelTree other = tree;
        change(other);
        return all.insert(ast::digest(other)).second;
    };
    CHECK(changed([](ast::KernelTree& k) { k.where.line += 1; }));
    CHECK(changed([](ast::KernelTree& k) { k.where.file = "elsewhere.cpp"; }));
    CHECK(changed([](ast::KernelTree& k) { k.parameters[0].name = "z"; }));
    CHECK(changed([](ast::KernelTree& k) { k.block.threads = 32; }));
    CHECK(changed([](ast::KernelTree& k) { k.texts.push_back(""); }));
    CHECK(changed([](ast::KernelTree& k) { k.symbols.push_back({}); }));
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
        const auto node = ast::Node(i);
        CHECK(changed([&](ast::KernelTree& k) { k[node].where.line += 1; }));
        CHECK(changed([&](ast::KernelTree& k) { k[node].attribute = k[node].attribute + 1; }));
        CHECK(changed([&](ast::KernelTree& k) { k[node].fp.ftz = !k[node].fp.ftz; }));
        CHECK(changed([&](ast::KernelTree& k) { k[node].memory.is_volatile = !k[node].memory.is_volatile; }));
    }
}

}  // namespace ikat::tests
