// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/draw/schedule_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dsl/kernel/kernel.hpp"
#include "runtime/device.hpp"
#include "stdlib/tile/hilbert.hpp"
#include "stdlib/tile/pipeline.hpp"
#include "stdlib/tile/schedule.hpp"
#include "tools/cli/draw/drawing.hpp"

namespace ikat::cli {
namespace {

using runtime::Device;
using runtime::Grid;

constexpr std::uint32_t max_slices = 64, max_tiles = 4096;

/// What a pipeline calls, in this order: three numbers for each call, 0 for ask and 1 for work, the stage, the slice.
/// Of work the slice is not given.
template <std::uint32_t stages>
auto pipeline_log() {
    return kernel("pipeline_log", params("log", "slices"), [](Out<std::uint32_t> log, u32 slices) {
        u32 next = 0;
        const auto note = [&](std::uint32_t what, const auto& stage, const auto& slice) {
            if_(thread_id().x == 0, [&] {
                log[next] = what;
                log[next + 1] = stage;
                log[next + 2] = slice;
            });
            next += 3;
        };
        stdlib::pipeline<stages>(
            slices, [&](const auto& stage, const auto& slice) { note(0, stage, slice); },
            [&](const auto& stage) { note(1, stage, stage); });
    });
}

template <std::uint32_t stages>
std::vector<std::uint32_t> logged(std::uint32_t slices) {
    const Device device = Device::open({.device = "emulator"}, Location{});
    auto log = device.buffer<std::uint32_t>(3 * (2 * slices + stages - 1));
    device.launch(pipeline_log<stages>(), Grid{{1}, {32}}, log, slices);
    return device.download(log);
}

std::vector<std::uint32_t> logged(std::uint32_t stages, std::uint32_t slices) {
    switch (stages) {
        case 2: return logged<2>(slices);
        case 3: return logged<3>(slices);
        case 4: return logged<4>(slices);
        case 5: return logged<5>(slices);
        case 6: return logged<6>(slices);
        default: throw Error(fmt::format("a pipeline of {} stages is not drawn", stages), "--stages is 2 to 6");
    }
}

/// The number of each tile, and after those its block.
std::vector<std::uint32_t> tiles_of(stdlib::Raster raster, std::uint32_t rows, std::uint32_t columns,
                                    std::uint32_t group, std::uint32_t blocks) {
    const auto noted = kernel("raster", params("numbers", "rows", "columns"),
                              [raster, group](Out<std::uint32_t> numbers, u32 rows, u32 columns) {
                                  u32 tiles = rows * columns;
                                  stdlib::each_tile(tiles, [&](const auto& number) {
                                      const auto place = raster == stdlib::Raster::hilbert
                                                             ? stdlib::hilbert_raster(number, rows, columns)
                                                             : stdlib::grouped_raster(number, rows, columns, group);
                                      u32 at = place.row * columns + place.column;
                                      numbers[at] = number;
                                      numbers[tiles + at] = block_id().x;
                                  });
                              });
    const Device device = Device::open({.device = "emulator"}, Location{});
    auto numbers = device.buffer<std::uint32_t>(2 * rows * columns);
    device.launch(noted, Grid{{blocks}, {1}}, numbers, rows, columns);
    return device.download(numbers);
}

}  // namespace

PipelineDrawing::PipelineDrawing(std::uint32_t stages, std::uint32_t slices) : stages_(stages), slices_(slices) {
    if (slices < 1 || slices > max_slices)
        throw Error(fmt::format("a pipeline of {} slices is not drawn", slices),
                    fmt::format("--slices is 1 to {}", max_slices));
    const std::vector<std::uint32_t> log = logged(stages, slices);
    std::vector<std::uint32_t> in_stage(stages);
    std::uint32_t iteration = 0, worked = 0;
    for (std::size_t i = 0; i < log.size(); i += 3) {
        const std::uint32_t stage = log[i + 1], slice = log[i + 2];
        if (log[i] == 0) {  // in the loop, the first call of an iteration
            if (i >= 3 * (stages - 1)) ++iteration;
            if (slice < slices) slices_[slice] = {stage, iteration, 0}, in_stage[stage] = slice;
        } else {
            IKAT_ASSERT(in_stage[stage] == worked++, "pipeline() works on slices in order");
            slices_[in_stage[stage]].worked = iteration;
        }
    }
}

std::string PipelineDrawing::title() const {
    return fmt::format("pipeline<{}>, {} slice{}", stages_, slices_.size(), slices_.size() == 1 ? "" : "s");
}

std::string PipelineDrawing::table() const {
    std::string out = title() + "\n\niteration |";
    for (std::uint32_t s = 0; s < stages_; ++s) out += fmt::format("{} stage {}", s ? " " : "", s);
    out += '\n' + std::string(10, '-') + '+' + std::string(9 * stages_, '-') + '\n';
    for (std::uint32_t iteration = 0; iteration <= slices_.size(); ++iteration) {
        std::string line = iteration == 0 ? "   before |" : fmt::format("{:>9} |", iteration - 1);
        for (std::uint32_t s = 0; s < stages_; ++s) {
            std::string what;
            for (std::size_t i = 0; i < slices_.size(); ++i)
                if (const Slice& slice = slices_[i];
                    slice.stage == s && slice.asked <= iteration && iteration <= slice.worked)
                    what = fmt::format("{} {}", slice.worked == iteration ? "work" : "copy", i);
            line += fmt::format(" {:<8}", what);
        }
        out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    }
    return out;
}

std::string PipelineDrawing::svg() const {
    constexpr std::uint64_t width = 64, height = 36, left = 70, top = 54;
    const auto x_of = [&](std::uint64_t iteration) { return left + iteration * width; };
    const std::uint64_t iterations = slices_.size() + 1;
    Svg out(std::max<std::uint64_t>(x_of(iterations) + 10, 480), top + stages_ * height + 10, title());
    out.text(x_of(0) + width / 2, top - 8, 10, "before");
    for (std::uint64_t i = 1; i < iterations; ++i) out.text(x_of(i) + width / 2, top - 8, 10, std::to_string(i - 1));
    for (std::uint64_t s = 0; s < stages_; ++s)
        out.text(left / 2, top + s * height + height / 2 + 4, 10, fmt::format("stage {}", s));
    for (std::size_t i = 0; i < slices_.size(); ++i) {
        const auto [stage, asked, worked] = slices_[i];
        const std::uint64_t y = top + stage * height, copied = (worked - asked) * width;
        out.box(x_of(asked), y + 2, copied, height - 4, "#eeeeee");
        out.text(x_of(asked) + copied / 2, y + height / 2 + 4, 10, fmt::format("copy {}", i));
        out.box(x_of(worked), y + 2, width, height - 4, light_colour(4 * i));
        out.text(x_of(worked) + width / 2, y + height / 2 + 4, 12, fmt::format("work {}", i));
    }
    return out.str();
}

RasterDrawing::RasterDrawing(stdlib::Raster raster, std::uint32_t rows, std::uint32_t columns, std::uint32_t group,
                             std::uint32_t blocks)
    : raster_(raster), rows_(rows), columns_(columns), group_(group), blocks_(blocks ? blocks : rows * columns) {
    if (rows == 0 || columns == 0 || std::uint64_t{rows} * columns > max_tiles || blocks > max_tiles)
        throw Error(fmt::format("{} x {} tiles{} are not drawn", rows, columns,
                                blocks ? fmt::format(" by {} blocks", blocks) : ""),
                    fmt::format("draw 1 to {} tiles, by at most as many blocks", max_tiles));
    if (group == 0) throw Error("a group of 0 rows", "--group is at least 1");
    const std::vector<std::uint32_t> both = tiles_of(raster, rows, columns, group, blocks_);
    number_.assign(both.begin(), both.begin() + std::ptrdiff_t(both.size() / 2));
    block_.assign(both.begin() + std::ptrdiff_t(both.size() / 2), both.end());
}

std::string RasterDrawing::title() const {
    const std::string order = raster_ == stdlib::Raster::hilbert
                                  ? "along a Hilbert curve"
                                  : fmt::format("in groups of {} row{}", group_, group_ == 1 ? "" : "s");
    return fmt::format("{} x {} tiles {}, {} block{}", rows_, columns_, order, blocks_, blocks_ == 1 ? "" : "s");
}

std::string RasterDrawing::table() const {
    const auto at = [this](const std::vector<std::uint32_t>& of) {
        return [this, &of](std::uint64_t i, std::uint64_t j) { return std::uint64_t(of[i * columns_ + j]); };
    };
    return title() + "\n\n" + number_table("tile", rows_, columns_, at(number_)) + '\n' +
           number_table("block", rows_, columns_, at(block_));
}

std::string RasterDrawing::svg() const {
    constexpr std::uint64_t width = 56, height = 36, left = 40, top = 50;
    Svg out(std::max<std::uint64_t>(left + columns_ * width + 10, 480), top + rows_ * height + 10, title());
    for (std::uint64_t j = 0; j < columns_; ++j) out.text(left + j * width + width / 2, top - 6, 10, std::to_string(j));
    for (std::uint64_t i = 0; i < rows_; ++i) {
        const std::uint64_t y = top + i * height;
        out.text(left / 2, y + height / 2 + 4, 10, std::to_string(i));
        for (std::uint64_t j = 0; j < columns_; ++j) {
            const std::uint64_t x = left + j * width, at = i * columns_ + j;
            out.box(x, y, width, height, light_colour(block_[at]));
            out.text(x + width / 2, y + 17, 12, std::to_string(number_[at]));
            out.text(x + width / 2, y + 30, 8, fmt::format("block {}", block_[at]));
        }
    }
    return out.str();
}

}  // namespace ikat::cli
