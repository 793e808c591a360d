// SPDX-License-Identifier: Apache-2.0
// Pieces of an array that a group of threads copies to shared memory, wherever they start and end.
#include "stdlib/tile/stage.hpp"

#include <cstring>
#include <vector>

#include "dsl/kernel/kernel.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace {

using namespace ikat;

constexpr std::uint32_t max_bytes = 600;
using StageKernel = Kernel<In<std::uint8_t>, Out<std::uint32_t>, u32, u32, u32>;

/// y[group, i] = word i of bytes first ... first + count - 1 of x, N words at a time.
template <class Group, int N, std::uint32_t alignment, std::uint32_t line>
StageKernel make_reader(const char* name) {
    return kernel(name, params("x", "y", "first", "count", "bytes"),
                  [](In<std::uint8_t> x, Out<std::uint32_t> y, u32 first, u32 count, u32 bytes) {
                      stdlib::Stage<Group, max_bytes, line> stage;
                      stage.load(x, value(first), value(count), value(bytes));
                      stage.put();
                      sync_block();
                      const auto words = value(count / 4u);
                      for (auto i : range(Group::thread(), words / std::uint32_t(N), Group::threads)) {
                          const auto w = stage.template words<N, alignment>(stage.at(value(i * 4u * N)));
                          for (std::uint32_t k = 0; k < N; ++k)
                              y[Group::number() * words + (i * std::uint32_t(N) + k)] = w[k];
                      }
                  })
        .require(aligned<16>("x"));
}

/// Checks what the kernel reads from arrays of several lengths, in blocks of 64 threads with that many groups.
void check(const StageKernel& reader, std::uint32_t groups, std::uint32_t alignment, std::uint32_t words) {
    const runtime::Device device = test::open_device();
    for (const std::uint32_t bytes : {2u, 30u, 32u, 48u, 50u, 612u, 640u, 1026u}) {
        std::vector<std::uint8_t> x(bytes);
        for (std::uint32_t i = 0; i < bytes; ++i) x[i] = std::uint8_t(i * 7 + 1);
        const auto array = device.upload(x, "x");
        for (std::uint32_t first = 0; first < bytes; first += alignment < 4 ? 2 : 32)
            for (const std::uint32_t wanted : {0u, 4u * words, 60u, max_bytes}) {
                const std::uint32_t count = std::min(wanted, bytes - first) / (4 * words) * (4 * words);
                auto y = device.upload(std::vector<std::uint32_t>(groups * count / 4 + 1, ~0u), "y");
                device.launch(reader, runtime::grid(64, 64), array, y, first, count, bytes);
                const auto got = y.download();
                std::size_t wrong = 0;
                for (std::uint32_t i = 0; i < groups * count / 4; ++i)
                    wrong += std::memcmp(&got[i], &x[first + i * 4 % count], 4) != 0;
                INFO(reader.name() << ": " << count << " bytes from " << first << " on, of " << bytes);
                CHECK(wrong == 0);
            }
    }
}

/// WarpGroup has blocks of 128 threads; this one has two warps.
struct TwoWarps : stdlib::WarpGroup {
    static constexpr std::uint32_t rows_of_block = 2;
};

using ShiftedKernel = Kernel<In<std::uint8_t>, Out<std::uint32_t>, u32, u32, u32, u32>;
/// The same for an array that begins at byte `start`.
template <class Group>
ShiftedKernel make_shifted_reader(const char* name) {
    return kernel(name, params("x", "y", "first", "count", "bytes", "start"),
                  [](In<std::uint8_t> x, Out<std::uint32_t> y, u32 first, u32 count, u32 bytes, u32 start) {
                      stdlib::Stage<Group, max_bytes> stage;
                      stage.load(x, value(first), value(count), value(bytes), start);
                      stage.put();
                      sync_block();
                      const auto words = value(count / 4u);
                      for (auto i : range(Group::thread(), words, Group::threads))
                          y[Group::number() * words + i] = stage.template words<1>(stage.at(value(i * 4u)))[0];
                  })
        .require(aligned<16>("x"));
}

using WordKernel = Kernel<In<float>, Out<float>, u32, u32>;
/// y[i] = word first + i of x, by a WordStage.
template <std::uint32_t line, int N, std::uint32_t alignment>
WordKernel make_word_reader(const char* name) {
    return kernel(name, params("x", "y", "first", "count"), [](In<float> x, Out<float> y, u32 first, u32 count) {
        using Group = stdlib::BlockGroup<64>;
        stdlib::WordStage<Group, max_bytes, line> stage;
        stage.load(x, value(first * 4u), value(count * 4u), 0u);
        stage.put();
        sync_block();
        for (auto i : range(Group::thread(), count / std::uint32_t(N), Group::threads)) {
            const auto w = stage.template words<N, alignment>(stage.at(value(i * 4u * N)));
            for (std::uint32_t k = 0; k < N; ++k) y[i * std::uint32_t(N) + k] = bit_cast<f32>(w[k]);
        }
    });
}
void check(const WordKernel& reader) {
    const runtime::Device device = test::open_device();
    std::vector<float> x(153);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i);
    const auto array = device.upload(x, "x");
    for (const std::uint32_t place : {0u, 1u, 3u})
        for (const std::uint32_t first : {0u, 8u, 32u})
            for (const std::uint32_t count : {0u, 4u, 60u, 108u}) {
                INFO(reader.name() << ": " << count << " words from " << place << " + " << first << " on");
                auto y = device.upload(std::vector<float>(max_bytes / 4, -1.0f), "y");
                device.launch(reader, runtime::grid(64, 64), array.slice(place, first + count), y, first, count);
                std::size_t wrong = 0;
                for (std::uint32_t i = 0; i < max_bytes / 4; ++i)
                    wrong += y.download()[i] != (i < count ? float(place + first + i) : -1.0f);
                CHECK(wrong == 0);
            }
}

}  // namespace

TEST_CASE("a stage of an array that begins at an even byte") {
    const runtime::Device device = test::open_device();
    const auto reader = make_shifted_reader<TwoWarps>("read_shifted");
    for (const std::uint32_t start : {0u, 2u, 8u, 14u})
        for (const std::uint32_t length : {2u, 4u, 12u, 14u, 32u, 100u, 640u}) {
            const std::uint32_t bytes = start + length;
            std::vector<std::uint8_t> x(bytes);
            for (std::uint32_t i = 0; i < bytes; ++i) x[i] = std::uint8_t(i * 7 + 1);
            const auto array = device.upload(x, "x");
            for (std::uint32_t first = start; first < bytes; first += 14)
                for (const std::uint32_t wanted : {0u, 4u, 60u, max_bytes}) {
                    const std::uint32_t count = std::min(wanted, bytes - first) / 4 * 4;
                    auto y = device.upload(std::vector<std::uint32_t>(2 * count / 4 + 1, ~0u), "y");
                    device.launch(reader, runtime::grid(64, 64), array, y, first, count, bytes, start);
                    const auto got = y.download();
                    std::size_t wrong = 0;
                    for (std::uint32_t i = 0; i < 2 * count / 4; ++i)
                        wrong += std::memcmp(&got[i], &x[first + i * 4 % count], 4) != 0;
                    INFO(count << " bytes from " << first << " on, of " << start << " ... " << bytes);
                    CHECK(wrong == 0);
                }
        }
}

TEST_CASE("a stage of words holds pieces of arrays that begin anywhere") {
    check(make_word_reader<0, 1, 4>("read_single_words"));
    check(make_word_reader<128, 4, 16>("read_words_by_lines"));
}

TEST_CASE("a stage holds pieces that begin and end anywhere") {
    check(make_reader<TwoWarps, 1, 2, 0>("read_words"), 2, 2, 1);
    check(make_reader<TwoWarps, 5, 2, 0>("read_five_words"), 2, 2, 5);
    check(make_reader<stdlib::BlockGroup<64>, 3, 2, 0>("read_as_block"), 1, 2, 3);
}

TEST_CASE("a stage with lines holds pieces that begin at whole sectors") {
    check(make_reader<TwoWarps, 4, 16, 64>("read_lines"), 2, 16, 4);
    check(make_reader<stdlib::BlockGroup<64>, 1, 4, 128>("read_words_of_lines"), 1, 4, 1);
}
