// SPDX-License-Identifier: Apache-2.0
// Each way in which a file can be wrong is an Error that says so.
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/safetensors/files.hpp"

namespace ikat::tests {
namespace safetensors_refused {
namespace {

using namespace std::string_literals;

std::string refused(const std::string& file) {
    return message_of([&] { parsed(file); });
}
/// A header with one tensor, w, of two floats, in which `from` is `to`.
std::string changed(std::string_view from, std::string_view to, std::size_t bytes = 8) {
    std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    const std::size_t at = header.find(from);
    REQUIRE(at != header.npos);
    return tensor_file(header.replace(at, from.size(), to), bytes);
}
/// A header with these two tensors of bytes.
std::string two(const char* first, const char* second, std::size_t bytes = 8) {
    return tensor_file(R"({"a":{"dtype":"U8",)"s + first + R"(},"b":{"dtype":"U8",)" + second + "}}", bytes);
}

TEST_CASE("safetensors: files that end early or late") {
    const std::string file = changed("w", "w");
    CHECK(refused(file).empty());
    for (std::size_t length = 0; length < file.size(); ++length) {
        INFO(length);
        const char* message = length < 8                 ? "too few for a file of tensors"
                              : length < file.size() - 8 ? "ends within its header"
                                                         : "'w' ends at byte 8";
        CHECK_THAT(refused(file.substr(0, length)), contains(message));
    }
    CHECK_THAT(refused(""), contains("has 0 bytes, too few for a file of tensors"));
    CHECK_THAT(refused(file.substr(0, 20)), contains("ends within its header: has 20 bytes"));
    CHECK_THAT(refused(file.substr(0, file.size() - 1)), contains("'w' ends at byte 8, but the file has 7"));
    CHECK_THAT(refused(file + "x"), contains("1 bytes at its end belong to no tensor"));
    CHECK_THAT(refused("GGUF\3\0\0\0 and more"s), contains("as the length of its header, of at most 100 MB"));
    CHECK_THAT(refused(std::string(64, '\xff')), contains("18446744073709551615 as the length of its header"));
}

TEST_CASE("safetensors: headers that are no JSON, or another one") {
    const std::pair<const char*, const char*> cases[] = {
        {"", "does not begin with '{'"},
        {" {}", "does not begin with '{'"},
        {"[]", "does not begin with '{'"},
        {"{", "no JSON in UTF-8, at its byte 2"},
        {"{}}", "no JSON in UTF-8, at its byte 3"},
        {"{\"a\"}", "no JSON in UTF-8"},
        {"{\"a\xff\":{}}", "no JSON in UTF-8, at its byte 4"},
        {"{\"\xed\xa0\x80\":{}}", "no JSON in UTF-8"},  // half of a surrogate pair
        {"{\"\\ud800\":{}}", "no JSON in UTF-8"},
        {R"({"a":null})", "a null at the name 'a'"},
        {R"({"a":true})", "a boolean at the name 'a'"},
        {R"({"a":1})", "a number at the name 'a'"},
        {R"({"a":"b"})", "a string at the name 'a'"},
        {R"({"a":[]})", "a list at the name 'a'"},
        {R"({"a":{}})", "the tensor 'a' needs 'dtype', 'shape' and two 'data_offsets'"},
        {R"({"__metadata__":1})", "a number at the name '__metadata__'"},
        {R"({"__metadata__":{"a":1}})", "a number at the name 'a'"},
        {R"({"__metadata__":{"a":{}}})", "an object at the name 'a'"},
        {R"({"__metadata__":{"a":"1","a":"2"}})", "the name 'a' of the metadata occurs twice"},
        {R"({"__metadata__":{},"__metadata__":{}})", "the name '__metadata__' occurs twice"},
    };
    for (const auto& [header, message] : cases) {
        INFO(header);
        CHECK_THAT(refused(tensor_file(header, 0)), contains(message));
    }
    std::string deep = "{";
    for (int i = 0; i < 100'000; ++i) deep += "\"a\":{";
    CHECK_THAT(refused(tensor_file(deep, 0)), contains("has 'a', which the format does not have"));
    CHECK(refused(tensor_file("{\"" + std::string(100'000, 'x') + "\":1}", 0)).size() < 400);
}

TEST_CASE("safetensors: tensors that are not as the format says") {
    CHECK_THAT(refused(changed("F32", "F4")), contains("'w' has the type 'F4', which ikat does not have"));
    CHECK_THAT(refused(changed("\"F32\"", "32")), contains("a number at the tensor 'w', 'dtype'"));
    CHECK_THAT(refused(changed("[2]", "2")), contains("a number at the tensor 'w', 'shape'"));
    std::string extents = "0";
    for (int i = 0; i < 64; ++i) extents += ",0";
    CHECK_THAT(refused(changed("[2]", "[" + extents + "]")), contains("a number at the tensor 'w', 'shape'"));
    CHECK_THAT(refused(changed("[2]", "[-2]")), contains("a number below 0 at the tensor 'w', 'shape'"));
    CHECK_THAT(refused(changed("[2]", "[2.0]")), contains("a number that is no integer"));
    CHECK_THAT(refused(changed("[2]", "[18446744073709551616]")), contains("or 2^64 or more"));
    CHECK_THAT(refused(changed("[2]", "[1e400]")), contains("no JSON"));
    CHECK_THAT(refused(changed("[2]", "[[2]]")), contains("a list at the tensor 'w', 'shape'"));
    CHECK_THAT(refused(changed("[2]", "[\"2\"]")), contains("a string at the tensor 'w', 'shape'"));
    CHECK_THAT(refused(changed("[2]", "[3]")), contains("has 8 bytes, but a shape of 12"));
    CHECK_THAT(refused(changed("[2]", "[4294967296,4294967298]")), contains("has a shape of 2^64 bytes or more"));
    CHECK_THAT(refused(changed("[2]", "[9223372036854775808,2,0]")), contains("has a shape of 2^64 bytes or more"));
    CHECK_THAT(refused(changed("[0,8]", "[0,8,8]")), contains("a number at the tensor 'w', 'data_offsets'"));
    CHECK_THAT(refused(changed("[0,8]", "[0]")), contains("two 'data_offsets'"));
    CHECK_THAT(refused(changed("[0,8]", "[8,0]")), contains("which are in no order"));
    CHECK_THAT(refused(changed("[0,8]", "[4,12]", 12)), contains("'w' begins at byte 4, behind a gap"));
    CHECK_THAT(refused(changed("[2],\"data_offsets\":[0,8]",
                               "[4611686018427387903],\"data_offsets\":[0,18446744073709551612]")),
               contains("ends at byte 18446744073709551612, but the file has 8"));
    CHECK_THAT(refused(changed("\"shape\"", "\"shapes\"")),
               contains("'w' has 'shapes', which the format does not have"));
    CHECK_THAT(refused(changed("\"dtype\":", "\"shape\":[2],\"dtype\":")), contains("'w' has 'shape' twice"));
}

TEST_CASE("safetensors: tensors that do not follow each other") {
    const char* first = R"("shape":[4],"data_offsets":[0,4])";
    CHECK(refused(two(first, R"("shape":[4],"data_offsets":[4,8])")).empty());
    CHECK_THAT(refused(two(first, R"("shape":[4],"data_offsets":[0,4])", 4)), contains("inside of the one before it"));
    CHECK_THAT(refused(two(first, R"("shape":[5],"data_offsets":[3,8])")), contains("'b' begins at byte 3, inside"));
    CHECK_THAT(refused(two(first, R"("shape":[3],"data_offsets":[5,8])")), contains("'b' begins at byte 5, behind a"));
    CHECK_THAT(refused(two(first, R"("shape":[0],"data_offsets":[2,2])", 4)), contains("inside of the one before it"));
    std::string same = two(first, R"("shape":[4],"data_offsets":[4,8])");
    same[same.find("\"b\"") + 1] = 'a';
    CHECK_THAT(refused(same), contains("the name 'a' occurs twice"));
}

}  // namespace
}  // namespace safetensors_refused
}  // namespace ikat::tests
