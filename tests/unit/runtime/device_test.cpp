// SPDX-License-Identifier: Apache-2.0
// Devices as programs use them, on the emulator and on the fake CUDA driver.
#include "runtime/device.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "codegen/pipeline/compile.hpp"
#include "dsl/kernel/kernel.hpp"
#include "tests/catch.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;

/// Sets an environment variable for its lifetime.
class Environment {
public:
    Environment(const char* name, const char* value) : name_(name) {
        if (const char* old = std::getenv(name)) old_ = old;
        value ? setenv(name, value, 1) : unsetenv(name);
    }
    ~Environment() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }

private:
    const char* name_;
    std::string old_;
};

/// out[i] = in[i] + 1 for i < n.
constexpr const char* increment = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry increment(.param .u64 in, .param .u64 out, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<7>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [in];
	ld.param.u64 %rd2, [out];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r5, %r1;
	@%p1 bra done;
	mul.wide.u32 %rd3, %r5, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	ld.global.b32 %r6, [%rd4];
	add.s32 %r6, %r6, 1;
	st.global.b32 [%rd5], %r6;
done:
	ret;
}
)";

std::vector<std::byte> parameters(const Buffer<std::uint32_t>& in, const Buffer<std::uint32_t>& out, std::uint32_t n) {
    const Argument list[] = {{.type = ir::Type::U32, .memory = &in.memory()},
                             {.type = ir::Type::U32, .memory = &out.memory()},
                             {.type = ir::Type::U32, .bits = n}};
    return pack(list);
}

TEST_CASE("open: the argument decides, then the environment, then what is available") {
    const FakeCuda fake;
    const Environment driver("IKAT_CUDA_DRIVER", FAKE_CUDA), device("IKAT_DEVICE", nullptr);
    CHECK(Device::open().properties().kind == DeviceKind::Cuda);
    CHECK(Device::open({.device = "emulator"}).properties().kind == DeviceKind::Emulator);
    {
        const Environment said("IKAT_DEVICE", "emulator");
        CHECK(Device::open().properties().kind == DeviceKind::Emulator);
        CHECK(Device::open({.device = "cuda"}).properties().kind == DeviceKind::Cuda);
    }
    fake.devices(0);
    CHECK(Device::open().properties().kind == DeviceKind::Emulator);
    CHECK_THAT(message_of([] { Device::open({.device = "cuda"}); }), contains("the CUDA driver sees no device"));
    fake.devices(2);
    CHECK_THAT(message_of([] { Device::open({.device = "cuda", .ordinal = 2}); }), contains("no CUDA device 2"));
    fake.fail("cuInit", 999);
    CHECK(Device::open().properties().kind == DeviceKind::Emulator);
}

TEST_CASE("open: without a driver the emulator is the device, and CUDA an error") {
    const Environment driver("IKAT_CUDA_DRIVER", "/no/such/libcuda.so"), device("IKAT_DEVICE", nullptr);
    CHECK(Device::open().properties().kind == DeviceKind::Emulator);
    CHECK_THAT(message_of([] { Device::open({.device = "cuda"}); }), contains("no CUDA driver: /no/such/libcuda.so"));
    const Environment said("IKAT_DEVICE", "gpu");
    CHECK_THAT(message_of([] { Device::open(); }), contains("there is no device 'gpu' (from IKAT_DEVICE)"));
}

TEST_CASE("open: the emulator's threads and target") {
    const Environment threads("IKAT_THREADS", "3");
    CHECK(Device::open({.device = "emulator"}).properties().multiprocessors == 3);
    CHECK(emulator().properties().multiprocessors == 1);
    const Device device = Device::open({.device = "emulator", .target = "sm_90"});
    CHECK(device.properties().target == "sm_90");
    CHECK(device.properties().compute_major == 9);
    CHECK(device.compile_options().target == "sm_90");
    CHECK_THAT(message_of([] { Device::open({.device = "emulator", .target = "sm_1"}); }), contains("sm_1"));
    const Environment bad("IKAT_THREADS", "0");
    CHECK_THAT(message_of([] { Device::open({.device = "emulator"}); }), contains("IKAT_THREADS is '0'"));
}

TEST_CASE("list: available devices, and why others are not") {
    const FakeCuda fake;
    {
        const Environment driver("IKAT_CUDA_DRIVER", FAKE_CUDA);
        fake.devices(2);
        const std::vector<DeviceReport> reports = list_devices();
        REQUIRE(reports.size() == 3);
        CHECK(reports[0].selector == "cuda:0");
        CHECK(reports[0].properties.name == "Fake GPU");
        CHECK(reports[1].selector == "cuda:1");
        CHECK(reports[2].selector == "emulator");
    }
    const Environment driver("IKAT_CUDA_DRIVER", "/no/such/libcuda.so");
    const std::vector<DeviceReport> reports = list_devices();
    REQUIRE(reports.size() == 2);
    CHECK_THAT(reports[0].problem, contains("no CUDA driver"));
    CHECK(reports[1].problem.empty());
}

TEST_CASE("a fill reaches every element and no more, at any size") {
    const Device device = emulator();
    for (const std::size_t size : {0, 1, 2, 3, 7, 8, 1000}) {
        auto b = device.buffer<std::uint64_t>(size, "b");
        b.fill(0x0123456789abcdef);
        CHECK(b.download() == std::vector<std::uint64_t>(size, 0x0123456789abcdef));
    }
}

TEST_CASE("buffers: up, down, fill, copy") {
    const Device device = emulator();
    std::vector<std::uint32_t> host(1000);
    std::iota(host.begin(), host.end(), 0u);
    const Buffer<std::uint32_t> a = device.upload(host, "a");
    CHECK(device.download(a) == host);
    Buffer<std::uint32_t> b = device.buffer<std::uint32_t>(1000, "b");
    b.copy(a);
    CHECK(b.download() == host);
    b.fill(9);
    CHECK(b.download() == std::vector<std::uint32_t>(1000, 9));
    const std::array<half, 2> halves{half(1), half(2)};
    CHECK(float(device.download(device.upload(halves))[1]) == 2);
    CHECK(device.download(device.upload(std::vector<double>{})).empty());
    CHECK(device.buffer<float>(0).size() == 0);
}

TEST_CASE("using a moved-from object is an error") {
    const Device device = emulator();
    Buffer<std::uint32_t> old = device.upload(std::vector<std::uint32_t>{4, 5}, "old");
    const Buffer<std::uint32_t> kept = std::move(old);
    CHECK(kept.download() == std::vector<std::uint32_t>{4, 5});
    CHECK(old.size() == 0);
    const auto expected = contains("a device, buffer, module, stream or event is used after it was moved from");
    CHECK_THAT(message_of([&] { old.download(); }), expected);
    CHECK_THAT(message_of([&] { old.upload({}); }), expected);
    CHECK_THAT(message_of([&] { old.fill(1); }), expected);
    CHECK_THAT(message_of([&] { old.rename("new"); }), expected);
    Module gone = device.load(increment, "increment.ptx");
    const Module module = std::move(gone);
    CHECK_THAT(message_of([&] { device.launch(gone, "increment", grid(1, 1), parameters(kept, kept, 1)); }), expected);
    Event event = device.record();
    const Event later = std::move(event);
    CHECK_THAT(message_of([&] { event.synchronize(); }), expected);
    Device moved = emulator();
    Stream stream = moved.stream();
    const Stream other_stream = std::move(stream);
    const Device other = std::move(moved);
    CHECK_THAT(message_of([&] { moved.properties(); }), expected);
    CHECK_THAT(message_of([&] { moved.compile_options(); }), expected);
    CHECK_THAT(message_of([&] { moved.set_compile_options({}); }), expected);
    CHECK_THAT(message_of([&] { moved.buffer<float>(1); }), expected);
    CHECK_THAT(message_of([&] { moved.load(increment, "increment.ptx"); }), expected);
    CHECK_THAT(message_of([&] { moved.launch(module, "increment", grid(1, 1), parameters(kept, kept, 1)); }), expected);
    CHECK_THAT(message_of([&] { moved.stream(); }), expected);
    CHECK_THAT(message_of([&] { moved.record(); }), expected);
    CHECK_THAT(message_of([&] { moved.synchronize(); }), expected);
    CHECK_THAT(message_of([&] { stream.record(); }), expected);
    CHECK_THAT(message_of([&] { stream.synchronize(); }), expected);
    CHECK_THAT(message_of([&] { stream.launch(module, "increment", grid(1, 1), parameters(kept, kept, 1)); }),
               expected);
}

TEST_CASE("a module runs on the device that loaded it") {
    const Device device = emulator(), other = emulator();
    const Module module = other.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>{1});
    const auto expected = contains("launch of 'increment': its module was loaded by another device");
    CHECK_THAT(message_of([&] { device.launch(module, "increment", grid(1, 1), parameters(x, x, 1)); }), expected);
    CHECK_THAT(message_of([&] { device.stream().launch(module, "increment", grid(1, 1), parameters(x, x, 1)); }),
               expected);
}

TEST_CASE("fills and copies of more than a piece") {
    const Device device = emulator();
    for (const std::size_t count : {1u, 8191u, 8192u, 8193u, 40000u}) {
        INFO(count);
        Buffer<std::uint64_t> x = device.buffer<std::uint64_t>(count), y = device.buffer<std::uint64_t>(count);
        x.fill(0x0123456789abcdef);
        CHECK(x.download() == std::vector<std::uint64_t>(count, 0x0123456789abcdef));
        std::vector<std::uint64_t> numbers(count);
        std::iota(numbers.begin(), numbers.end(), 7u);
        x.upload(numbers);
        y.copy(x);
        CHECK(y.download() == numbers);
    }
}

TEST_CASE("a copy of an uninitialised buffer is uninitialised") {
    const Device device = emulator();
    const Module module = device.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> unwritten = device.buffer<std::uint32_t>(1);
    Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>{1});
    const auto run = [&] { device.launch(module, "increment", {{1}, {1}}, parameters(x, x, 1)); };
    CHECK(message_of(run) == "");
    x.copy(unwritten);
    CHECK_THAT(message_of(run), contains("an undefined value is stored to a buffer"));
}

TEST_CASE("variables of PTX are set from the host") {
    const Device device = emulator();
    const Module module = device.load(R"(.version 7.0
.target sm_75
.address_size 64
.const .u32 table[2] = {1, 2};
.global .u32 added;
.visible .entry look_up(.param .u64 y)
{
    .reg .b32 %a, %b;
    .reg .b64 %y;
    ld.param.u64 %y, [y];
    ld.const.u32 %a, [table+4];
    ld.global.u32 %b, [added];
    add.u32 %a, %a, %b;
    st.global.u32 [%y], %a;
    ret;
}
)",
                                      "look_up.ptx");
    Buffer<std::uint32_t> y = device.buffer<std::uint32_t>(1);
    const std::uint64_t address = y.address();
    const auto run = [&] {
        device.launch(module, "look_up", grid(1, 1), std::as_bytes(std::span(&address, 1)));
        return y.download()[0];
    };
    CHECK(run() == 2);
    const std::array<std::uint32_t, 2> table{7, 8};
    device.set_variable(module, "table", std::as_bytes(std::span(table)));
    CHECK(run() == 8);
    const std::uint32_t hundred = 100;
    device.set_variable(module, "added", std::as_bytes(std::span(&hundred, 1)));
    CHECK(run() == 108);
    CHECK_THAT(message_of([&] { device.set_variable(module, "table", std::as_bytes(std::span(&hundred, 1))); }),
               contains("variable 'table' has 8 bytes, not 4"));
    CHECK_THAT(message_of([&] { device.set_variable(module, "y", {}); }), contains("the PTX has no variable 'y'"));
}

TEST_CASE("PTX that ptxas rejects is not loaded, except on request") {
    const Device device = emulator();
    std::string text = increment;
    text.insert(text.find("\t.reg .pred"), "\t.shared .align 3 .b8 tile[4];\n");
    CHECK_THAT(message_of([&] { device.load(text, "odd.ptx"); }), contains("odd.ptx:6:") && contains(".align 3"));
    const Module module = device.load(text, "odd.ptx", false);
    Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>{1});
    device.launch(module, "increment", grid(1, 1), parameters(x, x, 1));
    CHECK(x.download() == std::vector<std::uint32_t>{2});
}

TEST_CASE("buffers keep their device open") {
    std::optional<Buffer<std::uint32_t>> buffer;
    {
        const Device device = emulator();
        buffer = device.upload(std::vector<std::uint32_t>{4, 5});
    }
    CHECK(buffer->download() == std::vector<std::uint32_t>{4, 5});
}

TEST_CASE("PTX text runs on the emulator") {
    const Device device = emulator();
    const Module module = device.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> in = device.upload(std::vector<std::uint32_t>{1, 2, 3}, "in");
    Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(3, "out");
    device.launch(module, "increment", grid(3, 2), parameters(in, out, 3));
    CHECK(out.download() == std::vector<std::uint32_t>{2, 3, 4});
    device.launch(module, "increment", grid(0, 2), parameters(in, out, 3));
}

TEST_CASE("PTX text: an access out of bounds is a kernel error that names buffer and line") {
    const Device device = emulator();
    const Module module = device.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> in = device.upload(std::vector<std::uint32_t>{1, 2, 3}, "in");
    Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(2, "out");
    const auto run = [&] { device.launch(module, "increment", grid(3, 32), parameters(in, out, 3)); };
    CHECK_THROWS_AS(run(), KernelError);
    const std::string message = message_of(run);
    CHECK_THAT(message, contains("increment.ptx:23"));
    CHECK_THAT(message, contains("'out'"));
}

/// Each warp writes its number to the same word and, if `fails`, beyond the buffer's end.
std::string last_warp(bool fails = false) {
    return std::string(
               ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry last(.param .u64 out)\n{\n"
               ".reg .b32 %r<2>; .reg .b64 %d<2>; ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;\n"
               "shr.u32 %r1, %r1, 5; st.global.u32 [%d1") +
           (fails ? "+4" : "") + "], %r1; ret;\n}\n";
}

/// The warp that wrote last in each of some launches.
std::vector<std::uint32_t> last_warps(std::string_view schedule, std::uint32_t warps, int launches) {
    const Device device = Device::open({.device = "emulator", .threads = 1, .schedule = schedule});
    const Module module = device.load(last_warp(), "last.ptx");
    Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(1, "out");
    const Argument list[] = {{.type = ir::Type::U32, .memory = &out.memory()}};
    std::vector<std::uint32_t> last;
    for (int i = 0; i < launches; ++i) {
        device.launch(module, "last", {{1}, {32 * warps}}, pack(list));
        last.push_back(out.download().front());
    }
    return last;
}

TEST_CASE("the order of warps: by the launch's number, or as set by options or the environment") {
    using Numbers = std::vector<std::uint32_t>;
    CHECK(last_warps("0", 8, 3) == Numbers{7, 7, 7});
    Numbers both = last_warps("", 2, 2);  // one of them ascending, one descending
    std::ranges::sort(both);
    CHECK(both == Numbers{0, 1});
    Numbers many = last_warps("", 8, 64);
    for (std::uint32_t warp = 0; warp < 8; ++warp) CHECK(std::ranges::count(many, warp) > 0);
    const Numbers fixed = last_warps("5", 8, 8);
    CHECK(std::ranges::count(fixed, fixed.front()) == 8);
    CHECK(last_warps("1", 2, 1) == Numbers{0});
    CHECK(last_warps("random", 8, 4).size() == 4);
    const Environment schedule("IKAT_SCHEDULE", "5");
    CHECK(last_warps("", 8, 8) == fixed);
    CHECK(last_warps("0", 8, 1) == Numbers{7});  // the program goes first
    for (const char* wrong : {"one", "-1", "1,", "7,lane", "4294967296", "0x1"}) {
        const Environment other("IKAT_SCHEDULE", wrong);
        CHECK_THAT(message_of([] { last_warps("", 2, 1); }),
                   contains("there is no schedule '" + std::string(wrong) + "' (from IKAT_SCHEDULE)"));
    }
}

TEST_CASE("a finding says how to repeat its order of warps") {
    const auto failure = [](std::string_view schedule) {
        return message_of([&] {
            const Device device = Device::open({.device = "emulator", .threads = 1, .schedule = schedule});
            const Module module = device.load(last_warp(true), "last.ptx");
            Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(1, "out");
            const Argument list[] = {{.type = ir::Type::U32, .memory = &out.memory()}};
            device.launch(module, "last", {{1}, {256}}, pack(list));
        });
    };
    CHECK_THAT(failure("0"), contains("note: IKAT_SCHEDULE=0 repeats this order of warps"));
    CHECK_THAT(failure("0"), contains("thread (0,0,0)"));
    CHECK_THAT(failure("7,lanes"), contains("note: IKAT_SCHEDULE=7,lanes repeats this order of warps"));
    const std::string first = failure("");
    const auto at = first.find("IKAT_SCHEDULE=") + std::string_view("IKAT_SCHEDULE=").size();
    CHECK(failure(first.substr(at, first.find(' ', at) - at)) == first);
}

/// out[0] = an uninitialised register.
constexpr const char* unassigned = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r1; .reg .b64 %d1;
    ld.param.u64 %d1, [out]; st.global.u32 [%d1], %r1; ret;
}
)";

TEST_CASE("uninitialised registers are found if options or the environment ask for it") {
    const auto result = [](std::string_view check) {
        return message_of([&] {
            const Device device = Device::open({.device = "emulator", .check = check});
            const Module module = device.load(unassigned, "unassigned.ptx");
            Buffer<std::uint32_t> out = device.buffer<std::uint32_t>(1, "out");
            const Argument list[] = {{.type = ir::Type::U32, .memory = &out.memory()}};
            device.launch(module, "k", {{1}, {1}}, pack(list));
        });
    };
    const Environment nothing("IKAT_CHECK", "");
    CHECK(result("") == "");
    CHECK_THAT(result("registers"), contains("note: a register that nothing has assigned"));
    CHECK_THAT(result("all"), contains("error: there is no check 'all'\n"));
    const Environment registers("IKAT_CHECK", "registers");
    CHECK_THAT(result(""), contains("note: a register that nothing has assigned"));
    const Environment wrong("IKAT_CHECK", "all");
    CHECK_THAT(result(""), contains("error: there is no check 'all' (from IKAT_CHECK)"));
}

TEST_CASE("PTX text: mistakes found before anything runs are errors, but not kernel errors") {
    const Device device = emulator();
    CHECK_THAT(message_of([&] { device.load("nonsense", "bad.ptx"); }), contains("bad.ptx:1"));
    const Module module = device.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> in = device.upload(std::vector<std::uint32_t>{1});
    const std::vector<std::byte> right = parameters(in, in, 1);
    const auto refused = [&](std::string_view entry, const Grid& grid, std::span<const std::byte> parameters) {
        try {
            device.launch(module, entry, grid, parameters);
        } catch (const KernelError&) { return std::string("a kernel error"); } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK_THAT(refused("decrement", grid(1, 1), right), contains("increment.ptx has no entry 'decrement'"));
    CHECK_THAT(refused("increment", grid(1, 1), std::span(right).first(8)),
               contains("takes 20 bytes of parameters, not 8"));
    CHECK_THAT(refused("increment", grid(1, 2000), right), contains("a block of 2000 x 1 x 1 threads"));
    CHECK_THAT(refused("increment", {{1}, {1}, 300000}, right), contains("needs 300000 bytes of shared memory"));
    CHECK_THAT(refused("increment", {{1}, {1}, 200000}, right), contains("this device gives a block at most 166912"));
    const Module large = device.load(
        std::string(increment).insert(std::string_view(increment).find("\t.reg .pred"), "\t.shared .b8 tile[49153];\n"),
        "large.ptx");
    CHECK_THAT(message_of([&] { device.launch(large, "increment", grid(1, 1), right); }),
               contains("kernel 'increment' has 49153 bytes of static shared memory"));
    CHECK(refused("increment", grid(1, 1), right).empty());
}

TEST_CASE("PTX text: the shared memory limit is that of its target if that is newer") {
    const Device device = emulator();
    Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>{1}, "x");
    const auto run = [&](std::string_view target, std::uint32_t shared) {
        std::string text = increment;
        text.replace(text.find("sm_"), text.find('\n', text.find("sm_")) - text.find("sm_"), target);
        text.replace(text.find("7.0"), 3, "7.8");  // which knows all of them
        const Module module = device.load(text, "other.ptx");
        return message_of([&] { device.launch(module, "increment", {{1}, {1}, shared}, parameters(x, x, 1)); });
    };
    CHECK(run("sm_90", 200000).empty());
    CHECK_THAT(run("sm_90", 232449), contains("a block of sm_90 has at most 232448"));
    CHECK_THAT(run("sm_86", 110000), contains("a block of sm_86 has at most 101376"));
    CHECK(run("sm_75", 110000).empty());  // an sm_80 runs it
}

TEST_CASE("PTX text: a block that .maxntid or .reqntid excludes is an error that names both, and nothing runs") {
    const Device device = emulator();
    Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>{1, 2, 3}, "x");
    const auto refused = [&](std::string_view directive, const Grid& grid) {
        std::string text = increment;
        text.insert(text.find("\n{"), directive);
        const Module module = device.load(text, "bounded.ptx");
        try {
            device.launch(module, "increment", grid, parameters(x, x, 3));
        } catch (const KernelError&) { return std::string("a kernel error"); } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK_THAT(refused(" .maxntid 32", grid(3, 33)), contains("a block of 33 threads where .maxntid allows 32"));
    CHECK_THAT(refused(" .maxntid 4, 4, 2", {{1}, {4, 4, 3}}),
               contains("a block of 48 threads where .maxntid allows 32"));
    CHECK_THAT(refused(" .reqntid 32", grid(3, 16)), contains("a block of (16,1,1) where .reqntid demands (32,1,1)"));
    CHECK(x.download() == std::vector<std::uint32_t>{1, 2, 3});
    CHECK(refused(" .maxntid 4, 4, 2", grid(3, 32)).empty());  // what counts is the product
    CHECK(refused(" .reqntid 32", grid(3, 32)).empty());
    CHECK(x.download() == std::vector<std::uint32_t>{3, 4, 5});
}

TEST_CASE("the emulator counts the traffic of each launch on request") {
    std::vector<emulator::LaunchTraffic> traffic;
    const Device device = Device::open({.device = "emulator", .traffic = &traffic});
    const Module module = device.load(increment, "increment.ptx");
    const Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>(96), "x");
    Buffer<std::uint32_t> y = device.buffer<std::uint32_t>(96, "y");
    device.launch(module, "increment", grid(96, 32), parameters(x, y, 96));
    device.launch(module, "increment", grid(8, 32), parameters(x, y, 5));
    REQUIRE(traffic.size() == 2);
    CHECK(traffic[0].entry == "increment");
    REQUIRE(traffic[0].buffers.size() == 2);
    CHECK(traffic[0].buffers[0].name == "x");
    CHECK(traffic[0].buffers[0].read.moved == 384);
    CHECK(traffic[0].buffers[1].written.efficiency() == 1);
    CHECK(traffic[1].buffers[0].read.requested == 20);
    CHECK(traffic[1].buffers[0].read.moved == 32);
}

TEST_CASE("streams do their work in order; events tell when") {
    const Device device = emulator();
    const Module module = device.load(increment, "increment.ptx");
    Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>{1, 2, 3}, "x");
    const Stream stream = device.stream();
    const Event start = stream.record();
    for (int i = 0; i < 3; ++i) stream.launch(module, "increment", grid(3, 32), parameters(x, x, 3));
    const Event stop = stream.record();
    stream.synchronize();
    CHECK(x.download() == std::vector<std::uint32_t>{4, 5, 6});
    CHECK(elapsed_milliseconds(start, stop) > 0);
    CHECK(elapsed_milliseconds(stop, start) < 0);
    const Event elsewhere = emulator().record();
    CHECK_THAT(message_of([&] { elapsed_milliseconds(start, elsewhere); }), contains("different devices"));
}

TEST_CASE("IKAT_EMIT writes the compiler's output for launched kernels") {
    std::string folder = (std::filesystem::temp_directory_path() / "ikat-emit-XXXXXX").string();
    REQUIRE(mkdtemp(folder.data()));
    const auto text = [&](const char* name) {
        std::ostringstream out;
        out << std::ifstream(folder + "/new/" + name).rdbuf();
        return out.str();
    };
    const Device device = Device::open({.device = "emulator"});
    auto y = device.buffer<float>(4);
    const auto first = ikat::kernel("emitted", params("y"), [](Out<float> y) { y[0] = 1; });
    const auto second = ikat::kernel("emitted", params("y"), [](Out<float> y) { y[1] = 2; });
    {
        const Environment emit("IKAT_EMIT", (folder + "/new").c_str());
        device.launch(first, Grid{{1}, {1}}, y);
        device.launch(first, Grid{{2}, {1}}, y);
        device.launch(second, Grid{{1}, {1}}, y);
    }
    CHECK_THAT(text("emitted.ptx"), contains(".visible .entry emitted("));
    CHECK_THAT(text("emitted.ssa.ir"), contains("kernel @emitted("));
    CHECK_THAT(text("emitted.opt.ir"), contains("kernel @emitted("));
    CHECK_THAT(text("emitted.report.txt"), contains("emitted for sm_80"));
    CHECK_THAT(text("emitted.2.ptx"), contains("+4]"));
    CHECK(std::distance(std::filesystem::directory_iterator(folder + "/new"), {}) == 8);
    std::filesystem::remove_all(folder);

    const Environment nowhere("IKAT_EMIT", "/dev/null/x");
    const auto third = ikat::kernel("emitted", params("y"), [](Out<float> y) { y[2] = 3; });
    CHECK_THROWS_WITH(device.launch(third, Grid{{1}, {1}}, y), contains("IKAT_EMIT: the folder '/dev/null/x'"));
}

}  // namespace
}  // namespace ikat::tests
