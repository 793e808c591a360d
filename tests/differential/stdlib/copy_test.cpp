// SPDX-License-Identifier: Apache-2.0
// copy_matrix between matrices of any pitch: the gaps between the rows of the target are not changed.
#include "stdlib/layout/copy.hpp"

#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

template <class T>
void check_copies() {
    struct Shape {
        std::size_t rows, columns, from_pitch, to_pitch;
    };
    const Shape shapes[] = {{1, 1, 1, 1},     {0, 5, 5, 5},   {5, 0, 0, 7},     {3, 4, 4, 4},
                            {7, 33, 40, 33},  {9, 5, 5, 64},  {300, 2, 3, 2},   {2, 700, 701, 1024},
                            {64, 64, 64, 65}, {1, 257, 9, 9}, {17, 31, 31, 32}, {4, 256, 256, 256}};
    const runtime::Device device = test::open_device();
    for (const auto& [rows, columns, from_pitch, to_pitch] : shapes) {
        INFO("rows, columns, pitches = " << rows << ", " << columns << ", " << from_pitch << ", " << to_pitch);
        std::vector<T> host(rows * std::max(from_pitch, columns) + 1);
        for (std::size_t i = 0; i < host.size(); ++i) host[i] = T(float(i % 1000));
        const runtime::Buffer<T> from = device.upload(host);
        runtime::Buffer<T> to = device.template buffer<T>(rows * std::max(to_pitch, columns) + 1);
        to.fill(T(-1.0f));
        stdlib::copy_matrix(device, from.view(rows, columns).pitched(std::max(from_pitch, columns)),
                            to.view(rows, columns).pitched(std::max(to_pitch, columns)));
        const std::vector<T> result = to.download();
        const std::size_t pitch = std::max(to_pitch, columns), other = std::max(from_pitch, columns);
        for (std::size_t i = 0; i < result.size(); ++i) {
            const bool inside = pitch > 0 && i / pitch < rows && i % pitch < columns;
            const float want = inside ? float(host[i / pitch * other + i % pitch]) : -1.0f;
            REQUIRE(float(result[i]) == want);
        }
    }
}

TEST_CASE("copies of matrices of any shape and pitch") {
    check_copies<float>();
    check_copies<half>();
}

TEST_CASE("copies of matrices of different shapes are refused") {
    const runtime::Device device = test::open_device();
    runtime::Buffer<float> x = device.buffer<float>(12), y = device.buffer<float>(12);
    const std::string message = message_of([&] { stdlib::copy_matrix(device, x.view(3, 4), y.view(4, 3)); });
    CHECK_THAT(message, contains("'from' and 'to' have different shapes"));
}

}  // namespace
}  // namespace ikat::tests
