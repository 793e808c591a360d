// SPDX-License-Identifier: Apache-2.0
// A transformer layer of the library's functions: a prompt, then one token after it, through two layers with a cache.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

constexpr std::uint32_t heads = 2, kv_heads = 1, head_dim = 64, width = heads * head_dim, hidden = 192, capacity = 32;
constexpr std::uint32_t row = width + 2 * kv_heads * head_dim;  // Q, K and V of a token
constexpr float epsilon = 1e-5f, base = 10000;

struct Layer {
    Buffer<bfloat16> norm_1, qkv, out, norm_2, gate_up, down;  // weights
    Buffer<bfloat16> K, V;                                     // the cache
};

// x += attention(norm(x)), x += feed_forward(norm(x)), for the tokens at `positions`, before which `cached` are cached.
void run(const Device& device, Layer& layer, Buffer<bfloat16>& tokens, const Buffer<std::uint32_t>& positions,
         std::uint32_t cached) {
    const auto n = std::uint32_t(positions.size()), keys = cached + n;
    auto normed = device.buffer<bfloat16>(n * width), all = device.buffer<bfloat16>(n * row),
         sums = device.buffer<bfloat16>(n * width), both = device.buffer<bfloat16>(n * 2 * hidden),
         gated = device.buffer<bfloat16>(n * hidden);
    const auto x = tokens.view(n, width), y = normed.view(n, width), qkv = all.view(n, row), o = sums.view(n, width),
               gate_up = both.view(n, 2 * hidden), h = gated.view(n, hidden);
    const auto q = qkv.columns(0, width).split(head_dim), k = qkv.columns(width, kv_heads * head_dim).split(head_dim),
               v = qkv.columns(width + kv_heads * head_dim, kv_heads * head_dim).split(head_dim);
    const auto K = layer.K.view(capacity, kv_heads, head_dim), V = layer.V.view(capacity, kv_heads, head_dim);
    const std::uint32_t used = keys * kv_heads * head_dim;  // of the cache

    rmsnorm(device, x, layer.norm_1, y, epsilon);
    gemm_tensor_core(device, y, layer.qkv.view(width, row), qkv);
    rope(device, Rope::Neox, q, positions, head_dim, base);
    rope(device, Rope::Neox, k, positions, head_dim, base);
    kv_scatter(device, k, positions, K);
    kv_scatter(device, v, positions, V);
    flash_attention(device, heads_in_rows(q), heads_in_rows(layer.K.slice(0, used).view(keys, kv_heads, head_dim)),
                    heads_in_rows(layer.V.slice(0, used).view(keys, kv_heads, head_dim)),
                    heads_in_rows(o.split(head_dim)), {.causal = true});
    gemm_tensor_core(device, o, layer.out.view(width, width), x, {.beta = 1});

    rmsnorm(device, x, layer.norm_2, y, epsilon);
    gemm_tensor_core(device, y, layer.gate_up.view(width, 2 * hidden), gate_up);
    elementwise(device, Binary::fused_swiglu, gate_up.columns(0, hidden), gate_up.columns(hidden, hidden), h);
    gemm_tensor_core(device, h, layer.down.view(hidden, width), x, {.beta = 1});
}

using Numbers = std::vector<double>;

Numbers random_numbers(std::size_t count, double size, std::uint32_t seed) {
    Numbers out;
    for (std::size_t i = 0; i < count; ++i) {
        seed = seed * 1664525 + 1013904223;
        out.push_back(double(bfloat16(float(size * (double(seed >> 8) / double(1 << 23) - 1)))));
    }
    return out;
}

// The same layer in double, of all tokens at once.
struct LayerInDouble {
    Numbers norm_1, qkv, out, norm_2, gate_up, down;

    static Numbers product(const Numbers& a, const Numbers& b, std::size_t columns) {
        const std::size_t depth = b.size() / columns, rows = a.size() / depth;
        Numbers c(rows * columns);
        for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t k = 0; k < depth; ++k)
                for (std::size_t j = 0; j < columns; ++j) c[i * columns + j] += a[i * depth + k] * b[k * columns + j];
        return c;
    }
    static Numbers norm(const Numbers& x, const Numbers& gamma) {
        Numbers y(x);
        for (std::size_t first = 0; first < x.size(); first += width) {
            double squares = 0;
            for (std::size_t i = 0; i < width; ++i) squares += x[first + i] * x[first + i];
            for (std::size_t i = 0; i < width; ++i) y[first + i] *= gamma[i] / std::sqrt(squares / width + epsilon);
        }
        return y;
    }
    static void turn(double* head, std::size_t position) {
        for (std::size_t i = 0; i < head_dim / 2; ++i) {
            const double angle = double(position) * std::pow(double(base), -2.0 * double(i) / head_dim);
            const double a = head[i], b = head[i + head_dim / 2];
            head[i] = a * std::cos(angle) - b * std::sin(angle);
            head[i + head_dim / 2] = a * std::sin(angle) + b * std::cos(angle);
        }
    }
    static Numbers attention(Numbers& all) {
        const std::size_t tokens = all.size() / row;
        Numbers o(tokens * width);
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t head = 0; head < heads + kv_heads; ++head) turn(&all[t * row + head * head_dim], t);
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t head = 0; head < heads; ++head) {
                const double* const query = &all[t * row + head * head_dim];
                double sum = 0;
                for (std::size_t s = 0; s <= t; ++s) {
                    const double* const key = &all[s * row + width + head / (heads / kv_heads) * head_dim];
                    double score = 0;
                    for (std::size_t i = 0; i < head_dim; ++i) score += query[i] * key[i];
                    const double weight = std::exp(score / std::sqrt(double(head_dim)));
                    sum += weight;
                    for (std::size_t i = 0; i < head_dim; ++i)
                        o[t * width + head * head_dim + i] += weight * key[kv_heads * head_dim + i];
                }
                for (std::size_t i = 0; i < head_dim; ++i) o[t * width + head * head_dim + i] /= sum;
            }
        return o;
    }
    static void add(Numbers& x, const Numbers& more) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += more[i];
    }

    void run(Numbers& x) const {
        Numbers all = product(norm(x, norm_1), qkv, row);
        add(x, product(attention(all), out, width));
        const Numbers both = product(norm(x, norm_2), gate_up, 2 * hidden);
        Numbers h;
        for (std::size_t i = 0; i < both.size(); ++i)
            if (i % (2 * hidden) < hidden) h.push_back(both[i] / (1 + std::exp(-both[i])) * both[i + hidden]);
        add(x, product(h, down, width));
    }
};

// Each step rounds to 8 bits; all of them together are within a few of these.
bool check(const char* what, const Buffer<bfloat16>& x, const Numbers& wanted, std::size_t first) {
    const auto got = x.download();
    double error = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        error = std::max(error, std::abs(double(got[i]) - wanted[first + i]));
        size = std::max(size, std::abs(wanted[first + i]));
    }
    const bool right = error <= size * 0x1p-5;
    std::printf("%s: %s\n", what, right ? "right" : "WRONG");
    return right;
}

int main() try {
    const auto device = Device::open();
    const std::uint32_t prompt = 9;
    std::vector<Layer> layers;
    std::vector<LayerInDouble> references;
    const auto upload = [&](const Numbers& numbers) {
        return device.upload(std::vector<bfloat16>(numbers.begin(), numbers.end()));
    };
    for (std::uint32_t l = 0; l < 2; ++l) {
        const std::uint32_t seed = 10 * l;
        references.push_back({random_numbers(width, 1, seed + 1), random_numbers(width * row, 0.2, seed + 2),
                              random_numbers(width * width, 0.2, seed + 3), random_numbers(width, 1, seed + 4),
                              random_numbers(width * 2 * hidden, 0.2, seed + 5),
                              random_numbers(hidden * width, 0.2, seed + 6)});
        const LayerInDouble& r = references.back();
        layers.push_back({upload(r.norm_1), upload(r.qkv), upload(r.out), upload(r.norm_2), upload(r.gate_up),
                          upload(r.down), device.buffer<bfloat16>(capacity * kv_heads * head_dim, "K"),
                          device.buffer<bfloat16>(capacity * kv_heads * head_dim, "V")});
    }
    Numbers wanted = random_numbers((prompt + 1) * width, 1, 99);
    const Numbers start = wanted;
    for (const LayerInDouble& reference : references) reference.run(wanted);

    // The prompt, and then the token after it, of which only its own row is computed.
    auto x = upload(Numbers(start.begin(), start.begin() + prompt * width)),
         next = upload(Numbers(start.begin() + prompt * width, start.end()));
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < prompt; ++i) numbers.push_back(i);
    const auto positions = device.upload(numbers), position = device.upload(std::vector<std::uint32_t>{prompt});
    for (Layer& layer : layers) run(device, layer, x, positions, 0);
    bool right = check("a prompt of 9 tokens, 2 layers", x, wanted, 0);
    for (Layer& layer : layers) run(device, layer, next, position, prompt);
    right = check("the token after it", next, wanted, prompt * width) && right;
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
