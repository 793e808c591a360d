// SPDX-License-Identifier: Apache-2.0
// Functions of one's own that read arrays by key and by query, and the same on the host.
#pragma once
#include "tests/differential/stdlib/own_attention.hpp"

namespace ikat::tests {

/// Where sequences begin among the rows of arrays by query and by key, and how many rows these have.
struct OwnRows {
    std::vector<std::uint32_t> query, key;
    std::uint32_t queries = 0, keys = 0;

    explicit OwnRows(const OwnShape& is) {
        for (const auto& sequence : is.sequences) {
            query.push_back(is.by_offsets ? queries : 0), key.push_back(is.by_offsets ? keys : 0);
            queries = is.by_offsets ? queries + sequence.queries : sequence.queries;
            keys = is.by_offsets ? keys + sequence.keys : std::max(keys, sequence.keys + is.more_room);
        }
    }
};

/// A bias for each key, one for each head and key, a factor for each query; a query sees the keys of its segment that
/// are not behind it, and the hidden ones never.
inline OwnRules biases_and_segments(const OwnShape& is) {
    const OwnRows rows(is);
    std::vector<half> of_key(rows.keys), of_query(rows.queries);
    std::vector<float> of_head((is.heads + 1) * (rows.keys + 3), NAN);
    std::vector<std::uint8_t> hidden(rows.keys);
    std::vector<std::int32_t> query_segment(rows.queries), key_segment(rows.keys);
    for (std::uint32_t j = 0; j < rows.keys; ++j) {
        of_key[j] = half(float(own_number(j + 17))), hidden[j] = j % 7 == 3, key_segment[j] = std::int32_t(j / 50);
        for (std::uint32_t h = 0; h < is.heads; ++h)
            of_head[h * (rows.keys + 3) + j] = float(own_number(h * 1000 + j + 5));
    }
    for (std::uint32_t i = 0; i < rows.queries; ++i)
        of_query[i] = half(float(own_number(i + 29)) / 2), query_segment[i] = std::int32_t(i * 3 % 4);
    const auto sequences = is.sequences;
    const auto row_of_query = [=](std::uint32_t s, std::int64_t query) {
        return std::size_t(rows.query[s] + query + sequences[s].queries - sequences[s].keys);
    };
    OwnRules out;
    out.host.scores = [=](double score, auto s, auto h, auto query, auto key) {
        const auto j = std::size_t(rows.key[s] + key);
        return score * double(float(of_query[row_of_query(s, query)])) + double(float(of_key[j])) -
               double(of_head[h * (rows.keys + 3) + j]);
    };
    out.host.sees = [=](auto s, auto, auto query, auto key) {
        const auto j = std::size_t(rows.key[s] + key);
        return key <= query && !hidden[j] && key_segment[j] >= query_segment[row_of_query(s, query)];
    };
    out.give = [=, heads = is.heads](const runtime::Device& device, auto& scores, auto& sees) {
        struct Buffers {
            runtime::Buffer<half> of_key, of_query;
            runtime::Buffer<float> of_head;
            runtime::Buffer<std::uint8_t> hidden;
            runtime::Buffer<std::int32_t> query_segment, key_segment;
        };
        const auto buffers = std::make_shared<Buffers>(
            Buffers{device.upload(of_key, "of_key"), device.upload(of_query, "of_query"),
                    device.upload(of_head, "of_head"), device.upload(hidden, "hidden"),
                    device.upload(query_segment, "query_segment"), device.upload(key_segment, "key_segment")});
        scores = stdlib::scores(
            "biased",
            [](auto score, auto at, auto of_key, auto of_query, auto of_head) {
                return score * of_query[at.query] + of_key[at.key] - of_head[at.head, at.key];
            },
            buffers->of_key, buffers->of_query, buffers->of_head.view(heads, rows.keys).pitched(rows.keys + 3));
        sees = stdlib::sees(
            "segments",
            [](auto at, auto hidden, auto of_query, auto of_key) {
                return (at.key <= at.query) & (hidden[at.key] == 0) & (of_key[at.key] >= of_query[at.query]);
            },
            buffers->hidden, buffers->query_segment, buffers->key_segment);
        return buffers;
    };
    return out;
}

}  // namespace ikat::tests
