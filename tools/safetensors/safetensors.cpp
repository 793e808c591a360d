// SPDX-License-Identifier: Apache-2.0
#include "tools/safetensors/safetensors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <spanstream>
#include <utility>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/half.hpp"
#include "tools/safetensors/header.hpp"

namespace ikat::safetensors {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "elements are little-endian, as in a file");

constexpr std::uint64_t before_header = 8;  // the bytes of its length

/// Reads what follows in the stream, or throws Error.
void take(std::istream& from, void* to, std::uint64_t bytes, const std::string& name) {
    if (bytes != 0 && !from.read(static_cast<char*>(to), std::streamsize(bytes)))
        throw Error(name + ": cannot be read", "it may be a folder, or have changed meanwhile");
}

/// Sizes are compared with `size`, that of the stream, before there is memory for them.
Tensors read_from(std::istream& from, std::uint64_t size, const std::string& name) {
    constexpr const char* hint = "the file is damaged, or was not written as safetensors";
    const auto count = [](std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; };
    if (size < before_header) throw Error(name + ": has " + count(size) + ", too few for a file of tensors", hint);
    std::uint64_t length = 0;
    take(from, &length, before_header, name);
    if (length > longest_header)
        throw Error(
            name + ": begins with " + std::to_string(length) + " as the length of its header, of at most 100 MB", hint);
    if (length > size - before_header)
        throw Error(name + ": ends within its header: has " + count(size) + " and a header of " + count(length), hint);
    std::string text(length, '\0');
    take(from, text.data(), length, name);

    Header header = header_in(text, size - before_header - length, name);
    Tensors out{.metadata = std::move(header.metadata)};
    for (Entry& entry : header.entries) {
        Tensor& made = out.tensors.emplace_back(std::move(entry.name), entry.type, std::move(entry.shape));
        made.bytes.resize(entry.end - entry.begin);
        take(from, made.bytes.data(), made.bytes.size(), name);
    }
    return out;
}

/// Where each tensor will be, and the tensors in that order.
std::pair<Header, std::vector<const Tensor*>> arranged(const Tensors& tensors) {
    std::vector<const Tensor*> order;
    for (const Tensor& tensor : tensors.tensors) order.push_back(&tensor);
    std::ranges::sort(order, {}, [](const Tensor* tensor) {
        return std::pair<int, std::string_view>(rank_of(tensor->type), tensor->name);
    });
    Header header{.metadata = tensors.metadata};
    std::uint64_t at = 0;
    for (const Tensor* tensor : order) {
        const std::string what = "the tensor '" + tensor->name + "'";
        if (name_of(tensor->type).empty())
            throw Error(what + " has the type " + std::string(ir::info(tensor->type).name) +
                            ", which files of tensors do not have",
                        "write its lanes as elements");
        if (bytes_of(tensor->type, tensor->shape) != tensor->bytes.size())
            throw Error(what + " has " + std::to_string(tensor->bytes.size()) + " bytes, which its shape does not have",
                        "an extent for each dimension, and all elements");
        if (tensor->name == "__metadata__") throw Error(what + " has the name of the metadata", "choose another name");
        header.entries.push_back({tensor->name, tensor->type, tensor->shape, at, at + tensor->bytes.size()});
        at += tensor->bytes.size();
    }
    std::vector<std::string_view> names;
    for (const Tensor* tensor : order) names.push_back(tensor->name);
    std::ranges::sort(names);
    if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
        throw Error("two tensors have the name '" + std::string(*twice) + "'", "names in a file must differ");
    return {std::move(header), std::move(order)};
}

/// Calls put(bytes, size) with each piece of a file.
void put_all(const Tensors& tensors, auto&& put) {
    const auto [header, order] = arranged(tensors);
    const std::string text = text_of(header);
    const std::uint64_t length = text.size();
    if (length > longest_header)
        throw Error("the names of the tensors take more than 100 MB", "write them into several files");
    put(&length, sizeof length);
    put(text.data(), text.size());
    for (const Tensor* tensor : order) put(tensor->bytes.data(), tensor->bytes.size());
}

/// A new file beside the target, which is removed unless it has taken its place. What has such a name already, a link
/// too, is left alone: the next name is tried.
class Partial {
public:
    explicit Partial(const fs::path& target) : target_(target) {
        static std::atomic<unsigned> number{0};
        constexpr int names = 100;
        for (int n = 0; n < names && !file_; ++n) {
            const unsigned own = number++;
            path_ = target;
            path_ += "." + std::to_string(getpid()) + (own == 0 ? "" : "-" + std::to_string(own)) + ".partial";
            const int descriptor = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
            if (descriptor < 0 && errno != EEXIST) fail();
            if (descriptor < 0) continue;
            file_ = fdopen(descriptor, "wb");
            if (file_) continue;
            const int why = errno;
            close(descriptor), remove();
            fail(std::strerror(why));
        }
        if (!file_)
            throw Error(target_.string() + ": cannot be written: there are " + std::to_string(names) +
                            " files already with the names for what is not complete, as " + path_.string(),
                        "remove those that end with .partial, if no program writes to them");
    }
    ~Partial() {
        if (file_) std::fclose(file_);
        if (!is_done_) remove();
    }
    Partial(const Partial&) = delete;
    Partial& operator=(const Partial&) = delete;

    void write(const Tensors& tensors) {
        put_all(tensors, [&](const void* bytes, std::uint64_t size) {
            if (std::fwrite(bytes, 1, size, file_) != size) fail();
        });
        if (std::fclose(std::exchange(file_, nullptr)) != 0) fail();
        std::error_code error;
        fs::rename(path_, target_, error);
        if (error) fail(error.message());
        is_done_ = true;
    }

private:
    [[noreturn]] void fail(const std::string& why = std::strerror(errno)) const {
        throw Error(target_.string() + ": cannot be written: " + why,
                    "the folder must be there, and writable, with room for the whole file beside an old one");
    }
    void remove() const {
        std::error_code ignored;
        fs::remove(path_, ignored);
    }

    fs::path target_, path_;
    std::FILE* file_ = nullptr;
    bool is_done_ = false;
};

}  // namespace

const Tensor* Tensors::find(std::string_view name) const {
    const auto found = std::ranges::find(tensors, name, &Tensor::name);
    return found == tensors.end() ? nullptr : &*found;
}

const Tensor& Tensors::at(std::string_view name) const {
    if (const Tensor* found = find(name)) return *found;
    std::string all;
    for (std::size_t i = 0; i < tensors.size() && i < 20; ++i) all += (i ? ", " : "") + tensors[i].name;
    throw Error("there is no tensor '" + std::string(name) + "'",
                tensors.empty() ? "there are none" : "there are " + all + (tensors.size() > 20 ? ", …" : ""));
}

Tensor tensor(std::string name, std::vector<std::uint64_t> shape, std::span<const float> elements, ir::Type type) {
    Tensor out{std::move(name), type, std::move(shape)};
    const std::optional<std::uint64_t> bytes = bytes_of(type, out.shape);
    if (type != ir::Type::F32 && type != ir::Type::F16 && type != ir::Type::BF16)
        throw Error("the tensor '" + out.name + "' of floats cannot have the type " + std::string(ir::info(type).name),
                    "types of floats are f32, f16 and bf16");
    if (bytes != elements.size() * ir::info(type).bytes)
        throw Error("the tensor '" + out.name + "' has " + std::to_string(elements.size()) +
                        " elements, which its shape does not have",
                    "an extent for each dimension, and all elements");
    out.bytes.resize(*bytes);
    const auto put = [&]<class T>(T) {
        for (std::size_t i = 0; i < elements.size(); ++i) {
            const T element(elements[i]);
            std::memcpy(out.bytes.data() + i * sizeof(T), &element, sizeof(T));
        }
    };
    if (type == ir::Type::F32) put(float());
    if (type == ir::Type::F16) put(half());
    if (type == ir::Type::BF16) put(bfloat16());
    return out;
}

std::vector<float> floats(const Tensor& tensor) {
    const auto read = [&]<class T>(T element) {
        std::vector<float> out(tensor.bytes.size() / sizeof(T));
        for (std::size_t i = 0; i < out.size(); ++i) {
            std::memcpy(&element, tensor.bytes.data() + i * sizeof(T), sizeof(T));
            out[i] = float(element);
        }
        return out;
    };
    if (tensor.type == ir::Type::F32) return read(float());
    if (tensor.type == ir::Type::F16) return read(half());
    if (tensor.type == ir::Type::BF16) return read(bfloat16());
    throw Error("the tensor '" + tensor.name + "' has elements of " + std::string(ir::info(tensor.type).name),
                "f32, f16 and bf16 can be read as floats; other elements are in its bytes");
}

Tensors read(const fs::path& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = file ? std::streamoff(file.tellg()) : -1;
    if (size < 0)
        throw Error(path.string() + ": cannot be read: " + std::strerror(errno), "give the path of a file of tensors");
    file.seekg(0);
    try {
        return read_from(file, std::uint64_t(size), path.string());
    } catch (const std::bad_alloc&) {
        throw Error(path.string() + ": has " + std::to_string(size) + " bytes, more than there is memory for",
                    "give a file that fits");
    }
}

Tensors parse(std::span<const std::byte> bytes, const std::string& name) {
    std::ispanstream stream(std::span(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return read_from(stream, bytes.size(), name);
}

void write(const fs::path& file, const Tensors& tensors) { Partial(file).write(tensors); }

std::vector<std::byte> serialise(const Tensors& tensors) {
    std::vector<std::byte> out;
    put_all(tensors, [&](const void* bytes, std::uint64_t size) {
        const auto* first = static_cast<const std::byte*>(bytes);
        out.insert(out.end(), first, first + size);
    });
    return out;
}

}  // namespace ikat::safetensors
