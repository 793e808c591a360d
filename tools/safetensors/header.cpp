// SPDX-License-Identifier: Apache-2.0
// The JSON is read by events, not as a tree: so a name that occurs twice is seen, and memory stays in proportion to
// the header's length.
#include "tools/safetensors/header.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "codegen/support/diagnostic.hpp"

namespace ikat::safetensors {
namespace {

using nlohmann::json;

struct TypeName {
    std::string_view name;
    ir::Type type;
};
// In the order in which the format's own library sorts tensors: the last come first in a file.
constexpr TypeName type_names[] = {
    {"BOOL", ir::Type::Pred},    {"U8", ir::Type::U8},   {"I8", ir::Type::I8},   {"F8_E5M2", ir::Type::E5M2},
    {"F8_E4M3", ir::Type::E4M3}, {"I16", ir::Type::I16}, {"U16", ir::Type::U16}, {"F16", ir::Type::F16},
    {"BF16", ir::Type::BF16},    {"I32", ir::Type::I32}, {"U32", ir::Type::U32}, {"F32", ir::Type::F32},
    {"F64", ir::Type::F64},      {"I64", ir::Type::I64}, {"U64", ir::Type::U64},
};
constexpr const char* metadata_name = "__metadata__";
constexpr const char* hint = "the file is damaged, or was not written as safetensors";

/// A name for a message: whatever its length.
std::string shown(const std::string& name) {
    std::string out = "'";
    for (std::size_t i = 0; i < name.size() && i < 80; ++i) out += std::uint8_t(name[i]) < 32 ? '?' : name[i];
    return out + (name.size() > 80 ? "…'" : "'");
}

/// Of a tensor: no library has as many.
constexpr std::size_t most_extents = 64;

/// Takes the events of a parser, in the order in which the format has them; all others are errors.
class HeaderReader final : public nlohmann::json_sax<json> {
public:
    explicit HeaderReader(const std::string& file) : file_(file) {}
    Header take() { return std::move(header_); }

    bool null() override { refuse("a null"); }
    bool boolean(bool) override { refuse("a boolean"); }
    bool number_integer(number_integer_t) override { refuse("a number below 0"); }
    bool number_float(number_float_t, const string_t&) override {
        refuse("a number that is no integer, or 2^64 or more,");
    }
    bool binary(binary_t&) override { refuse("bytes"); }
    bool number_unsigned(number_unsigned_t number) override {
        if (at_ == At::Shape && entry().shape.size() < most_extents)
            entry().shape.push_back(number);
        else if (at_ == At::Offsets && offsets_ < 2)
            (offsets_++ == 0 ? entry().begin : entry().end) = number;
        else
            refuse("a number");
        return true;
    }
    bool string(string_t& text) override {
        if (at_ == At::Metadata)
            header_.metadata.at(key_) = text;
        else if (at_ == At::Entry && key_ == "dtype")
            entry().type = type_named(text);
        else
            refuse("a string");
        return true;
    }
    bool start_object(std::size_t) override {
        if (at_ == At::Start)
            at_ = At::Names;
        else if (at_ == At::Names)
            at_ = key_ == metadata_name ? At::Metadata : At::Entry;
        else
            refuse("an object");
        return true;
    }
    bool key(string_t& name) override {
        key_ = name;
        if (at_ == At::Names) {
            if (!names_.insert(name).second) fail("the name " + shown(name) + " occurs twice");
            if (name == metadata_name) return true;
            header_.entries.push_back({.name = name});
            fields_.clear();
            offsets_ = 0;
        } else if (at_ == At::Metadata) {
            if (!header_.metadata.try_emplace(name).second)
                fail("the name " + shown(name) + " of the metadata occurs twice");
        } else {
            if (name != "dtype" && name != "shape" && name != "data_offsets")
                fail(subject() + " has " + shown(name) + ", which the format does not have");
            if (!fields_.insert(name).second) fail(subject() + " has '" + name + "' twice");
        }
        return true;
    }
    bool end_object() override {
        if (at_ == At::Entry && (fields_.size() != 3 || offsets_ != 2))
            fail(subject() + " needs 'dtype', 'shape' and two 'data_offsets'");
        at_ = at_ == At::Names ? At::End : At::Names;
        return true;
    }
    bool start_array(std::size_t) override {
        if (at_ == At::Entry && key_ == "shape")
            at_ = At::Shape;
        else if (at_ == At::Entry && key_ == "data_offsets")
            at_ = At::Offsets;
        else
            refuse("a list");
        return true;
    }
    bool end_array() override {
        at_ = At::Entry;
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
        std::string_view why = error.what();  // "[json.exception.parse_error.101] parse error at ...: syntax error ..."
        why.remove_prefix(std::min(why.find(": "), why.size()));
        std::string said;
        for (const char c : why.substr(0, 200)) said += c >= ' ' && c < 127 ? c : '?';
        fail("the header is no JSON in UTF-8, at its byte " + std::to_string(position) + said);
    }

private:
    enum class At : std::uint8_t { Start, Names, Metadata, Entry, Shape, Offsets, End };

    Entry& entry() { return header_.entries.back(); }
    std::string subject() { return "the tensor " + shown(entry().name); }
    [[noreturn]] void fail(const std::string& what) const { throw Error(file_ + ": " + what, hint); }
    /// An event that does not belong where it is.
    [[noreturn]] void refuse(const char* what) {
        const bool in_tensor = at_ == At::Entry || at_ == At::Shape || at_ == At::Offsets;
        const std::string where = in_tensor ? subject() + ", '" + key_ + "'" : "the name " + shown(key_);
        if (at_ == At::Start) fail(std::string("the header is ") + what + " and no object");
        fail("the header has " + std::string(what) + " at " + where);
    }
    ir::Type type_named(const std::string& name) {
        std::string all;
        for (const TypeName& row : type_names) {
            if (row.name == name) return row.type;
            all += std::string(all.empty() ? "" : ", ") + std::string(row.name);
        }
        throw Error(file_ + ": " + subject() + " has the type " + shown(name) + ", which ikat does not have",
                    "types are " + all);
    }

    const std::string& file_;
    Header header_{};
    At at_ = At::Start;
    std::string key_{};
    std::set<std::string> names_{}, fields_{};
    int offsets_ = 0;
};

/// Tensors fill the bytes one after the other, and each as its shape says.
void check_places(const std::vector<Entry>& entries, std::uint64_t bytes, const std::string& file) {
    std::uint64_t at = 0;
    for (const Entry& entry : entries) {
        const auto fail = [&](const std::string& what) {
            throw Error(file + ": the tensor " + shown(entry.name) + what, hint);
        };
        const std::string from = std::to_string(entry.begin), to = std::to_string(entry.end);
        if (entry.begin > entry.end) fail(" has the data_offsets " + from + " and " + to + ", which are in no order");
        if (entry.begin != at)
            fail(" begins at byte " + from + (entry.begin < at ? ", inside of the one before it" : ", behind a gap"));
        const std::optional<std::uint64_t> size = bytes_of(entry.type, entry.shape);
        if (!size) fail(" has a shape of 2^64 bytes or more");
        if (*size != entry.end - entry.begin)
            fail(" has " + std::to_string(entry.end - entry.begin) + " bytes, but a shape of " + std::to_string(*size));
        if (entry.end > bytes)
            fail(" ends at byte " + to + ", but the file has " + std::to_string(bytes) + " behind its header");
        at = entry.end;
    }
    if (at != bytes)
        throw Error(file + ": " + std::to_string(bytes - at) + " bytes at its end belong to no tensor", hint);
}

/// A string as JSON.
std::string quoted(const std::string& text) try { return json(text).dump(); } catch (const json::type_error&) {
    throw Error("the name or text " + shown(text) + " is not UTF-8", "files of tensors have names in UTF-8");
}

}  // namespace

Header header_in(std::string_view text, std::uint64_t bytes, const std::string& file) {
    if (!text.starts_with('{')) throw Error(file + ": the header does not begin with '{'", hint);
    HeaderReader reader(file);
    json::sax_parse(text.begin(), text.end(), &reader);  // ends by an Error, if not well
    Header header = reader.take();
    std::ranges::sort(header.entries, {}, [](const Entry& entry) {
        return std::tuple<std::uint64_t, std::uint64_t, std::string_view>(entry.begin, entry.end, entry.name);
    });
    check_places(header.entries, bytes, file);
    return header;
}

std::string text_of(const Header& header) {
    std::string out;
    const auto item = [&out](const std::string& name) { out += (out.empty() ? "{" : ",") + quoted(name) + ":"; };
    if (!header.metadata.empty()) {
        std::string all;
        for (const auto& [name, text] : header.metadata)
            all += (all.empty() ? "" : ",") + quoted(name) + ":" + quoted(text);
        item(metadata_name);
        out += "{" + all + "}";
    }
    for (const Entry& entry : header.entries) {
        std::string extents;
        for (const std::uint64_t extent : entry.shape) extents += (extents.empty() ? "" : ",") + std::to_string(extent);
        item(entry.name);
        out += R"({"dtype":")" + std::string(name_of(entry.type)) + R"(","shape":[)" + extents +
               R"(],"data_offsets":[)" + std::to_string(entry.begin) + "," + std::to_string(entry.end) + "]}";
    }
    out += out.empty() ? "{}" : "}";
    return out.append((8 - out.size() % 8) % 8, ' ');
}

std::string_view name_of(ir::Type type) {
    const auto* found = std::ranges::find(type_names, type, &TypeName::type);
    return found == std::end(type_names) ? std::string_view() : found->name;
}

int rank_of(ir::Type type) { return int(std::end(type_names) - std::ranges::find(type_names, type, &TypeName::type)); }

std::optional<std::uint64_t> bytes_of(ir::Type type, const std::vector<std::uint64_t>& shape) {
    std::uint64_t bytes = ir::info(type).bytes;
    for (const std::uint64_t extent : shape)
        if (__builtin_mul_overflow(bytes, extent, &bytes)) return {};
    return bytes;
}

}  // namespace ikat::safetensors
