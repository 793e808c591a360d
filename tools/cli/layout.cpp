// SPDX-License-Identifier: Apache-2.0
// The command that draws layouts.
#include <CLI/CLI.hpp>

#include "tools/cli/commands.hpp"
#include "tools/cli/files.hpp"
#include "tools/cli/layout_drawing.hpp"

namespace ikat::cli {
namespace {

struct LayoutOptions {
    std::string layout, output;
    std::uint64_t element = 4;
    bool svg = false;
};

void draw_layout(const LayoutOptions& options) {
    const LayoutDrawing drawing(parse_layout(options.layout), options.element);
    write_text(options.output, options.svg || options.output.ends_with(".svg") ? drawing.svg() : drawing.table());
}

}  // namespace

void add_layout(CLI::App& app) {
    CLI::App* command = app.add_subcommand("layout", "Draw a layout, with its banks of shared memory");
    auto options = std::make_shared<LayoutOptions>();
    command->add_option("LAYOUT", options->layout, "Such as (4,8):(8,1) or 'Sw<3,3,3> o (8,64):(64,1)'")->required();
    command->add_option("--element", options->element, "The bytes of an element: 1, 2, 4, 8 or 16")
        ->capture_default_str();
    command->add_flag("--svg", options->svg, "Draw a picture instead of a table");
    command->add_option("-o,--output", options->output, "Write to this file; a picture if it ends in .svg");
    command->callback([options] { draw_layout(*options); });
}

}  // namespace ikat::cli
