// SPDX-License-Identifier: Apache-2.0
// The order in which a device does what its streams are given.
#include "runtime/emulator/host/work_queue.hpp"

#include "tests/catch.hpp"

using namespace ikat;
using namespace ikat::emulator;

namespace {

constexpr StreamId a{16}, b{32};
constexpr EventId event{48}, other{64};

/// The numbers of the pieces that a worker would do, one after the other.
std::vector<std::uint64_t> order(WorkQueue& queue, Worker worker) {
    std::vector<std::uint64_t> numbers;
    while (const Piece* const piece = queue.next(worker)) {
        numbers.push_back(piece->number);
        queue.remove(*piece);
    }
    return numbers;
}

using Numbers = std::vector<std::uint64_t>;
const work::HostCall nothing{[] {}};

}  // namespace

TEST_CASE("work is done as enqueued, whatever its stream") {
    WorkQueue queue;
    for (const StreamId stream : {a, b, default_stream, b, a}) queue.add(stream, work::Fill{});
    CHECK(order(queue, Worker::Host) == Numbers{});
    CHECK(order(queue, Worker::Device) == Numbers{1, 2, 3, 4, 5});
    CHECK(queue.empty());
}

TEST_CASE("a stream waits for its calls of the host, others do not") {
    WorkQueue queue;
    queue.add(a, nothing);
    queue.add(a, work::Fill{});
    queue.add(b, work::Fill{});
    queue.add(b, nothing);
    CHECK(queue.next(Worker::Device)->number == 3);
    CHECK(queue.next(Worker::Host)->number == 1);
    queue.next(Worker::Host)->is_running = true;
    CHECK(queue.next(Worker::Host) == nullptr);  // that of b waits for the copy
    CHECK(order(queue, Worker::Device) == Numbers{3});
    CHECK(queue.next(Worker::Host)->number == 4);
    CHECK((queue.has(a) && queue.has(1) && !queue.has(3)));
}

TEST_CASE("a wait is for the recordings of its event that were asked for before") {
    WorkQueue queue;
    queue.add(b, work::Wait{event});  // of nothing
    queue.add(a, nothing);
    queue.add(a, work::Record{event});
    queue.add(b, work::Wait{other});
    queue.add(b, work::Wait{event});
    queue.add(b, work::Fill{});
    CHECK(order(queue, Worker::Device) == Numbers{1, 4});
    queue.remove(*queue.next(Worker::Host));
    CHECK(order(queue, Worker::Device) == Numbers{3, 5, 6});
}

TEST_CASE("a piece that runs is not given again, and holds its stream up") {
    WorkQueue queue;
    queue.add(a, work::Fill{});
    queue.add(a, work::Fill{});
    queue.add(b, work::Fill{});
    queue.next(Worker::Device)->is_running = true;
    CHECK(order(queue, Worker::Device) == Numbers{3});
}
