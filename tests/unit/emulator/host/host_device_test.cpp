// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/host_device.hpp"

#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "tests/message.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using namespace ikat::emulator;
using tests::contains;
using tests::message_of;

namespace {

using Words = std::vector<std::uint32_t>;

HostOptions one_thread() {
    HostOptions options;
    options.warning = [](const Diagnostic&) {};
    options.idle = std::chrono::minutes(1);
    return options;
}
HostOptions impatient() {
    HostOptions options = one_thread();
    options.idle = std::chrono::milliseconds(1);
    return options;
}

/// A device with one context and one stream.
struct Host {
    HostDevice device;
    explicit Host(HostOptions options = one_thread()) : device(std::move(options), Origin::Foreign) {}

    ContextId context = device.create_context();
    StreamId stream = device.create_stream({.context = context});

    std::shared_ptr<LoadedModule> load(std::string_view body, std::string_view scope = "") {
        return device.find(
            device.load(context, {.module = ptx::parse(tests::kernel(body, scope), "k.ptx"), .name = "k.ptx"}));
    }
    work::Launch launch(const std::shared_ptr<LoadedModule>& module, std::uint64_t p0 = 0) {
        const std::uint64_t parameters[4] = {p0};
        return {module, context, {.entry = "k", .parameters = std::as_bytes(std::span(parameters)).first(28)}};
    }
    std::uint64_t words(const Words& values) {
        const std::uint64_t address = device.memory().allocate(context, 4 * values.size(), "words");
        device.run(stream, work::Copy{work::on_device(address), work::on_host(values.data()), 4 * values.size()});
        return address;
    }
    Words get(std::uint64_t address, std::size_t count) {
        Words out(count);
        device.run(stream, work::Copy{work::on_host(out.data()), work::on_device(address), 4 * count});
        return out;
    }
};

constexpr std::string_view increment =
    "ld.param.u64 %d1, [p0]; ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1; ret;";

}  // namespace

TEST_CASE("copies, boxes of rows, fills and launches are work of a stream") {
    Host host;
    Words numbers(16);
    std::iota(numbers.begin(), numbers.end(), 0u);
    const auto x = host.words(numbers), y = host.words(Words(8));
    // Two planes of two rows of two words each, of 4 x 4.
    host.device.run(host.stream, work::Copy{.to = work::on_device(y),
                                            .from = work::on_device(x + 4),
                                            .bytes = 8,
                                            .rows = 2,
                                            .planes = 2,
                                            .to_pitch = {8, 16},
                                            .from_pitch = {16, 32}});
    CHECK(host.get(y, 8) == Words{1, 2, 5, 6, 9, 10, 13, 14});
    std::vector<std::byte> seven(4);
    seven[0] = std::byte{7};
    host.device.run(host.stream, work::Fill{y, seven, 1, 2, 16});
    host.device.run(host.stream, host.launch(host.load(increment), y + 4));
    CHECK(host.get(y, 8) == Words{7, 3, 5, 6, 7, 10, 13, 14});
    Words on_host(2);
    host.device.run(host.stream, work::Copy{work::on_host(on_host.data()), work::on_host(&numbers[3]), 8});
    CHECK(on_host == Words{3, 4});
}

TEST_CASE("what goes wrong is thrown where it is waited for, once") {
    Host host;
    const StreamId other = host.device.create_stream({.context = host.context});
    const auto module = host.load(increment);
    CHECK_THAT(message_of([&] { host.device.run(host.stream, host.launch(module)); }),
               contains("null pointer") && contains("in kernel 'k'; IKAT_SCHEDULE="));
    host.device.enqueue(host.stream, host.launch(module));
    const auto x = host.words({41});  // the work after it is done
    host.device.enqueue(host.stream, host.launch(module, x));
    host.device.finish(other);
    CHECK_THAT(message_of([&] { host.device.finish(host.stream); }), contains("null pointer"));
    host.device.finish(host.stream);
    CHECK(host.get(x, 1) == Words{42});
    host.device.enqueue(other, host.launch(module));
    CHECK_THROWS_AS(host.device.finish(), KernelFailure);
    host.device.finish();
    host.device.enqueue(host.stream, work::HostCall{[] { throw std::runtime_error("of the program"); }});
    host.device.enqueue(other, host.launch(module));
    CHECK_THROWS_AS(host.device.finish(), KernelFailure);
    CHECK_THROWS_WITH(host.device.finish(), "of the program");  // not lost
    host.device.finish();
    host.device.enqueue(other, host.launch(module));
    CHECK(host.device.destroy(other));
    CHECK_THROWS_AS(host.device.finish(), KernelFailure);  // also where nobody has the stream any longer
    host.device.enqueue(host.stream, host.launch(module));
    host.device.end(host.context);
    host.device.finish();
}

TEST_CASE("work that is enqueued is done when somebody waits for it, asks, or does nothing for a while") {
    Host host;
    const auto module = host.load(increment);
    const auto x = host.words({0});
    const EventId event = host.device.create_event({.context = host.context});
    host.device.enqueue(host.stream, host.launch(module, x));
    host.device.enqueue(host.stream, host.launch(module, x));
    CHECK(!host.device.is_idle(host.stream));
    host.device.enqueue(host.stream, work::Record{event});
    CHECK((!host.device.query(event) && !host.device.query(event) && host.device.query(event)));
    CHECK((host.device.is_idle(host.stream) && host.get(x, 1) == Words{2}));
    host.device.enqueue(host.stream, host.launch(module, x));
    host.device.drain();
    CHECK(host.device.is_idle(host.stream));
    {
        Host idle(impatient());
        const auto y = idle.words({0});
        for (int i = 0; i < 5; ++i) idle.device.enqueue(idle.stream, idle.launch(idle.load(increment), y));
        while (!idle.device.is_idle(idle.stream)) std::this_thread::yield();  // is_idle() does no work
        CHECK(idle.get(y, 1) == Words{5});
    }
    // What would be too much at once.
    for (int i = 0; i < 1024; ++i) host.device.enqueue(host.stream, host.launch(module, x));
    CHECK(host.device.is_idle(host.stream));
    CHECK(host.get(x, 1) == Words{1027});
    host.device.enqueue(host.stream, work::Free{x, 4});
    host.device.finish(event);
    host.device.finish(host.stream);
    CHECK(host.device.memory().buffer(x).bytes == 0);
}

TEST_CASE("launches of one device run one at a time") {
    Host host;
    const auto module = host.load(
        "ld.param.u64 %d1, [p0]; mov.u32 %r2, 10000;\n"
        "again: ld.volatile.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1; st.volatile.global.u32 [%d1], %r1;\n"
        "sub.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra again; ret;");
    const auto x = host.words({0});
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                const StreamId own = host.device.create_stream({.context = host.context});
                for (int i = 0; i < 10; ++i) host.device.run(own, host.launch(module, x));
            });
    }
    CHECK(host.get(x, 1) == Words{400000});
}

TEST_CASE("a context's end frees what is its own, and nothing else") {
    Host host;
    HostDevice& device = host.device;
    OwnedMemory& memory = device.memory();
    const ContextId other = device.create_context();
    const auto kept = memory.allocate(host.context, 100), gone = memory.allocate(other, 50),
               managed = memory.allocate_managed(other, 25), pinned = memory.allocate_pinned(other, 10, 3);
    CHECK(memory.used_bytes() == 175);
    CHECK((memory.buffer(managed + 5).is_managed && !memory.buffer(gone).is_managed));
    CHECK((memory.buffer(gone + 49).context == other && memory.buffer(kept).context == host.context));
    CHECK(memory.pinned(pinned + 9)->flags == 3);
    const StreamId stream = device.create_stream({.context = other, .waits_for_default = false, .priority = -2});
    const EventId event = device.create_event({.context = other});
    const ModuleId module = device.load(other, {.module = ptx::parse(tests::kernel("ret;"), "k.ptx")});
    const ModuleId library = device.load({}, {.module = ptx::parse(tests::kernel("ret;"), "k.ptx")});
    CHECK((!device.find(stream)->waits_for_default && device.find(stream)->priority == -2));
    const std::shared_ptr<LoadedModule> used = device.find(module);
    device.end(other);
    CHECK((!device.is_alive(other) && device.is_alive(host.context)));
    CHECK((!device.find(stream) && !device.find(event) && !device.find(module) && device.find(library)));
    CHECK((memory.used_bytes() == 100 && !memory.release(gone) && !memory.pinned(pinned)));
    CHECK(used->program().entries() == std::vector<std::string>{"k"});  // whoever has it keeps it
    CHECK(device.find(host.stream));
    CHECK(!memory.release(kept + 4));
    CHECK(memory.release(kept));
    CHECK(!memory.release(kept));
    CHECK(memory.used_bytes() == 0);
}

TEST_CASE("the primary context lives as long as somebody uses it") {
    HostDevice device(one_thread(), Origin::Own);
    const ContextId primary = device.primary();
    CHECK((!device.is_alive(primary) && !device.release_primary()));
    device.retain_primary();
    device.retain_primary();
    const auto x = device.memory().allocate(primary, 16);
    CHECK((device.release_primary() && device.is_alive(primary) && device.memory().buffer(x).bytes == 16));
    CHECK((device.release_primary() && !device.is_alive(primary) && device.memory().buffer(x).bytes == 0));
    device.retain_primary();
    CHECK(device.is_alive(primary));
}

TEST_CASE("names are given once") {
    HostDevice device(one_thread(), Origin::Own);
    const ContextId context = device.create_context();
    const StreamId stream = device.create_stream({.context = context});
    CHECK(device.destroy(stream));
    CHECK(!device.destroy(stream));
    CHECK(std::uint64_t(device.create_stream({.context = context})) > std::uint64_t(stream));
    CHECK(!device.destroy(EventId(std::uint64_t(stream))));
    CHECK(std::uint64_t(context) > 65535);
}

TEST_CASE("a device has no more memory than it is said to have") {
    HostDevice device(one_thread(), Origin::Own, 1000);
    const ContextId context = device.create_context();
    const auto x = device.memory().allocate(context, 900, "x");
    CHECK_THAT(message_of([&] { device.memory().allocate(context, 101, "y"); }),
               contains("no device memory for the 101 bytes of buffer 'y'") && contains("900 of 1000 bytes"));
    CHECK(device.memory().release(x));
    CHECK(device.memory().allocate_managed(context, 1000) != 0);
}

TEST_CASE("memory whose address is reserved comes and goes there") {
    HostDevice device(one_thread(), Origin::Own, 1000);
    OwnedMemory& memory = device.memory();
    const ContextId context = device.create_context();
    const auto x = memory.reserve(context, 900, "x"), other = memory.reserve(context, 200, "other");
    CHECK((memory.used_bytes() == 0 && memory.buffer(x).bytes == 0 && !memory.release(x)));
    for (int round = 0; round < 2; ++round) {
        device.run(default_stream, work::Allocate{x, 900});
        memory.begin(x);  // it is there
        CHECK((memory.used_bytes() == 900 && memory.buffer(x).context == context));
        CHECK(memory.space().unwritten(x, 900).count == 900);  // it is fresh
        device.run(default_stream, work::Fill{x, {std::byte{1}}, 900});
        CHECK_THAT(message_of([&] { memory.begin(other); }), contains("no device memory for the 200 bytes"));
        device.run(default_stream, work::Free{x, 900});
        CHECK((memory.used_bytes() == 0 && !memory.release(x)));
    }
    for (int i = 0; i < 2000; ++i) CHECK(memory.release(memory.allocate(context, 16)));  // no other gets the address
    memory.begin(x);
    memory.give_back(x);
    CHECK(memory.buffer(x).bytes == 900);  // an ordinary one now
    CHECK(memory.release(x));
    memory.begin(x);
    CHECK(memory.buffer(x).bytes == 0);
    memory.begin(other);
    device.end(context);
    CHECK((memory.used_bytes() == 0 && memory.buffer(other).bytes == 0));
}

TEST_CASE("host memory is registered once, and reached by the kernel") {
    Host host;
    std::vector<std::uint32_t> memory(3000);
    OwnedMemory& its = host.device.memory();
    CHECK(its.register_pinned(host.context, &memory[3], 4 * 2000, 0));
    CHECK(!its.register_pinned(host.context, &memory[10], 8, 0));
    CHECK(!its.register_pinned(host.context, &memory[0], 16, 0));
    CHECK(its.register_pinned(host.context, &memory[2003], 8, 0));
    CHECK((!its.pinned(reinterpret_cast<std::uintptr_t>(&memory[2])) && !its.release_pinned(&memory[4], true)));
    const PinnedRange range = its.pinned(reinterpret_cast<std::uintptr_t>(&memory[2002])).value();
    host.device.run(host.stream, host.launch(host.load(increment), range.device + 4 * 1999));
    CHECK((memory[2002] == 1 && memory[2001] == 0));
    CHECK((!its.release_pinned(&memory[3], false) && its.release_pinned(&memory[3], true)));
    CHECK(!its.pinned(range.begin));
}

TEST_CASE("kernels have the heap of their context") {
    Host host;
    const auto module = host.load(
        "ld.param.u64 %d1, [p0]; { .param .b64 n; .param .b64 r; st.param.b64 [n], 12582912;"
        "call.uni (r), malloc, (n); ld.param.b64 %d2, [r]; } st.global.u64 [%d1], %d2; ret;",
        ".extern .func (.param .b64 r) malloc(.param .b64 n);");
    const auto x = host.words({0, 0});
    const auto allocates = [&](ContextId context) {
        work::Launch launch = host.launch(module, x);
        launch.context = context;
        host.device.run(host.stream, launch);
        return host.get(x, 2) != Words{0, 0};
    };
    const ContextId large = host.device.create_context();
    host.device.set_heap_bytes(large, 64 << 20);
    CHECK(!allocates(host.context));
    CHECK(allocates(large));
    CHECK(!allocates(host.context));
}

TEST_CASE("variables are written by name, or where the host sees them") {
    Host host;
    const auto module = host.load(
        "ld.param.u64 %d1, [p0]; ld.const.u32 %r1, [c]; ld.global.u32 %r2, [g]; add.u32 %r1, %r1, %r2;"
        "st.global.u32 [%d1], %r1; ret;",
        ".const .u32 c = 40; .global .u32 g = 2;");
    const auto x = host.words({0});
    const auto sum = [&] {
        host.device.run(host.stream, host.launch(module, x));
        return host.get(x, 1)[0];
    };
    CHECK(sum() == 42);
    const std::uint32_t three = 3, hundred = 100;
    const auto bytes = std::as_bytes(std::span(&three, 1));
    host.device.run(host.stream, work::SetVariable{module, "g", {bytes.begin(), bytes.end()}});
    CHECK(sum() == 43);
    const Program::Variable c = module->variable("c");
    CHECK((c.bytes == 4 && host.get(c.address, 1) == Words{40} && module->variable("c").address == c.address));
    host.device.run(host.stream, work::Copy{work::on_device(c.address), work::on_host(&hundred), 4});
    CHECK(sum() == 103);
}

TEST_CASE("calls of the host have a thread of their own, and hold up their stream alone") {
    Host host;
    const StreamId other = host.device.create_stream({.context = host.context});
    const EventId event = host.device.create_event({.context = host.context});
    std::atomic<bool> may_end = false;
    std::string refused;
    std::thread::id thread;
    host.device.enqueue(host.stream, work::HostCall{[&] {
                            thread = std::this_thread::get_id();
                            refused = message_of([&] { host.device.finish(other); });
                            may_end.wait(false);
                        }});
    CHECK(!host.device.is_idle(host.stream));
    host.device.run(other, work::Record{event});
    CHECK(host.device.find(event)->time.has_value());
    CHECK(host.device.is_idle(other));
    std::vector<int> order;
    std::jthread waits([&] {
        host.device.run(host.stream, work::Wait{event});
        order.push_back(2);
    });
    order.push_back(1);
    may_end = true;
    may_end.notify_all();
    waits.join();
    CHECK(order == std::vector{1, 2});
    host.device.enqueue(host.stream, work::HostCall{[&] { order.push_back(3); }});
    host.device.finish(host.stream);
    CHECK((order.back() == 3 && host.device.is_idle(host.stream)));
    CHECK(thread != std::this_thread::get_id());
    CHECK_THAT(refused, contains("waits for the device"));
    CHECK(!host.device.is_host_call());
    // The device ends when its calls have.
    std::atomic<int> called = 0;
    {
        HostDevice ends(one_thread(), Origin::Own);
        for (int i = 0; i < 3; ++i) ends.enqueue(default_stream, work::HostCall{[&] { ++called; }});
    }
    CHECK(called == 3);
}

TEST_CASE("two devices have no address in common") {
    Host ours, theirs;
    const auto x = theirs.words({1});
    CHECK_THAT(message_of([&] { ours.device.run(ours.stream, ours.launch(ours.load(increment), x)); }),
               contains("at offset 0 of buffer 'words' (4 bytes), which is on another device, emulator, by block"));
    CHECK(theirs.get(x, 1) == Words{1});
}

TEST_CASE("host device: what has come and gone has no entries") {
    Host host;
    const auto module = host.load("ret;");
    const std::size_t objects = host.device.entries().objects;
    for (int i = 0; i < 300; ++i) {
        const StreamId stream = host.device.create_stream({.context = host.context});
        const EventId event = host.device.create_event({});
        host.device.enqueue(stream, host.launch(module));
        host.device.enqueue(stream, work::Record{event});
        if (i % 2 == 0) host.device.finish(stream);
        host.device.destroy(stream);
        host.device.destroy(event);
    }
    CHECK(host.device.entries().objects == objects);
    CHECK(host.device.entries().work > 0);
    host.device.drain();
    CHECK(host.device.entries().work == 0);
    CHECK(host.device.entries().streams == 0);
    host.device.finish();
    CHECK(host.device.entries().known == 0);
    CHECK(host.device.entries().ranges == 0);
}
