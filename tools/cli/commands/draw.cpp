// SPDX-License-Identifier: Apache-2.0
// The commands that draw: layouts, fragments of products on tensor cores, pipelines, and grids of tiles.
#include <CLI/CLI.hpp>

#include "tools/cli/commands/commands.hpp"
#include "tools/cli/draw/fragment_drawing.hpp"
#include "tools/cli/draw/layout_drawing.hpp"
#include "tools/cli/draw/schedule_drawing.hpp"
#include "tools/cli/text/files.hpp"

namespace ikat::cli {
namespace {

/// Where a drawing goes, and in which form.
struct Output {
    std::string file;
    bool svg = false;

    void add_to(CLI::App& command) {
        command.add_flag("--svg", svg, "Draw a picture instead of a table");
        command.add_option("-o,--output", file, "Write to this file; a picture if it ends in .svg");
    }
    void write(const auto& drawing) const {
        write_text(file, svg || file.ends_with(".svg") ? drawing.svg() : drawing.table());
    }
};

struct LayoutOptions : Output {
    std::string layout;
    std::uint64_t element = 4;
};
struct FragmentOptions : Output {
    std::string product, part;
};
struct PipelineOptions : Output {
    std::uint32_t stages = 3, slices = 6;
};
struct RasterOptions : Output {
    std::uint32_t rows = 0, columns = 0, group = 8, blocks = 0;
    bool hilbert = false;
};

}  // namespace

void add_layout(CLI::App& app) {
    CLI::App* command = app.add_subcommand("layout", "Draw a layout, with its banks of shared memory");
    auto options = std::make_shared<LayoutOptions>();
    command->add_option("LAYOUT", options->layout, "Such as (4,8):(8,1) or 'Sw<3,3,3> o (8,64):(64,1)'")->required();
    command->add_option("--element", options->element, "The bytes of an element: 1, 2, 4, 8 or 16")
        ->capture_default_str();
    options->add_to(*command);
    command->callback([options] { options->write(LayoutDrawing(parse_layout(options->layout), options->element)); });
}

void add_fragment(CLI::App& app) {
    CLI::App* command = app.add_subcommand("fragment", "Draw which thread holds which element of a matrix");
    auto options = std::make_shared<FragmentOptions>();
    command
        ->add_option("PRODUCT", options->product,
                     "Such as 'Mma<16, 8, 16, bfloat16, float>' or 'Wgmma<64, 32, 16, half, float>'")
        ->required();
    command->add_option("PART", options->part, "A, B or C; of Wgmma A or C")->required();
    options->add_to(*command);
    command->callback([options] { options->write(FragmentDrawing(options->product, options->part)); });
}

void add_pipeline(CLI::App& app) {
    CLI::App* command = app.add_subcommand("pipeline", "Draw when the stages of pipeline() are filled and used");
    auto options = std::make_shared<PipelineOptions>();
    command->add_option("--stages", options->stages, "2 to 6")->capture_default_str();
    command->add_option("--slices", options->slices, "1 to 64")->capture_default_str();
    options->add_to(*command);
    command->callback([options] { options->write(PipelineDrawing(options->stages, options->slices)); });
}

void add_raster(CLI::App& app) {
    CLI::App* command = app.add_subcommand("raster", "Draw which block computes which tile of a result");
    auto options = std::make_shared<RasterOptions>();
    command->add_option("ROWS", options->rows, "Tiles from top to bottom")->required();
    command->add_option("COLUMNS", options->columns, "Tiles from left to right")->required();
    command->add_option("--group", options->group, "The rows of a group, as in grouped_raster()")
        ->capture_default_str();
    command->add_flag("--hilbert", options->hilbert, "Along a Hilbert curve, as in hilbert_raster(), not in groups");
    command->add_option("--blocks", options->blocks, "The blocks of the grid; 0: one for each tile")
        ->capture_default_str();
    options->add_to(*command);
    command->callback([options] {
        const auto raster = options->hilbert ? stdlib::Raster::hilbert : stdlib::Raster::grouped;
        options->write(RasterDrawing(raster, options->rows, options->columns, options->group, options->blocks));
    });
}

}  // namespace ikat::cli
