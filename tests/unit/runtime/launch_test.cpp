// SPDX-License-Identifier: Apache-2.0
// What a launch checks before anything runs.
#include "runtime/launch/launch.hpp"
#include "runtime/launch/typed_launch.hpp"

#include <cstring>

#include "codegen/ast/ast.hpp"
#include "runtime/backends/plan.hpp"
#include "runtime/buffer.hpp"
#include "runtime/pool/pool_object.hpp"
#include "tests/catch.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;

/// kernel(n: u32, a multiple of 4; x: in f32[]; y: out f32[]), at most 256 threads.
ast::KernelTree kernel() {
    ast::KernelTree out;
    out.name = "scale";
    out.where = {"scale.cpp", 3};
    out.bounds.max_threads = 256;
    out.parameters = {{.name = "n", .type = ir::Type::U32, .multiple = 4},
                      {.name = "x", .access = ir::Access::In, .element = ir::Type::F32, .alignment = 16},
                      {.name = "y", .access = ir::Access::Out, .element = ir::Type::F32}};
    return out;
}

Reference<PoolObject> pool_of(const Reference<Backend>& device) {
    return make_reference<PoolObject>(device, PoolKind::Own);
}

struct Launch {
    FakeCuda fake;
    Reference<Backend> device = fake.open();
    const Reference<PoolObject> pool = pool_of(device);
    Allocation x{pool, 64, "x"}, y{pool, 64, "y"};
    ast::KernelTree scale = kernel();
    Grid grid{{1}, {128}};

    Argument n = {.type = ir::Type::U32, .bits = 16};
    static Argument buffer(const Allocation& memory, ir::Type type = ir::Type::F32) {
        return {.type = type, .part = memory.whole()};
    }

    std::string refused(const std::vector<Argument>& arguments) {
        return message_of([&] { check_launch(scale, {grid, Location{"main.cpp", 9}}, arguments, *device); });
    }
};

TEST_CASE("launch: valid arguments pass") {
    Launch launch;
    CHECK(launch.refused({launch.n, launch.buffer(launch.x), launch.buffer(launch.y)}).empty());
}

TEST_CASE("launch: number and types of the arguments") {
    Launch launch;
    CHECK_THAT(launch.refused({launch.n}),
               contains("main.cpp:9: error: launch of 'scale': it takes 3 arguments, not 1"));
    CHECK_THAT(launch.refused({launch.n}), contains("scale.cpp:3: note: the kernel is here"));
    const std::string swapped = launch.refused({launch.buffer(launch.x), launch.n, launch.buffer(launch.y)});
    CHECK_THAT(swapped, contains("parameter 'n' is u32, the argument is f32[]"));
    CHECK_THAT(swapped, contains("parameter 'x' is in f32[], the argument is u32"));
    CHECK_THAT(launch.refused({launch.n, launch.buffer(launch.x, ir::Type::F64), launch.buffer(launch.y)}),
               contains("parameter 'x' is in f32[], the argument is f64[]"));
}

TEST_CASE("launch: multiple_of is checked, also for negative numbers") {
    Launch launch;
    launch.n.bits = 18;
    CHECK_THAT(launch.refused({launch.n, launch.buffer(launch.x), launch.buffer(launch.y)}),
               contains("'n' is 18, which is not a multiple of 4"));
    launch.scale.parameters[0].type = ir::Type::I32;
    launch.scale.parameters[0].multiple = 6;
    launch.n = {.type = ir::Type::I32, .bits = std::uint32_t(-12)};
    CHECK(launch.refused({launch.n, launch.buffer(launch.x), launch.buffer(launch.y)}).empty());
    launch.n.bits = std::uint32_t(-13);
    CHECK_THAT(launch.refused({launch.n, launch.buffer(launch.x), launch.buffer(launch.y)}), contains("'n' is -13"));
}

TEST_CASE("launch: read-only memory must not be written through another parameter") {
    Launch launch;
    const std::string message = launch.refused({launch.n, launch.buffer(launch.x), launch.buffer(launch.x)});
    CHECK_THAT(message, contains("'x' (in f32[]) and 'y' (out f32[]) are the same memory"));
    launch.scale.parameters[1].access = ir::Access::InOut;
    CHECK(launch.refused({launch.n, launch.buffer(launch.x), launch.buffer(launch.x)}).empty());
}

TEST_CASE("launch: a view must lie inside its buffer") {
    Launch launch;
    launch.scale.parameters.resize(4);
    launch.scale.parameters[0] = {.name = "x", .access = ir::Access::In, .element = ir::Type::F32};
    for (std::size_t i = 1; i < 4; ++i) launch.scale.parameters[i] = {.name = "x_part", .type = ir::Type::U32};
    launch.scale.views = {{.pointer = 0, .rank = 2}};
    const auto refused = [&](std::uint64_t rows, std::uint64_t columns, std::uint64_t pitch) {
        std::vector<Argument> arguments{launch.buffer(launch.x)};  // 16 elements
        for (const std::uint64_t number : {rows, columns, pitch})
            arguments.push_back({.type = ir::Type::U32, .bits = number});
        return launch.refused(arguments);
    };
    CHECK(refused(4, 4, 4).empty());
    CHECK(refused(2, 4, 12).empty());
    CHECK_THAT(refused(2, 4, 13), contains("'x': a view of 2 x 4 elements with pitch 13 needs 17, and there are 16"));
    CHECK_THAT(refused(2, 4, 3), contains("'x': a view of 2 x 4 elements with a pitch of 3"));
    CHECK_THAT(refused(0, 0, std::uint64_t{1} << 32), contains("which is not below 2^32"));
}

TEST_CASE("launch: a buffer that was moved from") {
    Launch launch;
    const BufferPart before = launch.x.whole();
    const Allocation kept = std::move(launch.x);
    const auto refused = [&](const BufferPart& part) {
        return message_of([&] { buffer_argument(ir::Type::F32, part, launch.scale, 1, {"main.cpp", 9}); });
    };
    CHECK_THAT(refused(launch.x.whole()), contains("main.cpp:9: error: launch of 'scale': the buffer of 'x' was moved "
                                                   "from, or is an empty slice without a buffer"));
    CHECK(refused(before).empty());  // a part goes with the memory
}

TEST_CASE("launch: block shapes that the kernel's body requires") {
    Launch launch;
    const std::vector<Argument> arguments = {launch.n, launch.buffer(launch.x), launch.buffer(launch.y)};
    launch.grid.threads = {3, 11};
    CHECK(launch.refused(arguments).empty());
    launch.scale.block.whole_warps = true;
    CHECK_THAT(launch.refused(arguments), contains("a block of 33 threads, but the kernel needs whole warps"));
    launch.grid.threads = {16, 4};
    CHECK(launch.refused(arguments).empty());
    launch.scale.block.linear = true;
    CHECK_THAT(launch.refused(arguments),
               contains("a block of 16 x 4 x 1 threads, but the kernel needs one-dimensional blocks"));
    launch.grid.threads = {8, 1, 8};
    CHECK_THAT(launch.refused(arguments), contains("launch 64 x 1 x 1 threads per block"));
    launch.grid.threads = {64};
    CHECK(launch.refused(arguments).empty());
    launch.grid.blocks = {2, 3};
    CHECK(launch.refused(arguments).empty());
    launch.scale.block.linear_grid = true;
    CHECK_THAT(launch.refused(arguments),
               contains("a grid of 2 x 3 x 1 blocks, but the kernel needs a one-dimensional grid") &&
                   contains("launch 6 x 1 x 1 blocks"));
    launch.grid.blocks = {1, 1, 2};
    CHECK_THAT(launch.refused(arguments), contains("a grid of 1 x 1 x 2 blocks"));
    launch.grid.blocks = {2};
    CHECK(launch.refused(arguments).empty());
    launch.scale.block.threads = 96;
    CHECK_THAT(launch.refused(arguments), contains("a block of 64 threads, but the kernel is laid out for 96"));
    launch.grid.threads = {96};
    CHECK(launch.refused(arguments).empty());
}

TEST_CASE("launch: blocks and grids within the bounds of kernel and device") {
    Launch launch;
    const std::vector<Argument> arguments{launch.n, launch.buffer(launch.x), launch.buffer(launch.y)};
    launch.grid.threads = {257};
    CHECK_THAT(launch.refused(arguments), contains("a block of 257 threads, but its launch bounds say at most 256"));
    launch.grid.threads = {32, 64};
    CHECK_THAT(launch.refused(arguments), contains("at most 1024 threads per block and 1024 x 1024 x 64"));
    launch.grid.threads = {1, 1, 65};
    CHECK_THAT(launch.refused(arguments), contains("a block of 1 x 1 x 65 threads"));
    launch.grid.threads = {0};
    CHECK_THAT(launch.refused(arguments), contains("a block has no threads"));
    launch.grid = {{1, 65536}, {32}};
    CHECK_THAT(launch.refused(arguments), contains("a grid of 1 x 65536 x 1 blocks"));
}

TEST_CASE("launch: an address that violates a contract") {
    Launch launch;
    launch.scale.parameters[1].alignment = 1u << 31;
    const Allocation second(launch.pool, 64, "x");  // behind another one in the pool's memory
    CHECK_THAT(launch.refused({launch.n, launch.buffer(second), launch.buffer(launch.y)}),
               contains("buffer 'x' is not aligned to 2147483648 bytes"));
}

TEST_CASE("launch: an address that is not a multiple of the element's size") {
    Launch launch;
    Argument y = Launch::buffer(launch.y);
    const BufferPart whole = y.part;
    for (std::uint64_t offset = 0; offset < 9; ++offset) {
        y.part = whole.from(offset);
        const std::string message = launch.refused({launch.n, launch.buffer(launch.x), y});
        INFO("offset " << offset);
        if (offset % 4 == 0) {
            CHECK(message.empty());
            continue;
        }
        CHECK_THAT(message, contains("main.cpp:9: error: launch of 'scale': buffer 'y' is not aligned to 4 bytes"));
        CHECK_THAT(message, contains("hint: its elements are f32: start at a multiple of their size"));
    }
    y.part = whole.from(64);  // no elements, so no access
    CHECK(launch.refused({launch.n, launch.buffer(launch.x), y}).empty());
    y.part = {whole.memory, 2, 0};
    CHECK(launch.refused({launch.n, launch.buffer(launch.x), y}).empty());
}

TEST_CASE("grid: a thread for each element") {
    CHECK(grid(0, 32) == Grid{{0}, {32}});
    CHECK(grid(64, 32) == Grid{{2}, {32}});
    CHECK(grid(65, 32) == Grid{{3}, {32}});
    CHECK_THAT(message_of([] { grid(5, 0); }), contains("a grid of blocks without threads"));
    CHECK_THAT(message_of([] { grid(std::uint64_t{1} << 40, 32); }),
               contains("1099511627776 elements need 34359738368 blocks of 32 threads"));
}

TEST_CASE("launch: dynamic shared memory is not forgotten") {
    Launch launch;
    const std::vector<Argument> arguments{launch.n, launch.buffer(launch.x), launch.buffer(launch.y)};
    launch.scale.takes_dynamic_shared = true;
    CHECK_THAT(launch.refused(arguments), contains("uses dynamic shared memory, but the launch gives none"));
    launch.grid.dynamic_shared_bytes = 64;
    CHECK(launch.refused(arguments).empty());
}

TEST_CASE("launch: a buffer of another device") {
    Launch launch;
    launch.fake.devices(2);
    const auto other = launch.fake.open(1);
    const Allocation elsewhere(pool_of(other), 64, "z");
    CHECK_THAT(launch.refused({launch.n, launch.buffer(launch.x), launch.buffer(elsewhere)}),
               contains("the buffer of 'y' is on another device"));
}

TEST_CASE("launch: equal addresses of different devices are not the same memory") {
    Launch launch;
    const auto other = open_plan({});
    const Allocation elsewhere(pool_of(other), 64, "z");
    const auto first = open_plan({});
    const Allocation here(pool_of(first), 64, "x");
    REQUIRE(here.address() == elsewhere.address());
    const std::string message = launch.refused({launch.n, launch.buffer(here), launch.buffer(elsewhere)});
    CHECK_THAT(message, contains("the buffer of 'y' is on another device") && !contains("are the same memory"));
}

TEST_CASE("launch: all mistakes are reported together") {
    Launch launch;
    launch.n.bits = 3;
    launch.grid.threads = {2000};
    const std::string message = launch.refused({launch.n, launch.buffer(launch.x), launch.buffer(launch.x)});
    CHECK_THAT(message, contains("not a multiple of 4"));
    CHECK_THAT(message, contains("same memory"));
    CHECK_THAT(message, contains("a block of 2000"));
}

TEST_CASE("launch: parameters are packed at their natural alignment") {
    Launch launch;
    const std::vector<Argument> arguments{{.type = ir::Type::U8, .bits = 0xaa},
                                          {.type = ir::Type::F16, .bits = 0x3c00},
                                          launch.buffer(launch.x),
                                          {.type = ir::Type::U32, .bits = 7}};
    const std::vector<std::byte> packed = pack(arguments);
    REQUIRE(packed.size() == 20);
    CHECK(packed[0] == std::byte(0xaa));
    CHECK(packed[3] == std::byte(0x3c));
    std::uint64_t address = 0;
    std::memcpy(&address, packed.data() + 8, 8);
    CHECK(address == launch.x.address());
    CHECK(packed[16] == std::byte(7));
}

TEST_CASE("grid: one thread per element, rounded up to whole blocks") {
    CHECK(grid(1000, 256) == Grid{{4}, {256}});
    CHECK(grid(1024, 256) == Grid{{4}, {256}});
    CHECK(grid(1, 256) == Grid{{1}, {256}});
    CHECK(grid(0, 256).blocks.count() == 0);
    CHECK_THAT(message_of([] { grid(1, 0); }), contains("blocks without threads"));
    CHECK_THAT(message_of([] { grid(1ull << 40, 32); }), contains("grid_stride"));
}

TEST_CASE("buffer: copies larger than the buffer are rejected, with its name") {
    Launch launch;
    std::vector<std::byte> big(65);
    CHECK_THAT(message_of([&] { launch.x.write(big); }),
               contains("an upload of 65 bytes for buffer 'x', which has 64"));
    CHECK_THAT(message_of([&] { launch.x.read(big); }), contains("a download of 65 bytes"));
    const Allocation elsewhere(pool_of(launch.fake.open()), 64, "z");
    CHECK_THAT(message_of([&] { launch.x.copy(elsewhere); }), contains("'x' and 'z' are on different devices"));
}

TEST_CASE("buffer: typed, moved, filled and copied") {
    Launch launch;
    Buffer<float> a(Allocation(launch.pool, 40, "a")), b(Allocation(launch.pool, 40, "b"));
    a.fill(2.5f);
    b.copy(a);
    CHECK(b.download() == std::vector<float>(10, 2.5f));
    const std::vector<float> front{1, 2};
    b.upload(front);
    Buffer<float> moved = std::move(b);
    CHECK(moved.size() == 10);
    CHECK(moved.name() == "b");
    CHECK(moved.download()[1] == 2);
    CHECK(moved.download()[2] == 2.5f);
    a = std::move(moved);
    CHECK(a.name() == "b");
}

}  // namespace
}  // namespace ikat::tests
