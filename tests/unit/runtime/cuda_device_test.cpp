// SPDX-License-Identifier: Apache-2.0
// Which driver calls each operation of the CUDA device makes, and how failures are reported.
#include "runtime/cuda/device.hpp"

#include <array>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "runtime/device.hpp"
#include "tests/catch.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"

namespace ikat::tests {
namespace {

using namespace runtime;

template <class T>
std::span<const std::byte> bytes(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

TEST_CASE("a device is opened on its primary context and released at the end") {
    const FakeCuda fake;
    auto device = cuda::open_device(cuda::load_driver(FAKE_CUDA), 0);
    CHECK_THAT(fake.log(), contains("cuDevicePrimaryCtxRetain 40\n"));
    CHECK(device->properties().name == "Fake GPU");
    CHECK(device->properties().target == "sm_90a");
    CHECK(device->properties().multiprocessors == 132);
    CHECK(device->properties().shared_bytes_optin == 232448);
    device = Reference<Backend>();
    CHECK(fake.log() == "cuDevicePrimaryCtxRelease 40\n");
}

TEST_CASE("a missing device is an error") {
    const FakeCuda fake;
    const auto driver = cuda::load_driver(FAKE_CUDA);
    CHECK_THAT(message_of([&] { cuda::open_device(driver, 3); }), contains("there is no CUDA device 3"));
    fake.devices(0);
    CHECK_THAT(message_of([&] { cuda::open_device(driver, 0); }), contains("sees no device"));
}

TEST_CASE("memory: copies go through a stream") {
    const FakeCuda fake;
    const auto device = fake.open();
    const std::array<int, 3> host{1, 2, 3};
    const std::uint64_t address = device->allocate(12, "x");
    device->write(address, std::as_bytes(std::span(host)), default_stream);
    std::array<int, 3> back{};
    device->read(address, std::as_writable_bytes(std::span(back)), default_stream);
    device->release(address);
    CHECK(back == host);
    CHECK(fake.log() == "cuMemAlloc 12\ncuMemcpyHtoDAsync 12 0\ncuMemcpyDtoHAsync 12 0\ncuMemFree\n");
}

TEST_CASE("memory: an empty buffer is one byte that is never copied") {
    const FakeCuda fake;
    const auto device = fake.open();
    const std::uint64_t address = device->allocate(0, "x");
    device->write(address, {}, default_stream);
    device->copy(address, address, 0, default_stream);
    device->fill(address, bytes(1.0f), 0, default_stream);
    CHECK(fake.log() == "cuMemAlloc 1\n");
    device->release(address);
}

TEST_CASE("memory: boxes of two and three dimensions") {
    const FakeCuda fake;
    const auto device = fake.open();
    std::vector<std::uint32_t> host(24), back(8);
    for (std::uint32_t i = 0; i < 24; ++i) host[i] = i;
    const std::uint64_t address = device->allocate(96, "x");
    device->write(address, std::as_bytes(std::span(host)), default_stream);
    fake.log();
    auto* const to = reinterpret_cast<std::byte*>(back.data());
    const RawCopy box{.to = {.host = to, .row_pitch = 8, .plane_pitch = 16},
                      .from = {.address = address, .row_pitch = 16, .plane_pitch = 44},  // not a multiple of a row's
                      .bytes = 8,
                      .rows = 2,
                      .planes = 2};
    device->copy(box, default_stream);
    CHECK(fake.log() == "cuMemcpy3DAsync 8 2 1 0\ncuMemcpy3DAsync 8 2 1 0\n");
    CHECK(back == std::vector<std::uint32_t>{0, 1, 4, 5, 11, 12, 15, 16});
    device->release(address);
}

TEST_CASE("memory of another device is copied by the driver, or through the host") {
    const FakeCuda fake;
    const auto device = fake.open(), other = fake.open();
    const auto emulated = runtime::Device::open({.device = "emulator", .threads = 1});
    const std::uint64_t to = device->allocate(16, "x"), from = other->allocate(16, "y");
    other->fill(from, bytes(5u), 4, default_stream);
    fake.log();
    device->copy({.to = {.address = to}, .from = {.address = from}, .bytes = 16, .source = other.get()},
                 default_stream);
    CHECK(fake.log() == "cuMemcpy3DPeerAsync 16 1 1 0\n");
    std::array<std::uint32_t, 4> back{};
    device->read(to, std::as_writable_bytes(std::span(back)), default_stream);
    CHECK(back == std::array<std::uint32_t, 4>{5, 5, 5, 5});

    const auto x = emulated.upload(std::vector<std::uint32_t>{1, 2, 3, 4});
    device->copy({.to = {.address = to}, .from = {.address = x.address()}, .bytes = 16, .source = &emulated.backend()},
                 default_stream);
    device->read(to, std::as_writable_bytes(std::span(back)), default_stream);
    CHECK(back == std::array<std::uint32_t, 4>{1, 2, 3, 4});
    device->release(to);
    other->release(from);
}

TEST_CASE("peer access is asked of the driver, once and in one direction") {
    const FakeCuda fake;
    fake.devices(3);
    const auto first = fake.open(0);
    fake.devices(3);
    const auto second = fake.open(1);
    fake.devices(3);
    const auto far = fake.open(2);
    CHECK((first->can_access_peer(*second) && !first->can_access_peer(*far)));
    CHECK(fake.log() == "cuDeviceCanAccessPeer 40 41\ncuDeviceCanAccessPeer 40 42\n");
    CHECK_FALSE(first->has_peer_access(*second));
    first->set_peer_access(*second, true);
    CHECK(fake.log() ==
          "cuDeviceCanAccessPeer 40 41\ncuCtxEnablePeerAccess 0\ncuDeviceGetMemPool 41\ncuMemPoolSetAccess 41 1 1 40 "
          "3\n");
    CHECK((first->has_peer_access(*second) && !second->has_peer_access(*first) && !first->has_peer_access(*far)));
    first->set_peer_access(*second, false);
    CHECK(fake.log() == "cuCtxDisablePeerAccess\ncuDeviceGetMemPool 41\ncuMemPoolSetAccess 41 1 1 40 0\n");
    CHECK_FALSE(first->has_peer_access(*second));
    fake.fail("cuDeviceGetMemPool", 801);  // a device without pools
    first->set_peer_access(*second, true);
    first->set_peer_access(*second, false);

    fake.fail("cuCtxEnablePeerAccess", 704);  // another user of the context was first
    first->set_peer_access(*second, true);
    CHECK(first->has_peer_access(*second));
    fake.fail("cuCtxDisablePeerAccess", 705);
    first->set_peer_access(*second, false);
    CHECK_FALSE(first->has_peer_access(*second));
    fake.fail("cuCtxEnablePeerAccess", 711);
    CHECK_THAT(message_of([&] { first->set_peer_access(*second, true); }), contains("cuCtxEnablePeerAccess failed"));
    CHECK_FALSE(first->has_peer_access(*second));
    CHECK_THAT(message_of([&] { first->set_peer_access(*far, true); }),
               contains("kernels of cuda:0 cannot reach memory of cuda:2"));
    const auto emulated = runtime::Device::open({.device = "emulator", .threads = 1});
    CHECK_FALSE(first->can_access_peer(emulated.backend()));
    CHECK_THAT(message_of([&] { first->set_peer_access(emulated.backend(), true); }),
               contains("cannot reach memory of"));
    CHECK_THAT(message_of([&] { emulated.backend().set_peer_access(*first, true); }),
               contains("cannot reach memory of"));
}

TEST_CASE("devices that are opened on one GPU share its context, and what it reaches") {
    const FakeCuda fake;
    fake.devices(2);
    auto first = fake.open(0);
    fake.devices(2);
    const auto again = fake.open(0);
    fake.devices(2);
    auto second = fake.open(1);
    CHECK((first->can_access_peer(*again) && first->has_peer_access(*again)));
    first->set_peer_access(*again, true);
    CHECK(fake.log() == "");
    first->set_peer_access(*second, true);
    CHECK(again->has_peer_access(*second));
    first = {};
    CHECK(again->has_peer_access(*second));  // the context goes on
    again->set_peer_access(*second, false);
    CHECK_FALSE(again->has_peer_access(*second));
    again->set_peer_access(*second, true);
    second = {};
    fake.devices(2);
    second = fake.open(1);
    CHECK_FALSE(again->has_peer_access(*second));  // the other context is a new one
}

TEST_CASE("a context is left if its device cannot be opened") {
    const FakeCuda fake;
    fake.fail("cuCtxGetStreamPriorityRange", 1);
    CHECK_THAT(message_of([&] { fake.open(); }), contains("cuCtxGetStreamPriorityRange failed"));
    CHECK_THAT(fake.log(), contains("cuDevicePrimaryCtxRelease 40"));
}

TEST_CASE("memory in the order of a stream, and of a driver that has none") {
    const FakeCuda fake;
    const auto device = fake.open();
    const StreamHandle stream = device->create_stream();
    const std::string on = std::to_string(std::uint64_t(stream));
    fake.log();
    device->release(device->allocate(0, "x", stream), stream);
    CHECK(fake.log() == "cuMemAllocAsync 1 " + on + "\ncuMemFreeAsync " + on + "\n");
    fake.fail("cuMemAllocAsync", 2);
    CHECK_THAT(message_of([&] { device->allocate(8, "x", stream); }),
               contains("no device memory for the 8 bytes of buffer 'x'"));

    auto older = std::make_shared<runtime::cuda::Driver>(*runtime::cuda::load_driver(FAKE_CUDA));
    older->cuMemAllocAsync = nullptr, older->cuMemFreeAsync = nullptr;
    const auto old_device = runtime::cuda::open_device(older, 0);
    fake.log();
    old_device->release(old_device->allocate(8, "x", stream), stream);
    CHECK(fake.log() == "cuMemAlloc 8\ncuStreamSynchronize " + on + "\ncuMemFree\n");
    device->destroy_stream(stream);
}

TEST_CASE("functions that a stream calls, and what they throw") {
    const FakeCuda fake;
    const auto device = fake.open();
    struct Failing final : HostFunction {
        void operator()() const override { throw std::runtime_error("from the program"); }
    };
    device->call(make_reference<Failing>(), default_stream);
    CHECK_THROWS_WITH(device->synchronize(default_stream), "from the program");
    device->synchronize(default_stream);  // it is told once
    fake.fail("cuLaunchHostFunc", 700);
    CHECK_THROWS_AS(device->call(make_reference<Failing>(), default_stream), Error);
}

TEST_CASE("memory: elements of each size are filled") {
    const FakeCuda fake;
    const auto device = fake.open();
    std::array<std::uint64_t, 5> back{};
    const std::uint64_t address = device->allocate(sizeof back, "x");
    fake.log();
    const auto read = [&] { device->read(address, std::as_writable_bytes(std::span(back)), default_stream); };

    device->fill(address, bytes(std::uint8_t{7}), 40, default_stream);
    CHECK(fake.log() == "cuMemsetD8Async 7 40 0\n");
    device->fill(address, bytes(std::uint16_t{300}), 20, default_stream);
    CHECK(fake.log() == "cuMemsetD16Async 300 20 0\n");
    device->fill(address, bytes(70000u), 10, default_stream);
    CHECK(fake.log() == "cuMemsetD32Async 70000 10 0\n");
    device->fill(address, bytes(std::uint64_t{0x123456789abcdef0}), 5, default_stream);
    CHECK(fake.log() ==
          "cuMemcpyHtoDAsync 8 0\ncuMemcpyDtoDAsync 8 0\ncuMemcpyDtoDAsync 16 0\ncuMemcpyDtoDAsync 8 0\n");
    read();
    for (const std::uint64_t word : back) CHECK(word == 0x123456789abcdef0);
    device->release(address);
}

/// The streams that the logged calls are on, each once.
std::set<unsigned long long> streams_of(const std::string& log) {
    std::set<unsigned long long> out;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string symbol;
        words >> symbol;
        std::vector<unsigned long long> numbers;
        const bool has_stream = symbol.starts_with("cuMem") || symbol == "cuLaunchKernel" ||
                                symbol == "cuStreamSynchronize" || symbol == "cuEventRecord" ||
                                symbol == "cuStreamWaitEvent" || symbol == "cuLaunchHostFunc";
        if (!has_stream) continue;
        for (std::string word; words >> word && numbers.size() < 8;) numbers.push_back(std::stoull(word));
        out.insert(numbers.back());
    }
    return out;
}

TEST_CASE("every call of an operation carries its stream") {
    const FakeCuda fake;
    const auto device = fake.open();
    std::array<std::uint64_t, 5> back{};
    const std::uint64_t address = device->allocate(sizeof back, "x");
    const StreamHandle stream = device->create_stream();
    const ModuleHandle module = device->load({"text", "a.ptx"});
    const std::array<std::uint8_t, 4> parameters{1, 2, 0xab, 0};
    const auto of = [&](auto&& operation) {
        fake.log();
        operation();
        return streams_of(fake.log());
    };
    const std::set<unsigned long long> own{std::uint64_t(stream)};
    CHECK(of([&] { device->write(address, bytes(back), stream); }) == own);
    CHECK(of([&] { device->read(address, std::as_writable_bytes(std::span(back)), stream); }) == own);
    CHECK(of([&] { device->copy(address, address + 8, 8, stream); }) == own);
    CHECK(of([&] { device->fill(address, bytes(std::uint8_t{1}), 40, stream); }) == own);
    CHECK(of([&] { device->fill(address, bytes(std::uint16_t{1}), 20, stream); }) == own);
    CHECK(of([&] { device->fill(address, bytes(1u), 10, stream); }) == own);
    CHECK(of([&] { device->fill(address, bytes(std::uint64_t{1}), 5, stream); }) == own);
    CHECK(of([&] {
              device->launch(module, {"add", {{1}, {1}}, std::as_bytes(std::span(parameters))}, stream);
          }) == own);
    CHECK(of([&] { device->launch(module, {"add", {{1}, {1}, 100000}}, stream); }) == own);
    const EventHandle event = device->create_event();
    CHECK(of([&] { device->record(event, stream); }) == own);
    CHECK(of([&] { device->wait(event, stream); }) == own);
    device->destroy_event(event);
    CHECK(of([&] { device->release(device->allocate(16, "y", stream), stream); }) == own);
    const RawCopy box{.to = {.address = address + 20, .row_pitch = 8},
                      .from = {.address = address, .row_pitch = 8},
                      .bytes = 4,
                      .rows = 2};
    CHECK(of([&] { device->copy(box, stream); }) == own);
    CHECK(of([&] { device->synchronize(stream); }) == own);
    device->destroy_stream(stream);
    device->unload(module);
    device->release(address);
}

TEST_CASE("variables of a module are written as a whole") {
    const FakeCuda fake;
    const auto device = fake.open();
    const ModuleHandle module = device->load({"text", "a.ptx"});
    fake.log();
    const std::array<std::uint32_t, 4> table{1, 2, 3, 4};
    device->set_variable(module, "table", bytes(table));
    CHECK(fake.log() == "cuModuleGetGlobal table\ncuMemcpyHtoDAsync 16 0\ncuCtxSynchronize\n");
    CHECK_THAT(message_of([&] { device->set_variable(module, "table", bytes(1u)); }),
               contains("variable 'table' has 16 bytes, not 4"));
    fake.fail("cuModuleGetGlobal", 500);
    CHECK_THAT(message_of([&] { device->set_variable(module, "none", bytes(1u)); }),
               contains("the PTX has no variable 'none'"));
    device->unload(module);
}

TEST_CASE("memory: running out is an error that names the buffer") {
    const FakeCuda fake;
    const auto device = fake.open();
    fake.fail("cuMemAlloc", 2);
    CHECK_THAT(message_of([&] { device->allocate(99, "weights"); }),
               contains("no device memory for the 99 bytes of buffer 'weights'"));
}

TEST_CASE("launch: parameters are passed as one block of bytes") {
    const FakeCuda fake;
    const auto device = fake.open();
    const ModuleHandle module = device->load({"text", "a.ptx"});
    CHECK(fake.log() == "cuModuleLoadDataEx 4 2\n");
    const std::array<std::uint8_t, 4> parameters{1, 2, 0xab, 0};
    device->launch(module, {"add", {{2, 3, 4}, {32, 2, 1}, 16}, std::as_bytes(std::span(parameters))}, default_stream);
    CHECK(fake.log() == "cuModuleGetFunction add\ncuFuncGetAttribute 1\ncuLaunchKernel 2 3 4 32 2 1 16 0 0102ab00\n");
    device->launch(module, {"add", {{1}, {1}}}, default_stream);
    CHECK(fake.log() == "cuLaunchKernel 1 1 1 1 1 1 0 0\n");  // the entry is known
    device->unload(module);
    CHECK(fake.log() == "cuCtxSynchronize\ncuModuleUnload\n");  // it may be running
}

TEST_CASE("launch: one that may begin early says so to the driver") {
    const FakeCuda fake;
    const auto device = fake.open();
    const ModuleHandle module = device->load({"text", "a.ptx"});
    const std::array<std::uint8_t, 4> parameters{1, 2, 0xab, 0};
    fake.log();
    device->launch(module,
                   {.entry = "add",
                    .grid = {{2, 3, 4}, {32, 2, 1}, 16},
                    .parameters = std::as_bytes(std::span(parameters)),
                    .begins_early = true},
                   default_stream);
    CHECK(fake.log() ==
          "cuModuleGetFunction add\ncuFuncGetAttribute 1\n"
          "cuLaunchKernelEx 2 3 4 32 2 1 16 0 attribute 6 = 1 0102ab00\n");
    device->unload(module);
}

TEST_CASE("launch: parameters that are aligned to more than 16 bytes are passed one by one") {
    const FakeCuda fake;
    const auto device = fake.open();
    const char* const ptx =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry add(.param .u32 n, .param\t.align  64 .b8 map[128], .param .u64 p) { ret; }\n"
        ".visible .entry none() { ret; }\n";
    const ModuleHandle module = device->load({ptx, "a.ptx"});
    std::array<std::uint8_t, 200> parameters{};
    parameters[0] = 1, parameters[64] = 2, parameters[192] = 3;
    fake.log();
    device->launch(module, {"add", {{1}, {1}}, std::as_bytes(std::span(parameters))}, default_stream);
    CHECK_THAT(fake.log(), contains("cuLaunchKernel 1 1 1 1 1 1 0 0 parameters 1 2 3\n"));
    device->launch(module, {"none", {{1}, {1}}}, default_stream);
    CHECK_THAT(fake.log(), contains("cuLaunchKernel 1 1 1 1 1 1 0 0\n"));
    CHECK_THAT(
        message_of([&] {
            device->launch(module, {"add", {{1}, {1}}, std::as_bytes(std::span(parameters)).first(72)}, default_stream);
        }),
        contains("entry 'add' takes 200 bytes of parameters, not 72"));
    CHECK_THAT(fake.log(), !contains("cuLaunchKernel"));
    device->unload(module);
}

TEST_CASE("launch: large dynamic shared memory is asked for first, too much is refused") {
    const FakeCuda fake;
    const auto device = fake.open();
    const ModuleHandle module = device->load({"text", "a.ptx"});
    fake.log();
    // The fake's functions have 1024 bytes of static shared memory.
    device->launch(module, {"add", {{1}, {32}, 48128}}, default_stream);
    CHECK_THAT(fake.log(), !contains("cuFuncSetAttribute"));
    device->launch(module, {"add", {{1}, {32}, 48129}}, default_stream);
    CHECK_THAT(fake.log(), contains("cuFuncSetAttribute 8 231424\ncuLaunchKernel 1 1 1 32 1 1 48129 0"));
    device->launch(module, {"add", {{1}, {32}, 48129}}, default_stream);
    CHECK_THAT(fake.log(), !contains("cuFuncSetAttribute"));
    CHECK_THAT(message_of([&] {
                   device->launch(module, {"add", {{1}, {32}, 231425}}, default_stream);
               }),
               contains("needs 232449 bytes of shared memory per block (1024 static, 231425 dynamic)"));
    CHECK_THAT(fake.log(), !contains("cuLaunchKernel"));
    device->unload(module);
}

TEST_CASE("launch: a missing entry") {
    const FakeCuda fake;
    const auto device = fake.open();
    const ModuleHandle module = device->load({"text", "a.ptx"});
    fake.fail("cuModuleGetFunction", 500);
    CHECK_THAT(message_of([&] { device->launch(module, {"add", {}}, default_stream); }), contains("no entry 'add'"));
    device->unload(module);
}

TEST_CASE("launch: a failed kernel is reported where the host waits, by name") {
    const FakeCuda fake;
    const auto device = fake.open();
    const ModuleHandle module = device->load({"text", "a.ptx"});
    device->launch(module, {"add", {}}, default_stream);
    fake.fail("cuCtxSynchronize", 700);
    const std::string message = message_of([&] { device->synchronize(default_stream); });
    CHECK_THAT(message, contains("kernel 'add', launched last, failed: CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK_THAT(message, contains("IKAT_DEVICE=emulator"));
    CHECK_THROWS_AS(device->synchronize(default_stream), KernelError);
    device->unload(module);
}

TEST_CASE("PTX that the driver rejects: its log, our line and the kernel's line") {
    const FakeCuda fake;
    const auto device = fake.open();
    fake.jit_log("ptxas application ptx input, line 2; error   : Unknown symbol 'oops'\nptxas fatal   : aborted\n");
    const PtxText text{"first\n  add oops;\nlast\n", "saxpy.ptx", {{}, {}, {"saxpy.cpp", 17}}};
    const std::string message = message_of([&] { device->load(text); });
    CHECK(message ==
          "saxpy.ptx:2: error: the CUDA driver rejects this PTX: CUDA_ERROR_INVALID_PTX (the fake says so)\n"
          "      add oops;\n"
          "    ^\n"
          "saxpy.cpp:17: note: the PTX comes from this line of the kernel\n"
          "note: the driver's log:\n"
          "ptxas application ptx input, line 2; error   : Unknown symbol 'oops'\n"
          "ptxas fatal   : aborted");
}

TEST_CASE("PTX of a version that the driver is too old for") {
    const FakeCuda fake;
    const auto device = fake.open();
    fake.fail("cuModuleLoadDataEx", 222);
    CHECK_THAT(message_of([&] { device->load({"text", "a.ptx"}); }), contains("older than the PTX's .version"));
}

TEST_CASE("streams and events") {
    const FakeCuda fake;
    const auto device = fake.open();
    const StreamHandle stream = device->create_stream();
    CHECK(fake.log() == "cuStreamCreateWithPriority 0 0\n");
    const EventHandle start = device->create_event(), stop = device->create_event();
    device->record(start, stream);
    device->record(stop, stream);
    const std::string on = std::to_string(std::uint64_t(stream));
    CHECK(fake.log() == "cuEventCreate 0\ncuEventCreate 0\ncuEventRecord " + on + "\ncuEventRecord " + on + "\n");
    device->wait(start, stream);
    CHECK(fake.log() == "cuStreamWaitEvent 0 " + on + "\n");
    CHECK(device->milliseconds(start, stop) == 1.5);
    CHECK(fake.log() == "cuEventSynchronize\ncuEventElapsedTime\n");
    CHECK(device->query(stop));
    CHECK(fake.log() == "cuEventQuery\n");
    device->synchronize(stream);
    CHECK(fake.log() == "cuStreamSynchronize " + on + "\n");
    device->synchronize(default_stream);
    CHECK(fake.log() == "cuCtxSynchronize\n");  // for all streams
    device->destroy_event(start);
    device->destroy_event(stop);
    device->destroy_stream(stream);
    CHECK(fake.log() == "cuEventDestroy\ncuEventDestroy\ncuStreamDestroy\n");
}

}  // namespace
}  // namespace ikat::tests
