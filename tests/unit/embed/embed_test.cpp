// SPDX-License-Identifier: Apache-2.0
// The files that ikat_add_kernels() writes, and kernels from such files. tests/package shows that the files compile.
#include <ikat/ikat.hpp>

#include <cstring>

#include "codegen/pipeline/compile.hpp"
#include "runtime/embedded.hpp"
#include "tests/catch.hpp"
#include "tools/embed/generate.hpp"

using namespace ikat;

namespace {

const auto twice = kernel("twice_f32", params("x", "n"), [](InOut<float> x, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] { x[i] = x[i] + x[i]; });
    check(n < 1000, "a \"text\" with \\ and %");
});
IKAT_EXPORT_KERNEL(twice)

embed::Generated generated(std::vector<std::string> targets) {
    const embed::Named named[] = {{"twice", twice.handle()}};
    return embed::generate(named, {.name = "app_kernels", .targets = std::move(targets), .ptxas = std::nullopt});
}

std::size_t place(const std::string& text, const std::string& part) {
    INFO(text);
    const std::size_t at = text.find(part);
    REQUIRE(at != text.npos);
    return at;
}

}  // namespace

TEST_CASE("exported kernels are found by name") {
    const auto kernels = exported_kernels();
    REQUIRE(kernels.size() == 1);
    CHECK(kernels[0].name == std::string("twice"));
    CHECK(kernels[0].handle().name() == std::string("twice_f32"));
}

TEST_CASE("the header names the variable, the source its entry and an image per target, oldest first") {
    const embed::Generated files = generated({"sm_90", "sm_75"});
    place(files.header, "namespace app_kernels {\nextern const ikat::EmbeddedKernel twice;\n}\n");
    place(files.source, "twice{\"twice_f32\", twice_images}");
    CHECK(place(files.source, "{\"sm_75\",") < place(files.source, "{\"sm_90\","));
    place(files.source, "\".target sm_75\\n\"");
}

TEST_CASE("two kernels of the same name and unknown targets are errors") {
    const embed::Named both[] = {{"twice", twice.handle()}, {"twice", twice.handle()}};
    CHECK_THROWS_AS(embed::generate(both, {.name = "k", .targets = {"sm_80"}, .ptxas = std::nullopt}), Error);
    CHECK_THROWS_AS(generated({"sm_8"}), Error);
}

TEST_CASE("a device takes the newest image that it can run") {
    const runtime::EmbeddedImage images[] = {{"sm_75", "a"}, {"sm_80", "b"}, {"sm_90a", "c"}};
    const runtime::EmbeddedKernel kernel{"k", images};
    CHECK(image_for(kernel, "sm_75")->ptx == "a");
    CHECK(image_for(kernel, "sm_86")->ptx == "b");
    CHECK(image_for(kernel, "sm_90")->ptx == "b");
    CHECK(image_for(kernel, "sm_90a")->ptx == "c");
    CHECK(image_for(kernel, "sm_120")->ptx == "b");
    const runtime::EmbeddedKernel newer{"k", std::span(images).subspan(1)};
    CHECK(image_for(newer, "sm_75") == nullptr);
    const Device device = Device::open({.device = "emulator", .target = "sm_75"});
    CHECK_THROWS_WITH(load(device, newer), Catch::Contains("'k' is not embedded for sm_75"));
}

TEST_CASE("parameters lie at their alignments") {
    const Device device = Device::open({.device = "emulator"});
    const auto x = device.buffer<float>(4);
    const auto bytes = runtime::parameters(std::uint8_t(7), 2.0f, x, -1.5, half(1.0f));
    REQUIRE(bytes.size() == 26);
    const auto at = [&]<class T>(std::size_t offset, T) {
        T out;
        std::memcpy(&out, bytes.data() + offset, sizeof(T));
        return out;
    };
    CHECK(at(0, std::uint8_t()) == 7);
    CHECK(at(4, float()) == 2.0f);
    CHECK(at(8, std::uint64_t()) == x.address());
    CHECK(at(16, double()) == -1.5);
    CHECK(at(24, std::uint16_t()) == 0x3c00);
}

TEST_CASE("an embedded kernel is launched as the kernel itself, and findings name its source") {
    const Device device = Device::open({.device = "emulator"});
    const std::string text = file_text(compile(twice.ast(), {.target = "sm_80"}));
    const runtime::EmbeddedImage images[] = {{"sm_80", text}};
    const runtime::EmbeddedKernel embedded{"twice_f32", images};
    const runtime::Module module = load(device, embedded);
    auto x = device.upload(std::vector<float>{1, 2, 3}, "x");
    device.launch(module, embedded.name, grid(3, 32), x, 3);
    CHECK(x.download() == std::vector<float>{2, 4, 6});
    CHECK_THROWS_WITH(device.launch(module, embedded.name, grid(3, 32), x),
                      Catch::Contains("it takes 2 arguments, not 1"));
    CHECK_THROWS_WITH(device.launch(module, embedded.name, grid(3, 32), x, -1),
                      Catch::Contains("-1 does not fit parameter 'n'"));
    // An access out of bounds: of the source line, whose file has lost its folder.
    CHECK_THROWS_WITH(device.launch(module, embedded.name, grid(5, 32), x, 5),
                      Catch::StartsWith("embed_test.cpp:18:") && Catch::Contains("'x'"));
}

TEST_CASE("the source has a kernel's section") {
    const embed::Generated files = generated({"sm_80"});
    CHECK(place(files.source, ".section .ikat\\n") < place(files.source, "what a launch has to know of twice_f32"));
}
