// SPDX-License-Identifier: Apache-2.0
// Batches: what their members give, when memory exists, whose values they take, their errors.
#include <ikat/batch.hpp>
#include <ikat/graph.hpp>
#include <ikat/quantised.hpp>
#include <ikat/stdlib.hpp>
#include <ikat/work.hpp>

#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {
namespace batches {

using Floats = std::vector<float>;
using Shape = std::vector<std::uint64_t>;

Floats counted(std::size_t size) {
    Floats out(size);
    std::iota(out.begin(), out.end(), -2.0f);
    return out;
}

const auto add_one = kernel("add_one", params("y", "x", "n"), [](Out<float> y, In<float> x, u32 n) {
    const u32 i = global_id().x;
    return_if(i >= n);
    y[i] = x[i] + 1.0f;
});

TEST_CASE("batch: calls run when it is executed, and not before") {
    const Device device = test::open_device();
    auto x = device.upload(counted(5), "x");
    const Batch b(device);
    const auto y = b.scale(b.relu(x), 2.0f);
    CHECK(y.shape() == Shape{5});
    CHECK(y.size() == 5);
    x.upload(Floats{1, -1, 1, -1, 4});  // before the batch reads it
    b.execute();
    CHECK(y.download() == Floats{2, 0, 2, 0, 8});
    CHECK(device.download(x) == Floats{1, -1, 1, -1, 4});
}

TEST_CASE("batch: a value has the shape that the catalogue says") {
    const Device device = test::open_device();
    const auto x = device.upload(counted(24), "x");
    const auto w = device.upload(Floats(2 * 3 * 2 * 2, 1.0f), "w");
    const Batch b(device);
    CHECK(b.softmax(x.view(4, 6)).shape() == Shape{4, 6});
    CHECK(b.transpose(x.view(2, 3, 4)).shape() == Shape{2, 4, 3});
    CHECK(b.sum(x).shape() == Shape{1});
    CHECK(b.gemm(x.view(4, 6), x.view(6, 4)).shape() == Shape{4, 4});
    CHECK(b.conv2d(x.view(1, 3, 2, 4), w.view(2, 3, 2, 2), 1, 2, 1).shape() == Shape{1, 2, 3, 2});
    CHECK(b.softmax(b.transpose(x.view(4, 6))).shape() == Shape{6, 4});
}

TEST_CASE("batch: several outputs, other types, and functions by their names") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats{1, 7, -3}, "x");
    const auto a = device.upload(std::vector<half>(4 * 4, half(0.5f)), "a");
    const Batch b(device);
    const auto [value, index] = b.argmax(x);
    const auto rounded = b.cast<half>(x);
    const auto product = b.call<half>("gemm_tensor_core_f16", a.view(4, 4), a.view(4, 4), arg("alpha", 2.0f));
    const auto none = b.bias_activation(x.view(1, 3), x, "relu");
    const auto ones = device.upload(Floats(64, 1.0f), "ones");
    const auto q = b.cast<half>(ones.view(1, 64));
    b.execute();
    const auto [o, log_sum] = b.call<half, float>("flash_attention_log_sum_f16", q, q, q, arg("scale", 0.5));
    b.execute();
    CHECK(o.shape() == Shape{1, 64});
    CHECK(o.download() == std::vector<half>(64, half(1.0f)));
    CHECK(log_sum.download() == Floats{32});
    CHECK(value.download() == Floats{7});
    CHECK(index.download() == std::vector<std::uint32_t>{1});
    CHECK(rounded.download() == std::vector<half>{half(1.0f), half(7.0f), half(-3.0f)});
    CHECK(product.download() == std::vector<half>(16, half(2.0f)));
    CHECK(none.download() == Floats{2, 14, 0});
}

TEST_CASE("batch: quantised weights by their format, or as bytes") {
    const Device device = test::open_device();
    const auto numbers = device.upload(Floats(2 * 32, 127.0f), "numbers");
    auto w = device.buffer<std::uint8_t>(2 * 34, "w");
    const auto x = device.upload(Floats(32, 1.0f), "x");
    const Batch b(device);
    const auto packed = b.quantise_q8_0(numbers.view(2, 32));
    CHECK(packed.shape() == Shape{2, 34});
    const auto y = b.gemv_q8_0(packed, x);
    b.execute();
    CHECK(y.download() == Floats{4064, 4064});
    w.upload(packed.download());
    const auto same = b.gemv_q8_0(stdlib::quantised_view(w, stdlib::Quantised::Q8_0, {2, 32}), x);
    b.execute();
    CHECK(same.download() == Floats{4064, 4064});
}

TEST_CASE("batch: what a function changes in place") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats{1, 2}, "x");
    auto y = device.upload(Floats{10, 20}, "y");
    const Batch b(device);
    b.residual_add(x, y);
    const auto z = b.scale(x, 3.0f);
    b.call<>("residual_add", y, z);
    b.saxpy(x, z, 2.0f);
    b.execute();
    CHECK(device.download(y) == Floats{11, 22});
    CHECK(z.download() == Floats{16, 32});
    CHECK(message_of([&] {
              b.residual_add(x, std::as_const(y));
          }).contains("'y' of 'residual_add' is const, and the function changes it"));
}

TEST_CASE("batch: functions of the program") {
    const Device device = test::open_device();
    const auto x = device.upload(counted(300), "x");
    const Batch b(device);
    const auto y = b.relu(x);
    const auto z = b.array<float>({300}, "z");
    b.call(
        [](const Queue& q, auto in, auto out) {
            auto between = q.buffer<float>(in.size(), "between");
            q.launch(add_one, grid(in.size(), 128), between, in, in.size());
            q.launch(add_one, grid(in.size(), 128), out, between, in.size());
        },
        y, z);
    const auto total = b.sum(z);
    b.execute();
    CHECK(z.download()[299] == 299);
    CHECK(total.download()[0] == 297 * 298 / 2 + 600);
}

TEST_CASE("batch: any function records its work if it is called with a batch as its queue") {
    const Device device = test::open_device();
    const auto x = device.upload(counted(6), "x");
    auto y = device.upload(Floats(6), "y");
    const Batch b(device);
    stdlib::elementwise(b, stdlib::Unary::relu, x, y);
    const Queue queue = b;
    queue.launch(add_one, grid(2, 32), y.slice(0, 2), x.slice(2, 2), 2);
    CHECK(device.download(y) == Floats(6));
    b.execute();
    CHECK(device.download(y) == Floats{1, 2, 0, 1, 2, 3});
}

TEST_CASE("batch: memory comes from the pool, and goes back when nothing needs it any more") {
    const Device device = test::open_device();
    constexpr std::uint64_t n = 1 << 16, bytes = n * 4;
    const auto x = device.upload(Floats(n, 1.0f), "x");
    const Batch b(device);
    {
        std::optional<Batch::Value<float>> last = b.relu(x);
        for (int i = 0; i < 20; ++i) last = b.scale(*last, 1.5f);
        CHECK(device.pool().report().used == 0);  // nothing exists before
        b.execute();
        CHECK(device.pool().report().used == bytes);  // the last
        CHECK(device.pool().report().peak_used == 2 * bytes);
        CHECK(last->download()[n - 1] > 3000);
    }
    CHECK(device.pool().report().used == 0);
    {
        const auto first = b.relu(x), held = b.scale(first, 1.0f);
        b.execute();
        CHECK(device.pool().report().used == 2 * bytes);
    }
    CHECK(device.pool().report().used == 0);
    {
        const Batch unused(device);
        const auto value = unused.relu(x);
    }
    CHECK(device.pool().report().used == 0);
}

TEST_CASE("batch: maps of tensors whose memory has no address yet") {
    const Device device = test::open_device({.target = "sm_90a"});
    if (device.properties().kind != DeviceKind::Emulator) return;
    Floats numbers(256 * 64);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i % 7) - 2;
    const auto a = device.upload(numbers, "a"), b = device.upload(Floats(numbers.begin(), numbers.begin() + 128 * 64));
    auto half_a = device.buffer<half>(256 * 64), half_b = device.buffer<half>(128 * 64),
         c = device.buffer<half>(256 * 128);
    stdlib::cast(device, a, half_a);
    stdlib::cast(device, b, half_b);
    stdlib::gemm_tensor_core(device, half_a.view(256, 64), half_b.view(128, 64), c.view(256, 128),
                             {.b = stdlib::MatrixOrder::Columns, .path = stdlib::GemmPath::wgmma});
    const Batch batch(device);
    const auto product = batch.call<half>("gemm_tensor_core_f16_nt", batch.cast<half>(a.view(256, 64)),
                                          batch.cast<half>(b.view(128, 64)), arg("path", "wgmma"));
    batch.execute();
    CHECK(product.download() == device.download(c));
}

TEST_CASE("batch: one that is executed again goes on with what it has") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats{1, 2, 3}, "x");
    const Batch b(device);
    auto y = b.scale(x, 2.0f);
    b.execute();
    for (int i = 0; i < 3; ++i) {
        y = b.scale(y, 2.0f);
        b.execute();
    }
    CHECK(y.download() == Floats{16, 32, 48});
    const auto kept = y;
    y = b.relu(x);  // the other handle goes on
    CHECK(kept.download() == Floats{16, 32, 48});
}

TEST_CASE("batch: on a stream its work is enqueued, on a recorder noted, and in a graph recorded") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats{1, 2, 3}, "x");
    auto y = device.upload(Floats(3), "y");
    const Stream stream = device.stream();
    const Batch b(stream);
    b.residual_add(b.scale(x, 2.0f), y);
    b.execute();
    stream.synchronize();
    CHECK(device.download(y) == Floats{2, 4, 6});

    const Graph graph = Graph::record(device, [&](const Queue& q) {
        const Batch inner(q);
        inner.residual_add(inner.scale(x, 10.0f), y);
        inner.execute();
    });
    const GraphExec exec = graph.instantiate();
    exec.launch(stream);
    exec.launch(stream);
    stream.synchronize();
    CHECK(device.download(y) == Floats{22, 44, 66});

    const Recorder recorder(device, Recorder::Runs::No);
    const Batch noted(recorder);
    noted.residual_add(noted.scale(x, 10.0f), y);
    noted.execute();
    CHECK(recorder.launches().size() == 2);
}

TEST_CASE("batch: what does not fit is an error of the call's line, and nothing is recorded") {
    const Device device = test::open_device();
    auto x = device.upload(Floats(12, 1.0f), "x");
    const auto h = device.upload(std::vector<half>(12), "h");
    const Batch b(device);
    const auto here = [](int line) { return "batch_test.cpp:" + std::to_string(line) + ":"; };
    const auto check = [&](int line, const std::string& message, const char* what, const char* hint) {
        INFO(message);
        CHECK(message.contains(here(line)));
        CHECK(message.contains(what));
        CHECK(message.contains(hint));
    };
    std::string said = message_of([&] { b.gemm(x.view(3, 4), x.view(3, 4)); });
    check(__LINE__ - 1, said, "its k is 3, and that of 'A' is 4", "'B' is k x n");
    said = message_of([&] { b.softmax(x.view(3, 4).pitched(3)); });
    CHECK(said.contains("pitch"));
    said = message_of([&] { b.add(x, x.slice(0, 3)); });
    check(__LINE__ - 1, said, "'a' is 12, and 'b' is 3", "both have the same shape");
    said = message_of([&] { b.rmsnorm(x.view(3, 4), h.slice(0, 4), 1e-5f); });
    check(__LINE__ - 1, said, "rmsnorm: 'gamma' has elements of f16, not of f32", "cast() makes one");
    said = message_of([&] { b.gemm(h.view(3, 4), h.view(4, 3)); });
    check(__LINE__ - 1, said, "gemm: 'A' has elements of f16, not of f32", "");
    said = message_of([&] { b.bias_activation(x.view(3, 4), x.slice(0, 4), "relo"); });
    check(__LINE__ - 1, said, "'activation' is 'relo'", "it is one of none, relu");
    said = message_of([&] { b.scale(x, "much"); });
    check(__LINE__ - 1, said, "'factor' is 'much'", "it is a number");
    said = message_of([&] { b.call<float>("scale", x, arg("by", 2)); });
    check(__LINE__ - 1, said, "'scale' has no setting 'by'", "its settings are factor");
    said = message_of([&] { b.call<float>("scael", x, arg("factor", 2)); });
    check(__LINE__ - 1, said, "the library has no function 'scael'", "'scale' is one");
    said = message_of([&] { b.call<float>("scale", x, x, arg("factor", 2)); });
    check(__LINE__ - 1, said, "'scale' takes 1 array, and 2 are given", "it takes x, and makes y");
    said = message_of([&] { b.call<float, float>("scale", x, arg("factor", 2)); });
    check(__LINE__ - 1, said, "'scale' makes 1 array, and 2 are named by type", "it makes y");
    said = message_of([&] { b.call<half>("scale", x, arg("factor", 2)); });
    check(__LINE__ - 1, said, "'y' of 'scale' has elements of f32, and the call names f16", "");
    said = message_of([&] { b.call<float>("gemm_tensor_core_f32", x.view(3, 4), x.view(4, 3), arg("beta", 1)); });
    check(__LINE__ - 1, said, "is read where 'beta' is not 0", "call the library's function itself");
    said = message_of([&] { b.call<float>("softmax", x.view(3, 4), arg("x_pitch", 8)); });
    check(__LINE__ - 1, said, "'x_pitch' of 'softmax' is set", "an array has its own pitch");
    said = message_of([&] { b.rope(x.view(1, 1, 12), b.array<std::uint32_t>({1}), "neox", 14); });
    check(__LINE__ - 1, said, "'rotary' is larger than 'head_dim'", "");
    said = message_of([&] { b.array<float>({std::uint64_t{1} << 33, std::uint64_t{1} << 31}, "much"); });
    check(__LINE__ - 1, said, "array 'much' is larger than any memory", "numbers of elements");
    CHECK_NOTHROW(b.execute());
    CHECK(device.pool().report().used == 0);
}

TEST_CASE("batch: values of another batch, before they exist, and of one that has ended") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats{1, 2}, "x");
    const Batch a(device);
    std::optional<Batch> b(std::in_place, device);
    const auto y = a.relu(x), z = b->relu(x);
    std::string said = message_of([&] { b->relu(y); });
    CHECK(said.contains("'y of relu' is a value of another batch"));
    CHECK(said.contains("batch_test.cpp:" + std::to_string(__LINE__ - 2)));
    CHECK(said.contains("the call that makes it is here"));
    CHECK(message_of([&] { b->call([](const Queue&, auto) {}, y); }).contains("is a value of another batch"));
    said = message_of([&] { static_cast<void>(y.download()); });
    CHECK(said.contains("'y of relu' has not been computed"));
    CHECK(said.contains("execute()"));
    CHECK(message_of([&] { static_cast<void>(y.slice()); }).contains("has not been computed"));
    b.reset();
    CHECK(message_of([&] { static_cast<void>(z.download()); }).contains("will not be computed: its batch has ended"));
    a.execute();
    CHECK(y.download() == Floats{1, 2});
    CHECK(device.download(x) == Floats{1, 2});
}

TEST_CASE("batch: a buffer that ends before its batch is executed") {
    const Device device = test::open_device();
    const Batch b(device);
    std::optional x(device.upload(Floats{1, 2}, "x"));
    const auto y = b.relu(*x);
    x.reset();
    const std::string said = message_of([&] { b.execute(); });
    CHECK(said.contains("deferred work uses buffer 'x', which has been freed before the work is done"));
    CHECK(said.contains("batch_test.cpp:" + std::to_string(__LINE__ - 4)));
}

TEST_CASE("batch: what a kernel did wrong is thrown by execute(), with the line that was recorded") {
    const Device device = test::open_device();
    if (device.properties().kind != DeviceKind::Emulator) return;
    const auto x = device.upload(Floats(4), "x");
    const Batch b(device);
    const auto y = b.relu(x);
    b.call([&](const Queue& q, auto out) { q.launch(add_one, grid(8, 32), out, x, 8); }, y);
    std::string said;
    try {
        b.execute();
    } catch (const KernelError& error) { said = error.what(); }
    CHECK(said.contains("batch_test.cpp"));
    CHECK(said.contains("'add_one'"));
    b.execute();  // there is nothing more
    CHECK_NOTHROW(device.synchronize());
}

TEST_CASE("batch: of a function of the program that throws, nothing is recorded") {
    const Device device = test::open_device();
    auto x = device.upload(Floats{1, 2}, "x");
    const Batch b(device);
    CHECK_THROWS_AS(b.call([&](const Queue& q) {
        q.fill(x, 7.0f);
        throw std::runtime_error("no");
    }),
                    std::runtime_error);
    b.execute();
    CHECK(device.download(x) == Floats{1, 2});
    // It may have executed what was there before.
    b.relu(x);
    CHECK_THROWS_AS(b.call([&](const Queue&) {
        b.execute();
        throw std::runtime_error("no");
    }),
                    std::runtime_error);
    CHECK_NOTHROW(b.execute());
}

TEST_CASE("batch: too little memory ends an execution, and gives back what it has taken") {
    const Device device = test::open_device();
    const auto x = device.upload(Floats(1 << 20, 1.0f), "x");
    const Batch b(device);
    Pool pool = device.pool();
    pool.set_limit(6 << 20);
    std::string said;
    {
        const auto first = b.relu(x), second = b.relu(first);
        said = message_of([&] { b.execute(); });
        CHECK(message_of([&] { static_cast<void>(first.download()); }).contains("execute() has failed"));
        CHECK(message_of([&] { b.relu(first); }).contains("execute() has failed"));
    }
    CHECK(said.contains("memory"));
    CHECK(pool.report().used == 0);
    const auto fits = b.relu(x);
    b.execute();
    CHECK(fits.download()[0] == 1);
}

}  // namespace batches
}  // namespace
}  // namespace ikat::tests
