// SPDX-License-Identifier: Apache-2.0
// Devices as programs use them, on the emulator and on the fake CUDA driver.
#include "runtime/device.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "codegen/pipeline/compile.hpp"
#include "dsl/kernel/kernel.hpp"
#include "tests/catch.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"
#include "tests/unit/runtime/emulator.hpp"
#include "tests/unit/runtime/increment.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;

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
    const std::string here = std::string(__FILE__) + ":" + std::to_string(__LINE__ + 1) + ":";
    const std::string message = message_of([] { Device::open({.device = "tpu"}); });
    CHECK_THAT(message, Catch::Matchers::StartsWith(here) && contains("there is no device 'tpu'"));
    CHECK(message_of([] { Device::open({.device = "tpu"}, Location{}); }).starts_with("error: there is no device"));
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

TEST_CASE("how many devices there are, and whether there probably is a GPU") {
    const Environment visible("CUDA_VISIBLE_DEVICES", nullptr), device("IKAT_DEVICE", nullptr);
    {
        const Environment driver("IKAT_CUDA_DRIVER", FAKE_CUDA);
        CHECK((Device::count("cuda") > 0 && Device::is_available("cuda") && Device::count() == Device::count("cuda")));
        CHECK(cuda_likely_available());
        for (const char* const none : {"", "-1", "NoDevFiles"}) {
            const Environment hidden("CUDA_VISIBLE_DEVICES", none);
            CHECK(!cuda_likely_available());
        }
        const Environment emulated("IKAT_DEVICE", "emulator");
        CHECK(Device::count() == 1);
    }
    const Environment driver("IKAT_CUDA_DRIVER", "/nowhere/libcuda.so.1");
    CHECK((!cuda_likely_available() && Device::count("cuda") == 0 && !Device::is_available("cuda")));
    CHECK((Device::count() == 1 && Device::count("emulator") == 1));  // open() takes the emulator
    CHECK_THAT(message_of([] { Device::count("gpu"); }), contains("there is no device 'gpu'"));
    const Environment wrong("IKAT_DEVICE", "gpu");
    CHECK_THAT(message_of([] { Device::count(); }), contains("there is no device 'gpu' (from IKAT_DEVICE)"));
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
