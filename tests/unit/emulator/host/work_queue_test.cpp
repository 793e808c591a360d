// SPDX-License-Identifier: Apache-2.0
// The order in which a device does what its streams are given.
#include "runtime/emulator/host/work_queue.hpp"

#include <set>

#include "tests/catch.hpp"

using namespace ikat;
using namespace ikat::emulator;

namespace {

constexpr StreamId a{16}, b{32}, c{80};
constexpr EventId event{48}, other{64};

using Numbers = std::vector<std::uint64_t>;
const work::HostCall nothing{[] {}};

/// The numbers of the pieces that a worker would do, one after the other.
Numbers order(WorkQueue& queue, Worker worker, WorkOrder by = WorkOrder()) {
    Numbers numbers;
    while (const Piece* const piece = queue.next(worker, by)) {
        numbers.push_back(piece->number);
        queue.remove(*piece);
    }
    return numbers;
}
Piece* next(WorkQueue& queue, Worker worker) {
    WorkOrder as_enqueued;
    return queue.next(worker, as_enqueued);
}

}  // namespace

TEST_CASE("without a seed work is done as enqueued, whatever its stream") {
    WorkQueue queue;
    for (const StreamId stream : {a, b, default_stream, b, a}) queue.add(stream, work::Fill{});
    CHECK(queue.size() == 5);
    CHECK(order(queue, Worker::Host) == Numbers{});
    CHECK(order(queue, Worker::Device) == Numbers{1, 2, 3, 4, 5});
    CHECK(queue.empty());
}

TEST_CASE("new work is held up by what it would wait for") {
    WorkQueue queue;
    CHECK((queue.is_free(a, true) && queue.is_free(default_stream, true)));
    queue.add(a, nothing, false);
    CHECK((!queue.is_free(a, false) && queue.is_free(b, true) && queue.is_free(default_stream, true)));
    queue.add(b, nothing);
    CHECK((!queue.is_free(b, true) && !queue.is_free(default_stream, true)));
    WorkQueue other;
    other.add(default_stream, nothing);
    CHECK((!other.is_free(a, true) && other.is_free(a, false) && !other.is_free(default_stream, true)));
}

TEST_CASE("seeds give all orders that streams allow, and no others, each always the same") {
    const auto by = [](std::uint32_t seed) {
        WorkQueue queue;
        for (const StreamId stream : {a, b, a, b}) queue.add(stream, work::Fill{});
        return order(queue, Worker::Device, WorkOrder(seed));
    };
    std::set<Numbers> seen;
    for (std::uint32_t seed = 1; seed <= 100; ++seed) {
        seen.insert(by(seed));
        CHECK(by(seed) == by(seed));
    }
    // Of four, two and two in order: six ways.
    CHECK(seen ==
          std::set<Numbers>{{1, 2, 3, 4}, {1, 2, 4, 3}, {1, 3, 2, 4}, {2, 1, 3, 4}, {2, 1, 4, 3}, {2, 4, 1, 3}});
}

TEST_CASE("the default stream waits for all, and all for it, but those that do not wait") {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        WorkQueue queue;
        queue.add(a, work::Fill{});
        queue.add(b, work::Fill{});
        queue.add(default_stream, work::Fill{});
        queue.add(b, work::Fill{});
        queue.add(a, work::Fill{});
        const Numbers numbers = order(queue, Worker::Device, WorkOrder(seed));
        CHECK(numbers[2] == 3);
        CHECK(numbers[0] + numbers[1] == 3);
    }
    std::set<std::uint64_t> first;
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        WorkQueue queue;
        queue.add(c, nothing, false);
        queue.add(default_stream, work::Fill{});
        queue.add(b, work::Fill{}, false);
        first.insert(order(queue, Worker::Device, WorkOrder(seed)).at(0));
    }
    CHECK(first == std::set<std::uint64_t>{2, 3});
}

TEST_CASE("a stream waits for its calls of the host, others do not") {
    WorkQueue queue;
    queue.add(a, nothing);
    queue.add(a, work::Fill{});
    queue.add(b, work::Fill{});
    queue.add(b, nothing);
    CHECK(next(queue, Worker::Device)->number == 3);
    CHECK(next(queue, Worker::Host)->number == 1);
    CHECK(queue.first(Worker::Host)->number == 1);
    next(queue, Worker::Host)->is_running = true;
    CHECK(next(queue, Worker::Host) == nullptr);    // that of b waits for the copy
    CHECK(queue.first(Worker::Host)->number == 1);  // which is running
    CHECK(order(queue, Worker::Device) == Numbers{3});
    CHECK(next(queue, Worker::Host)->number == 4);
    CHECK((queue.has(a) && queue.has(a, 1) && queue.has(b, 4) && !queue.has(b, 3) && !queue.has(c)));
}

TEST_CASE("a wait is for the last recording of its event that was asked for before") {
    WorkQueue queue;
    queue.add(b, work::Wait{event});  // of nothing
    queue.add(a, nothing);
    queue.add(a, work::Record{event});
    queue.add(b, work::Wait{other});
    queue.add(b, work::Wait{event});
    queue.add(b, work::Fill{});
    CHECK(order(queue, Worker::Device) == Numbers{1, 4});
    CHECK((queue.has(event) && !queue.has(other)));
    queue.remove(*next(queue, Worker::Host));
    CHECK(order(queue, Worker::Device) == Numbers{3, 5, 6});
    CHECK(!queue.has(event));
    // Of two recordings the later one, which is of another stream.
    WorkQueue twice;
    twice.add(a, nothing);
    twice.add(a, work::Record{event});
    twice.add(b, work::Record{event});
    twice.add(c, work::Wait{event});
    CHECK(order(twice, Worker::Device) == Numbers{3, 4});
    CHECK(!twice.has(event));
    twice.remove(*next(twice, Worker::Host));
    CHECK(order(twice, Worker::Device) == Numbers{2});
}

TEST_CASE("a piece that runs is not given again, and holds its stream up") {
    WorkQueue queue;
    queue.add(a, work::Fill{});
    queue.add(a, work::Fill{});
    queue.add(b, work::Fill{});
    next(queue, Worker::Device)->is_running = true;
    CHECK(order(queue, Worker::Device) == Numbers{3});
}
