// SPDX-License-Identifier: Apache-2.0
// What is written is read again, and is what other programs write and read.
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "codegen/support/half.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/safetensors/files.hpp"

namespace ikat::tests {
namespace safetensors_files {
namespace {

using safetensors::Tensor;
using safetensors::Tensors;
namespace fs = std::filesystem;

Tensor raw(std::string name, ir::Type type, std::vector<std::uint64_t> shape, std::initializer_list<int> bytes) {
    Tensor out{std::move(name), type, std::move(shape)};
    for (const int byte : bytes) out.bytes.push_back(std::byte(byte));
    return out;
}
std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A folder of its own, which is removed with all in it.
struct Folder {
    fs::path path = fs::temp_directory_path() / ("ikat_safetensors_" + std::to_string(getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
    std::size_t files() const { return std::size_t(std::distance(fs::directory_iterator(path), {})); }
};

const std::vector<float> six{1, 2, 3, 4, 5, -6.25f};

TEST_CASE("safetensors: the same bytes as Python's library writes") {
    const Tensors tensors{
        {safetensors::tensor("b.bias", {2}, std::vector<float>{1.5f, -2}, ir::Type::F16),
         safetensors::tensor("a.weight", {2, 3}, six), raw("n", ir::Type::I64, {}, {7, 0, 0, 0, 0, 0, 0, 0}),
         safetensors::tensor("empty", {0, 3}, {}), raw("bytes", ir::Type::U8, {3}, {1, 2, 255}),
         raw("quo\"te\n\u00e9\x01", ir::Type::Pred, {2}, {1, 0}), raw("u", ir::Type::U32, {1}, {5, 0, 0, 0})},
        {{"made by", "a \"test\" \u00fc"}}};
    CHECK(text_of(safetensors::serialise(tensors)) == file_of_python());

    const Tensors read = parsed(file_of_python());
    CHECK(read.metadata == tensors.metadata);
    REQUIRE(read.tensors.size() == tensors.tensors.size());
    for (const Tensor& tensor : tensors.tensors) CHECK(read.at(tensor.name) == tensor);
    CHECK(safetensors::floats(read.at("a.weight")) == six);
    CHECK(safetensors::floats(read.at("b.bias")) == std::vector<float>{1.5f, -2});
}

TEST_CASE("safetensors: every type of one number, in the order of the format") {
    Tensors tensors;
    for (int t = 0; t < ir::type_count; ++t) {
        const auto type = ir::Type(t);
        if (type == ir::Type::Void || ir::is_packed(type)) continue;
        Tensor& made = tensors.tensors.emplace_back("of " + std::string(ir::info(type).name), type);
        made.shape = {3};
        made.bytes.assign(3 * ir::info(type).bytes, std::byte(1));
    }
    const Tensors read = parsed(text_of(safetensors::serialise(tensors)));
    REQUIRE(read.tensors.size() == tensors.tensors.size());
    for (const Tensor& tensor : tensors.tensors) CHECK(read.at(tensor.name) == tensor);
    std::size_t before = 8;
    for (const Tensor& tensor : read.tensors) {
        CHECK(ir::info(tensor.type).bytes <= before);
        before = ir::info(tensor.type).bytes;
    }
    CHECK(safetensors::serialise(read) == safetensors::serialise(tensors));
}

TEST_CASE("safetensors: no tensors, and metadata alone") {
    CHECK(text_of(safetensors::serialise({})) == tensor_file("{}      ", 0));
    CHECK(parsed(tensor_file("{}", 0)) == Tensors{});
    const Tensors read = parsed(tensor_file(R"({"__metadata__":{"b":"2","a":"1"}} )", 0));
    CHECK(read.metadata == std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}});
    CHECK(read.tensors.empty());
}

TEST_CASE("safetensors: blanks, other orders of names and of fields are read") {
    const Tensors read =
        parsed(tensor_file("{ \"z\" : { \"shape\":[ 1 ], \"data_offsets\":[2, 3],\n\"dtype\":\"I8\"},"
                           "\"\\u00e9\":{\"data_offsets\":[0,2],\"shape\":[1,1,1],\"dtype\":\"BF16\"}}   ",
                           3));
    REQUIRE(read.tensors.size() == 2);
    CHECK(read.tensors[0] == raw("\u00e9", ir::Type::BF16, {1, 1, 1}, {0, 1}));  // in the order of the bytes
    CHECK(read.tensors[1] == raw("z", ir::Type::I8, {1}, {2}));
}

TEST_CASE("safetensors: elements as floats") {
    const std::vector<float> numbers{0.1f, -65504, 1e-8f};
    for (const ir::Type type : {ir::Type::F32, ir::Type::F16, ir::Type::BF16}) {
        const std::vector<float> read = safetensors::floats(safetensors::tensor("x", {3}, numbers, type));
        for (std::size_t i = 0; i < numbers.size(); ++i)
            CHECK(read[i] == (type == ir::Type::F32   ? numbers[i]
                              : type == ir::Type::F16 ? float(half(numbers[i]))
                                                      : float(bfloat16(numbers[i]))));
    }
    CHECK_THAT(message_of([] { safetensors::floats(raw("n", ir::Type::I8, {1}, {1})); }),
               contains("the tensor 'n' has elements of i8"));
    CHECK_THAT(message_of([] { safetensors::tensor("x", {2, 2}, six); }), contains("'x' has 6 elements"));
    CHECK_THAT(message_of([] { safetensors::tensor("x", {6}, six, ir::Type::I32); }), contains("the type i32"));
}

TEST_CASE("safetensors: a file is written, replaced and read") {
    const Folder folder;
    const fs::path path = folder.path / "w.safetensors";
    const Tensors first{{safetensors::tensor("w", {6}, six)}, {{"step", "1"}}};
    safetensors::write(path, first);
    CHECK(safetensors::read(path) == first);
    const Tensors second{{safetensors::tensor("w", {3}, std::vector<float>{1, 2, 3})}, {{"step", "2"}}};
    safetensors::write(path, second);
    CHECK(safetensors::read(path) == second);
    CHECK(folder.files() == 1);

    CHECK_THAT(message_of([&] { safetensors::write(folder.path / "none" / "w", first); }),
               contains("cannot be written: No such file or directory"));
    CHECK_THAT(message_of([&] { safetensors::read(folder.path / "none"); }), contains("No such file or directory"));
    CHECK_THAT(message_of([&] { safetensors::read(folder.path); }), contains("cannot be read"));
    fs::create_directories(folder.path / "full" / "inside");
    CHECK_THAT(message_of([&] { safetensors::write(folder.path / "full", first); }), contains("cannot be written"));
    CHECK(folder.files() == 2);  // nothing is left beside it
}

TEST_CASE("safetensors: files and links with the names of incomplete ones are left alone") {
    const Folder folder;
    const fs::path path = folder.path / "w.safetensors", theirs = folder.path / "theirs";
    const auto read = [](const fs::path& from) {
        std::string out;
        std::getline(std::ifstream(from), out);
        return out;
    };
    std::ofstream(theirs) << "theirs";
    std::vector<fs::path> taken;
    for (int n = 0; n < 150; ++n) {
        const std::string own = n == 0 ? "" : "-" + std::to_string(n);
        taken.push_back(path.string() + "." + std::to_string(getpid()) + own + ".partial");
        if (n % 2)
            fs::create_symlink(n % 4 == 1 ? theirs : folder.path / "none", taken.back());
        else
            std::ofstream(taken.back()) << "theirs";
    }
    const Tensors tensors{{safetensors::tensor("w", {6}, six)}};
    CHECK_THAT(message_of([&] { safetensors::write(path, tensors); }),
               contains("cannot be written: there are 100 files already"));
    CHECK(!fs::exists(path));
    safetensors::write(path, tensors);
    CHECK(safetensors::read(path) == tensors);
    CHECK(folder.files() == taken.size() + 2);
    for (std::size_t n = 0; n < taken.size(); ++n) {
        CHECK(fs::is_symlink(taken[n]) == (n % 2 == 1));
        CHECK(read(taken[n]) == (n % 4 == 3 ? "" : "theirs"));
    }
}

TEST_CASE("safetensors: where there is no room, the old file stays") {
    const Folder folder;
    const fs::path path = folder.path / "w.safetensors";
    const Tensors old{{safetensors::tensor("w", {6}, six)}};
    safetensors::write(path, old);
    Tensors large;
    large.tensors.push_back({"large", ir::Type::U8, {1 << 20}, std::vector<std::byte>(1 << 20)});

    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1 << 16, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string message = message_of([&] { safetensors::write(path, large); });
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK_THAT(message, contains("w.safetensors: cannot be written: File too large"));
    CHECK(safetensors::read(path) == old);
    CHECK(folder.files() == 1);
}

TEST_CASE("safetensors: what no file can hold is refused") {
    const auto refused = [](Tensors tensors) { return message_of([&] { safetensors::serialise(tensors); }); };
    const Tensor one = safetensors::tensor("w", {1}, std::vector<float>{1});
    CHECK_THAT(refused({{one, one}}), contains("two tensors have the name 'w'"));
    CHECK_THAT(refused({{one, raw("w", ir::Type::U8, {1}, {1})}}), contains("two tensors have the name 'w'"));
    CHECK_THAT(refused({{raw("w", ir::Type::F16x2, {1}, {1, 2, 3, 4})}}), contains("the type f16x2"));
    CHECK_THAT(refused({{raw("w", ir::Type::F32, {2}, {1, 2, 3, 4})}}), contains("has 4 bytes"));
    CHECK_THAT(refused({{raw("w", ir::Type::F32, {1ull << 62, 4}, {})}}), contains("has 0 bytes"));
    CHECK_THAT(refused({{raw("__metadata__", ir::Type::U8, {1}, {1})}}), contains("has the name of the metadata"));
    CHECK_THAT(refused({{raw("\xff", ir::Type::U8, {1}, {1})}}), contains("is not UTF-8"));
    CHECK_THAT(refused({{}, {{"made by", "\xc3"}}}), contains("is not UTF-8"));
}

TEST_CASE("safetensors: a name that is not there") {
    const Tensors tensors = parsed(file_of_python());
    CHECK(tensors.find("w") == nullptr);
    const std::string message = message_of([&] { tensors.at("w"); });
    CHECK_THAT(message, contains("there is no tensor 'w'"));
    CHECK_THAT(message, contains("there are n, a.weight, empty"));
}

}  // namespace
}  // namespace safetensors_files
}  // namespace ikat::tests
