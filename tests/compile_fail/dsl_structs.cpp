// SPDX-License-Identifier: Apache-2.0
// clang-format off
// What a struct parameter may be.
// expect: a kernel takes a struct as Struct<Params>, and reads its fields as p[&Params::scale]
// expect: Struct<Params> is a parameter if BOOST_HANA_DEFINE_STRUCT defines Params, with integers, floats, bool, slices and views of buffers, and structs of these
// expect: the fields of a struct parameter, and of a name for an element, are read-only: copy one to a variable, f32 scale = p[&Params::scale], or all of them, Var<Params> mine = p
// expect: this name refers to a struct that was read from memory: declare it as Var<Body> to change it, or write bodies[i] = ... to store
// expect: a struct is assigned from a struct of the same type: a variable, an element, a parameter, or a host struct
// expect: a struct in a variable or in memory has fields that are numbers, bool, or structs of these
// expect: a struct in memory is not packed: each of its fields is read and stored at a multiple of its width; leave out #pragma pack, or take the bytes as In<std::uint8_t>
// expect: In<T> and Constant<T> are read-only: declare the parameter as InOut<T> or Out<T> to store
// expect: Out<T> is write-only: declare the parameter as InOut<T>
// expect: launch: the buffer's element type differs from that of the kernel's In, Out or InOut parameter
// expect: u32 and f32 do not mix
// expect: launch: the kernel's parameter is a Struct: pass an object of that struct
// errors: 17
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
#pragma pack(push, 1)
struct Packed {
    BOOST_HANA_DEFINE_STRUCT(Packed, (std::uint8_t, kind), (float, value));
};
#pragma pack(pop)
struct Handles {
    BOOST_HANA_DEFINE_STRUCT(Handles, (BufferSlice<float>, x));
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

const auto elements = kernel("elements", [](InOut<Params> e) { e[0] = e[1]; });
const auto packed = kernel("packed", [](In<Packed> p, Out<float> y) { y[0] = p[0][&Packed::value]; });
const auto of_variable = kernel("of_variable", [](Var<Params> p, Out<float> y) { y[0] = p[&Params::scale]; });

void misuse_of_elements(InOut<Params> e, In<Params> in, Out<Params> out, InOut<float> y, const Device& device,
                        Buffer<float>& b) {
    auto t = e[0];
    t = e[1];
    t[&Params::scale] = 1;
    e[0] = y[0];
    Var<Handles> handles;
    in[0] = e[0];
    y[0] = out[0][&Params::scale];
    device.launch(elements, grid(1, 1), b);
}
