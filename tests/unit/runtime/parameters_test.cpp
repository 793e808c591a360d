// SPDX-License-Identifier: Apache-2.0
// Parameters that a kernel is made with or without, arrays of four and five dimensions, structs that hold views, and
// arguments by name.
#include <ikat/ikat.hpp>

#include <numeric>
#include <optional>

#include "codegen/kernel/section.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/support/digest.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

std::vector<float> from_one(std::size_t n) {
    std::vector<float> out(n);
    std::iota(out.begin(), out.end(), 1.0f);
    return out;
}

// ---- optional parameters

/// y = x by scale, if there is one, and the bias, if there is one.
auto with(bool has_scale, bool has_bias) {
    return kernel("adjusted",
                  params("x", only_if(has_scale, "scale"), only_if(has_bias, "bias"), "y", only_if(has_bias, "rest")),
                  [](In<float> x, Optional<f32> scale, Optional<In<float, 2>> bias, Out<float> y,
                     Optional<InOut<float>> rest) {
                      u32 i = global_id().x;
                      f32 v = x[i];
                      if (scale) v *= *scale;
                      if (bias) v += (*bias)[1, i];
                      y[i] = v;
                      if (rest) (*rest)[i] += v;
                  })
        .require(aligned<8>("bias"), aligned<4>("rest"));
}

TEST_CASE("optional parameters: a kernel without one has none in its PTX") {
    const std::string both = compile(with(true, true).ast()).ptx, none = compile(with(false, false).ast()).ptx;
    CHECK_THAT(both, contains("(\n    .param .u64 x,\n    .param .f32 scale,\n    .param .u64 .ptr .global .align 8 "
                              "bias,\n    .param .u32 bias_extent0,\n"
                              "    .param .u32 bias_extent1,\n    .param .u32 bias_pitch,\n    .param .u64 y,\n    "
                              ".param .u64 .ptr .global .align 4 rest\n)"));
    CHECK_THAT(none, contains("(\n    .param .u64 x,\n    .param .u64 y\n)"));
    CHECK(none.find("mul.f32") == none.npos);
    CHECK(with(false, false).handle().digest() != with(true, false).handle().digest());
}

TEST_CASE("optional parameters: launches with and without them") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(from_one(4), "x"), bias = device.upload(from_one(8), "bias");
    Buffer<float> y = device.buffer<float>(4, "y"), rest = device.upload(std::vector<float>(4, 100.0f), "rest");
    using Values = std::vector<float>;
    const auto got = [&] { return y.download(); };

    device.launch(with(false, false), grid(4, 4), x, std::nullopt, std::nullopt, y, std::nullopt);
    CHECK(got() == Values{1, 2, 3, 4});
    device.launch(with(true, false), grid(4, 4), x, 10, std::nullopt, y, std::nullopt);
    CHECK(got() == Values{10, 20, 30, 40});
    device.launch(with(false, true), grid(4, 4), x, std::nullopt, bias.view(2, 4), y, rest);
    CHECK(got() == Values{6, 8, 10, 12});
    CHECK(rest.download() == Values{106, 108, 110, 112});
    device.launch(with(true, true), grid(4, 4), x, 2.0, bias.view(2, 4), y, rest.slice(0, 4));
    CHECK(got() == Values{7, 10, 13, 16});

    // Whether it is there is data.
    for (const bool is_there : {false, true}) {
        const std::optional<float> scale = is_there ? std::optional(3.0f) : std::nullopt;
        std::optional<BufferView<const float, 2>> maybe;
        std::optional<BufferSlice<float>> more;
        if (is_there) maybe = bias.view(2, 4), more = rest.slice(0, 4);
        device.launch(with(is_there, is_there), grid(4, 4), x, scale, maybe, y, more);
        CHECK(got() == (is_there ? Values{8, 12, 16, 20} : Values{1, 2, 3, 4}));
    }
}

TEST_CASE("optional parameters: what is given and not there, or there and not given, is an error of the launch") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(from_one(4), "x");
    Buffer<float> y = device.buffer<float>(4, "y");
    const std::string missing = message_of(
        [&] { device.launch(with(true, false), grid(4, 4), x, std::nullopt, std::nullopt, y, std::nullopt); });
    CHECK_THAT(missing, contains("parameters_test.cpp:") &&
                            contains("launch of 'adjusted': 'scale' is not given, and the kernel is made with it"));
    const std::string unwanted = message_of(
        [&] { device.launch(with(false, false), grid(4, 4), x, std::nullopt, x.view(2, 2), y, std::nullopt); });
    CHECK_THAT(unwanted, contains("launch of 'adjusted': the kernel is made without 'bias', which is given") &&
                             contains("std::nullopt"));
    const std::optional<float> scale = 2.0f;
    CHECK_THAT(
        message_of([&] { device.launch(with(false, false), grid(4, 4), x, scale, std::nullopt, y, std::nullopt); }),
        contains("made without 'scale'"));
}

TEST_CASE("optional parameters: mistakes in kernels") {
    const auto uses =
        kernel("uses", params(only_if(false, "x"), "y"), [](Optional<In<float>> x, Out<float> y) { y[0] = (*x)[0]; });
    CHECK_THAT(message_of([&] { uses.check(); }),
               contains("parameter `x` is used, and this kernel is made without it") && contains("if (x)"));
    const auto never =
        kernel("never", params(only_if(false, "x"), "y"), [](In<float> x, Out<float> y) { y[0] = x[0]; });
    CHECK_THAT(message_of([&] { never.check(); }),
               contains("parameter `x` is given with only_if(), but its type is not Optional"));
    // A promise about one that is absent holds; a size that is multiplied by one does not.
    const auto sized = kernel("sized", params("x", only_if(false, "n")), [](Out<float> x, Optional<u32> n) {
                           if (n) x[*n] = 1.0f;
                           x[0] = 0.0f;
                       }).require(at_least("x", "n"));
    CHECK_THAT(message_of([&] { sized.check(); }),
               contains("at_least() multiplies `n`, which this kernel is made without"));
}

TEST_CASE("optional parameters: PTX that was loaded is launched alike") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(from_one(4), "x");
    Buffer<float> y = device.buffer<float>(4, "y");
    const auto without = with(true, false);
    const runtime::Module module = device.load(file_text(compile(without.ast())), "adjusted.ptx");
    device.launch(module, "adjusted", grid(4, 4), x, 3, std::nullopt, y, std::nullopt);
    CHECK(y.download() == std::vector<float>{3, 6, 9, 12});
    device.launch(module, "adjusted", grid(4, 4), arg("y", y), arg("scale", 5), arg("x", x));
    CHECK(y.download() == std::vector<float>{5, 10, 15, 20});
    CHECK_THAT(message_of([&] { device.launch(module, "adjusted", grid(4, 4), x, 3, y); }),
               contains("the kernel is made without 'bias', which is given"));
    CHECK_THAT(
        message_of([&] { device.launch(module, "adjusted", grid(4, 4), x, 3, std::nullopt, y); }),
        contains("launch of 'adjusted': it takes 5 arguments, not 4") && contains("rest (which it is made without)"));
}

// ---- by name

const auto named = kernel("named", params("from", "to", "count", "factor"),
                          [](In<float, 2> from, Out<float> to, u32 count, f32 factor) {
                              u32 i = global_id().x;
                              if_(i < count, [&] { to[i] = from[1, i] * factor; });
                          });

TEST_CASE("arguments by name, in any order, and after those in order") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(from_one(6), "x");
    Buffer<float> y = device.buffer<float>(3, "y");
    device.launch(named, grid(3, 32), arg("factor", 2.0), arg("count", 3), arg("to", y), arg("from", x.view(2, 3)));
    CHECK(y.download() == std::vector<float>{8, 10, 12});
    device.launch(named, grid(3, 32), x.view(2, 3), y, arg("factor", 3), arg("count", 3));
    CHECK(y.download() == std::vector<float>{12, 15, 18});

    const auto said = [&](auto&&... arguments) {
        return message_of([&] { device.launch(named, grid(3, 32), x.view(2, 3), arguments...); });
    };
    CHECK_THAT(said(arg("to", y), arg("cuont", 3), arg("factor", 1)),
               contains("parameters_test.cpp:") && contains("launch of 'named': there is no parameter 'cuont'") &&
                   contains("did you mean 'count'?"));
    CHECK_THAT(said(arg("to", y), arg("something", 3), arg("factor", 1)),
               contains("there is no parameter 'something'") && contains("its parameters are from, to, count, factor"));
    CHECK_THAT(said(arg("to", y), arg("factor", 1)),
               contains("launch of 'named': parameter 'count' is not given") && contains("add arg(\"count\", ...)"));
    CHECK_THAT(said(arg("to", y), arg("count", 3), arg("factor", 1), arg("count", 2)),
               contains("parameter 'count' is given twice"));
    CHECK_THAT(said(y, arg("to", y), arg("count", 3), arg("factor", 1)), contains("parameter 'to' is given twice"));
    CHECK_THAT(said(arg("to", y), 3, arg("factor", 1)), contains("an argument in order comes after one by name"));
    // A part of a view is no parameter by itself.
    CHECK_THAT(said(arg("to", y), arg("count", 3), arg("factor", 1), arg("from_pitch", 3)),
               contains("there is no parameter 'from_pitch'"));
    // Types are compared when it is launched.
    CHECK_THAT(said(arg("to", y), arg("count", 2.5), arg("factor", 1)), contains("parameter 'count' is u32"));
    CHECK_THAT(said(arg("to", 3), arg("count", 3), arg("factor", 1)), contains("parameter 'to' is an array of rank 1"));
    CHECK_THAT(said(arg("to", std::as_const(y)), arg("count", 3), arg("factor", 1)),
               contains("parameter 'to' is written, and the buffer is const"));
}

// ---- further parameters

/// y = x by the factors, of which the host says how many there are, plus an array if there is one.
auto by_factors(std::size_t count, bool has_more) {
    MoreParameters more;
    for (std::size_t i = 0; i < count; ++i) more.add<f32>("factor" + std::to_string(i));
    if (has_more) more.add<In<float, 2>>("plus");
    return kernel("by_factors", params("x", "y", more), [=](In<float> x, Out<float> y, More rest) {
        u32 i = global_id().x;
        f32 v = x[i];
        for (std::size_t k = 0; k < count; ++k) v *= rest.next<f32>();
        if (has_more) v += rest.next<In<float, 2>>()[1, i];
        y[i] = v;
    });
}

TEST_CASE("further parameters: their number and types are data") {
    CHECK_THAT(
        compile(by_factors(2, true).ast()).ptx,
        contains("(\n    .param .u64 x,\n    .param .u64 y,\n    .param .f32 factor0,\n    .param .f32 factor1,\n"
                 "    .param .u64 plus,\n    .param .u32 plus_extent0,"));
    const Device device = emulator();
    const Buffer<float> x = device.upload(from_one(4), "x");
    Buffer<float> y = device.buffer<float>(2, "y");
    device.launch(by_factors(0, false), grid(2, 2), arg("x", x), arg("y", y));
    CHECK(y.download() == std::vector<float>{1, 2});
    device.launch(by_factors(2, true), grid(2, 2), x, y, arg("plus", x.view(2, 2)), arg("factor1", 5),
                  arg("factor0", 2));
    CHECK(y.download() == std::vector<float>{13, 24});
    CHECK_THAT(message_of([&] { device.launch(by_factors(1, false), grid(2, 2), x, y, arg("factor1", 5)); }),
               contains("there is no parameter 'factor1'") && contains("did you mean 'factor0'?"));
}

// ---- structs with views

struct ScaledRows {
    BOOST_HANA_DEFINE_STRUCT(ScaledRows, (float, scale), (BufferView<const float, 2>, rows), (BufferSlice<float>, sums),
                             (BufferView<float, 3>, all));
};
const auto of_struct = kernel("of_struct", params("in", "n"), [](Struct<ScaledRows> in, u32 n) {
    u32 i = global_id().x;
    return_if(i >= n);
    const auto rows = in[&ScaledRows::rows];
    f32 sum = 0;
    for (auto j : range(rows.extent(1))) sum += rows[i, j];
    in[&ScaledRows::sums][i] = sum * in[&ScaledRows::scale];
    in[&ScaledRows::all][i, 1, 0] = sum;
});

TEST_CASE("structs that hold views: extents and pitches go with them") {
    CHECK_THAT(
        compile(of_struct.ast()).ptx,
        contains("(\n    .param .f32 in_scale,\n    .param .u64 in_rows,\n    .param .u32 in_rows_extent0,\n"
                 "    .param .u32 in_rows_extent1,\n    .param .u32 in_rows_pitch,\n    .param .u64 in_sums,\n"
                 "    .param .u64 in_all,\n    .param .u32 in_all_extent0,\n    .param .u32 in_all_extent1,\n"
                 "    .param .u32 in_all_extent2,\n    .param .u32 in_all_pitch0,\n    .param .u32 in_all_pitch1,\n"
                 "    .param .u32 n\n)"));
    const Device device = emulator();
    const Buffer<float> x = device.upload(from_one(6), "x");
    Buffer<float> y = device.buffer<float>(2, "y"), z = device.upload(std::vector<float>(12), "z");
    const ScaledRows in{10, x.view(2, 2).pitched(3), y, z.view(2, 2, 3)};
    device.launch(of_struct, grid(2, 32), in, 2);
    CHECK(y.download() == std::vector<float>{30, 90});
    CHECK(z.download() == std::vector<float>{0, 0, 0, 3, 0, 0, 0, 0, 0, 9, 0, 0});
    device.launch(of_struct, grid(2, 32), arg("n", 1), arg("in", ScaledRows{1, x.view(2, 3), y, z.view(2, 2, 3)}));
    CHECK(y.download() == std::vector<float>{6, 90});
    // Launches check them as they do others.
    CHECK_THAT(
        message_of([&] {
            device.launch(of_struct, grid(2, 32), ScaledRows{1, std::as_const(y).view(1, 2), y, z.view(2, 2, 3)}, 1);
        }),
        contains("in_rows") && contains("in_sums"));
}

// ---- four and five dimensions

const auto of_rank_five =
    kernel("of_rank_five", params("x", "y", "part"), [](In<float, 4> x, InOut<float, 5> y, Out<float> part) {
        u32 i = global_id().x;
        f32 v = x[1, 2, 3, i];
        y[1, 0, 2, 1, i] = v + x[1][2][3][i] + x[1, 2][3, i] + x[1][2, 3, i] + x[1, 2, 3][i];
        y.store_if(i < 1, 0, 0, 0, 0, i, 7);
        part[i] = x.load_if(i < 1, 0, 1, 0, i, -1) + x.vec<2>(0, 0, 0, i)[0] +
                  cast<f32>(x.extent(0) * 1000 + x.extent(3) * 100 + y.extent(4) * 10 + x.pitch(2)) + y[1, 0][2, 1, i];
    });

TEST_CASE("arrays of four and five dimensions") {
    CHECK_THAT(
        compile(of_rank_five.ast()).ptx,
        contains(
            ".param .u32 x_extent3,\n    .param .u32 x_pitch0,\n    .param .u32 x_pitch1,\n    .param .u32 x_pitch2,\n"
            "    .param .u64 y,") &&
            contains(".param .u32 y_extent4,\n    .param .u32 y_pitch0,\n    .param .u32 y_pitch1,\n"
                     "    .param .u32 y_pitch2,\n    .param .u32 y_pitch3,"));
    const Device device = emulator();
    const std::vector<float> host = from_one(2 * 3 * 4 * 2);
    const Buffer<float> x = device.upload(host, "x");
    Buffer<float> y = device.upload(std::vector<float>(2 * 1 * 3 * 2 * 2), "y"), part = device.buffer<float>(2, "part");
    device.launch(of_rank_five, grid(2, 2), x.view(2, 3, 4, 2), y.view(2, 1, 3, 2, 2), part);
    const auto at = [&](std::size_t i) { return host[((1 * 3 + 2) * 4 + 3) * 2 + i]; };
    const auto got = y.download();
    for (const std::size_t i : {0u, 1u}) CHECK(got[((1 * 3 + 2) * 2 + 1) * 2 + i] == 5 * at(i));
    CHECK(got[0] == 7);
    CHECK(part.download() == std::vector<float>{host[8] + host[0] + 2222 + 5 * at(0), -1 + host[2] + 2222 + 5 * at(1)});

    // With pitches; what is outside of the view is a finding, with its place.
    const auto corner = kernel("corner", params("x"), [](InOut<float, 4> x) { x[1, 1, 1, 2] += 1.0f; });
    Buffer<float> wide = device.upload(std::vector<float>(64), "wide");
    device.launch(corner, grid(1, 1), wide.view(2, 2, 2, 3).pitched(32, 16, 4));
    CHECK(wide.download()[32 + 16 + 4 + 2] == 1);
    CHECK_THAT(message_of([&] { device.launch(corner, grid(1, 1), wide.view(2, 2, 2, 2).pitched(32, 16, 4)); }),
               contains("column 2 of row 1 of plane 1 of volume 1"));
    CHECK_THAT(
        message_of([&] { kernel("k", [](Out<float, 4> x) { x[0, 0, 0, 0] = cast<f32>(x.extent(4)); }).check(); }),
        contains("extent 4 of a view that has 4"));
}

}  // namespace
}  // namespace ikat::tests
