// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <vector>

#include "bench/gpu/data.hpp"
#include "stdlib/attention/attention.hpp"
#include "stdlib/attention/incremental/incremental.hpp"

namespace ikat::bench {
namespace {

struct Heads {
    std::uint32_t head_dim, sequences, heads, kv_heads, queries, keys;
    bool causal;

    /// The keys that a query sees.
    std::uint64_t keys_of(std::uint64_t query) const {
        const auto seen = std::int64_t(query) + std::int64_t(keys) - std::int64_t(queries) + 1;
        return causal ? std::uint64_t(std::max<std::int64_t>(seen, 0)) : keys;
    }
};

/// One row of O.
template <class T>
std::vector<double> attended(const Heads& shape, const T* query, const T* keys, const T* values, std::uint64_t count) {
    std::vector<double> weights(count), out(shape.head_dim, 0.0);
    double maximum = -INFINITY, sum = 0;
    for (std::uint64_t key = 0; key < count; ++key) {
        double score = 0;
        for (std::uint32_t i = 0; i < shape.head_dim; ++i)
            score += double(query[i]) * double(keys[key * shape.head_dim + i]);
        weights[key] = score / std::sqrt(double(shape.head_dim));
        maximum = std::max(maximum, weights[key]);
    }
    for (double& weight : weights) sum += weight = std::exp(weight - maximum);
    for (std::uint64_t key = 0; key < count; ++key)
        for (std::uint32_t i = 0; i < shape.head_dim; ++i)
            out[i] += weights[key] / sum * double(values[key * shape.head_dim + i]);
    return out;
}

/// Q, K, V and O of a shape.
template <class T>
class AttentionData {
public:
    AttentionData(const Device& device, const Heads& shape)
        : shape_(shape),
          q_(random<T>(device, planes() * shape.queries * shape.head_dim, 1, "Q")),
          k_(random<T>(device, kv_size(), 2, "K")),
          v_(random<T>(device, kv_size(), 3, "V")),
          o_(results<T>(device, q_.host.size(), "O")) {}

    runtime::TensorView q() const { return rows(q_.buffer, shape_.heads, shape_.queries); }
    runtime::TensorView k() const { return rows(k_.buffer, shape_.kv_heads, shape_.keys); }
    runtime::TensorView v() const { return rows(v_.buffer, shape_.kv_heads, shape_.keys); }
    runtime::MutableTensorView o() { return rows(o_, shape_.heads, shape_.queries); }

    double error() const {
        const std::vector<T> host = o_.download();
        Difference difference;
        for (std::uint64_t sample = 0; sample < samples; ++sample) {
            const std::uint64_t plane = mixed(sample) % planes(), query = mixed(sample + samples) % shape_.queries;
            const std::uint64_t group = shape_.heads / shape_.kv_heads;
            const std::uint64_t kv_plane = plane / shape_.heads * shape_.kv_heads + plane % shape_.heads / group;
            const std::uint64_t row = (plane * shape_.queries + query) * shape_.head_dim;
            const std::uint64_t first_key = kv_plane * shape_.keys * shape_.head_dim;
            const std::vector<double> expected = attended(shape_, q_.host.data() + row, k_.host.data() + first_key,
                                                          v_.host.data() + first_key, shape_.keys_of(query));
            for (std::uint64_t i = 0; i < shape_.head_dim; ++i) difference.add(double(host[row + i]), expected[i]);
        }
        return difference.value();
    }
    /// All but its launch.
    static Case as_case(std::shared_ptr<AttentionData> self) {
        const Heads& shape = self->shape_;
        Case out;
        out.error = [self] { return self->error(); };
        out.allowed = allowed_of<T>();
        double scores = 0;
        for (std::uint64_t query = 0; query < shape.queries; ++query) scores += double(shape.keys_of(query));
        out.operations = 4.0 * double(self->planes()) * scores * shape.head_dim;
        out.bytes = 2.0 * double(sizeof(T)) * double(self->q_.host.size() + self->kv_size());
        return out;
    }

private:
    std::uint64_t planes() const { return std::uint64_t{shape_.sequences} * shape_.heads; }
    std::uint64_t kv_size() const {
        return std::uint64_t{shape_.sequences} * shape_.kv_heads * shape_.keys * shape_.head_dim;
    }
    auto rows(auto& buffer, std::uint32_t heads, std::uint32_t count) const {
        return buffer.view(shape_.sequences, heads, count, shape_.head_dim);
    }

    Heads shape_;
    Data<T> q_, k_, v_;
    Buffer<T> o_;
};

template <class T>
Case flash_attention(const Device& device, Words& words) {
    const auto path = stdlib::AttentionPath(words.one_of("the path", {"chosen", "mma_sync", "wgmma"}));
    const bool causal = words.one_of("the mask", {"full", "causal"}) == 1;
    Heads shape{};
    shape.head_dim = words.number("the head's dimension");
    shape.sequences = words.number("sequences"), shape.heads = words.number("heads");
    shape.kv_heads = words.number("heads of K and V");
    shape.queries = words.number("queries"), shape.keys = words.number("keys"), shape.causal = causal;
    words.end();
    auto data = std::make_shared<AttentionData<T>>(device, shape);
    Case out = data->as_case(data);
    out.launch = [=](const Queue& queue) {
        stdlib::flash_attention(queue, data->q(), data->k(), data->v(), data->o(), {.causal = causal, .path = path});
    };
    return out;
}

template <class T>
Case incremental_attention(const Device& device, Words& words) {
    Heads shape{};
    shape.queries = 1;
    shape.head_dim = words.number("the head's dimension");
    shape.sequences = words.number("sequences"), shape.heads = words.number("heads");
    shape.kv_heads = words.number("heads of K and V"), shape.keys = words.number("keys");
    words.end();
    auto data = std::make_shared<AttentionData<T>>(device, shape);
    auto space = std::make_shared<Buffer<std::uint8_t>>(device.buffer<std::uint8_t>(
        stdlib::incremental_attention_workspace(device, data->q(), data->k(), data->v(), data->o()), "workspace"));
    Case out = data->as_case(data);
    out.launch = [=](const Queue& queue) {
        stdlib::incremental_attention(queue, data->q(), data->k(), data->v(), data->o(), {.workspace = *space});
    };
    return out;
}

}  // namespace

Case flash_attention_case(const Device& device, Words& words) {
    return of_type<float, half, bfloat16>(words, [&](auto t) { return flash_attention<decltype(t)>(device, words); });
}
Case incremental_attention_case(const Device& device, Words& words) {
    return of_type<float, half, bfloat16>(words,
                                          [&](auto t) { return incremental_attention<decltype(t)>(device, words); });
}

}  // namespace ikat::bench
