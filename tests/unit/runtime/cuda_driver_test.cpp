// SPDX-License-Identifier: Apache-2.0
// Finding the driver, and the errors if it is missing.
#include "runtime/cuda/driver.hpp"

#include <cstdlib>

#include "tests/catch.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"

namespace ikat::tests {
namespace {

using namespace runtime::cuda;

TEST_CASE("a missing driver is an error with a hint") {
    const std::string message = message_of([] { load_driver("libno_such_driver.so"); });
    CHECK_THAT(message, contains("no CUDA driver: libno_such_driver.so"));
    CHECK_THAT(message, contains("IKAT_DEVICE=emulator"));
}

TEST_CASE("a library without the driver's functions names the first that is missing") {
    const std::string message = message_of([] { load_driver(EMPTY_CUDA); });
    CHECK_THAT(message, contains("has no function cuInit"));
    CHECK_THAT(message, contains("update the driver"));
}

TEST_CASE("a driver that does not initialise says why") {
    const FakeCuda fake;
    fake.fail("cuInit", 100);
    const std::string message = message_of([] { load_driver(FAKE_CUDA); });
    CHECK_THAT(message, contains("does not initialise: CUDA_ERROR_NO_DEVICE (the fake says so)"));
}

TEST_CASE("a result without a name is shown as its number") {
    const FakeCuda fake;
    CHECK(load_driver(FAKE_CUDA)->text(Result(987)) == "CUDA error 987");
}

TEST_CASE("results of a failed kernel are kernel errors, others are not") {
    const FakeCuda fake;
    const auto driver = load_driver(FAKE_CUDA);
    CHECK_NOTHROW(driver->check(Result::Success, "it"));
    CHECK_THROWS_AS(driver->check(Result::IllegalAddress, "it"), runtime::KernelError);
    const std::string message = message_of([&] { driver->check(Result::OutOfMemory, "it"); });
    CHECK(message == "error: it failed: CUDA_ERROR_OUT_OF_MEMORY (the fake says so)");
}

TEST_CASE("the environment can name another driver") {
    unsetenv("IKAT_CUDA_DRIVER");
    CHECK(driver_path() == "libcuda.so.1");
    setenv("IKAT_CUDA_DRIVER", "/opt/driver/libcuda.so", 1);
    CHECK(driver_path() == "/opt/driver/libcuda.so");
    unsetenv("IKAT_CUDA_DRIVER");
}

}  // namespace
}  // namespace ikat::tests
