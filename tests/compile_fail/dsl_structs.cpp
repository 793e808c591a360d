// SPDX-License-Identifier: Apache-2.0
// clang-format off
// What a struct parameter may be.
// expect: a kernel takes a struct as Struct<Params>, and reads its fields as p[&Params::scale]
// expect: Struct<Params> is a parameter if Params is made by BOOST_HANA_DEFINE_STRUCT, of integers, floats, bool, and structs of these
// expect: the fields of a struct parameter are read-only: copy one to a variable, f32 scale = p[&Params::scale]
// expect: u32 and f32 do not mix
// expect: launch: the kernel's parameter is a Struct: pass the struct that it is of
// errors: 7
#include <ikat/ikat.hpp>
using namespace ikat;

struct Params {
    BOOST_HANA_DEFINE_STRUCT(Params, (float, scale), (std::uint32_t, n));
};
struct Pointers {
    BOOST_HANA_DEFINE_STRUCT(Pointers, (std::uint8_t, byte), (const char*, name));
};
struct Plain {
    float scale;
};

const auto by_itself = kernel("by_itself", [](Params p, Out<float> y) { y[0] = p.scale; });
const auto pointers = kernel("pointers", [](Struct<Pointers> p, Out<float> y) { y[0] = 1; });
const auto plain = kernel("plain", [](Struct<Plain> p, Out<float> y) { y[0] = 1; });
const auto good = kernel("good", [](Struct<Params> p, Out<float> y) { y[0] = p[&Params::scale]; });

void misuse(Struct<Params> p, Out<float> y, const Device& device, Buffer<float>& b) {
    p[&Params::scale] = 1;
    y[0] = p[&Params::scale] + p[&Params::n];
    device.launch(good, grid(1, 1), 2.0f, b);
    device.launch(good, grid(1, 1), Pointers{}, b);
}
