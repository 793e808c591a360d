// SPDX-License-Identifier: Apache-2.0
// Opcodes on parts of registers (video), and on textures and surfaces, by reference or by handle.
#pragma once
#include "codegen/ptx/table/forms/row.hpp"

namespace ikat::ptx::table::media {

using enum Feature;

inline constexpr Set sets[] = {
    {"secondary", "add|min|max"},
    {"geometry", "1d|2d|3d|a1d|a2d|cube|acube|2dms|a2dms"},
    {"surface", "1d|2d|3d|a1d|a2d"},
    {"beyond", "trap|clamp|zero"},
    {"texturequery",
     "width|height|depth|channel_data_type|channel_order|normalized_coords|force_unnormalized_coords|filter_mode|addr_"
     "mode_0|addr_mode_1|addr_mode_2|array_size|num_mipmap_levels|num_samples"},
    {"surfacequery", "width|height|depth|channel_data_type|channel_order|array_size|memory_layout"},
};

inline constexpr Set lists[] = {
    {"video", "u32|s32 u32|s32 u32|s32"},
    {"texels", "$geometry:g v4:n u32|s32|f16|f32:t s32|f32"},
    {"halftexels", "$geometry:g v2:n f16x2:t s32|f32"},
};

// clang-format off
inline constexpr Row rows[] = {
    // Parts of registers are selected by suffixes of the operands.
    {.stem = "vadd", .modifiers = "@video sat? $secondary?", .operands = "d:b32 s:b32 s:b32 s:b32?"},
    {.stem = "vsub", .modifiers = "@video sat? $secondary?", .operands = "d:b32 s:b32 s:b32 s:b32?"},
    {.stem = "vabsdiff", .modifiers = "@video sat? $secondary?", .operands = "d:b32 s:b32 s:b32 s:b32?"},
    {.stem = "vmin", .modifiers = "@video sat? $secondary?", .operands = "d:b32 s:b32 s:b32 s:b32?"},
    {.stem = "vmax", .modifiers = "@video sat? $secondary?", .operands = "d:b32 s:b32 s:b32 s:b32?"},
    {.stem = "vshl", .modifiers = "u32|s32 u32|s32 u32 sat? clamp|wrap $secondary?", .operands = "d:b32 s:b32 s:b32 s:b32?"},
    {.stem = "vshr", .modifiers = "u32|s32 u32|s32 u32 sat? clamp|wrap $secondary?", .operands = "d:b32 s:b32 s:b32 s:b32?"},
    {.stem = "vmad", .modifiers = "@video sat? shr7|shr15?", .operands = "d:u32 n:u32 n:u32 n:u32"},
    {.stem = "vmad", .modifiers = "@video po sat? shr7|shr15?", .operands = "d:u32 s:u32 s:u32 s:u32"},
    {.stem = "vset", .modifiers = "u32|s32 u32|s32 $compare $secondary?", .operands = "d:b32 s:b32 s:b32 s:b32?"},
    {.stem = "vadd2", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vsub2", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vavrg2", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vabsdiff2", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vmin2", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vmax2", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vset2", .modifiers = "u32|s32 u32|s32 $compare add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vadd4", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vsub4", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vavrg4", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vabsdiff4", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vmin4", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vmax4", .modifiers = "@video sat? add?", .operands = "d:b32 s:b32 s:b32 s:b32"},
    {.stem = "vset4", .modifiers = "u32|s32 u32|s32 $compare add?", .operands = "d:b32 s:b32 s:b32 s:b32"},

    // Textures; the coordinates may be followed by an offset and a depth to compare with.
    {.stem = "istypep", .modifiers = "texref|samplerref|surfref", .operands = "q A:b64"},
    {.stem = "tex", .modifiers = "base? @texels", .operands = "V:t X v? v?"},
    {.stem = "tex", .modifiers = "base? @texels", .operands = "V:t|q X v? v?", .feature = TexturePredicate},
    {.stem = "tex", .modifiers = "base? @halftexels", .operands = "V:b32 X v? v?"},
    {.stem = "tex", .modifiers = "base? @halftexels", .operands = "V:b32|q X v? v?", .feature = TexturePredicate},
    {.stem = "tex", .modifiers = "level @texels", .operands = "V:t X s:b32 v? v?"},
    {.stem = "tex", .modifiers = "level @texels", .operands = "V:t|q X s:b32 v? v?", .feature = TexturePredicate},
    {.stem = "tex", .modifiers = "level @halftexels", .operands = "V:b32 X s:b32 v? v?"},
    {.stem = "tex", .modifiers = "level @halftexels", .operands = "V:b32|q X s:b32 v? v?", .feature = TexturePredicate},
    {.stem = "tex", .modifiers = "grad @texels", .operands = "V:t X v v v? v?"},
    {.stem = "tex", .modifiers = "grad @texels", .operands = "V:t|q X v v v? v?", .feature = TexturePredicate},
    {.stem = "tex", .modifiers = "grad @halftexels", .operands = "V:b32 X v v v? v?"},
    {.stem = "tex", .modifiers = "grad @halftexels", .operands = "V:b32|q X v v v? v?", .feature = TexturePredicate},
    {.stem = "tld4", .modifiers = "r|g|b|a 2d|a2d|cube|acube:g v4:n u32|s32|f32:t f32", .operands = "V:t X v? v?"},
    {.stem = "tld4", .modifiers = "r|g|b|a 2d|a2d|cube|acube:g v4:n u32|s32|f32:t f32", .operands = "V:t|q X v? v?", .feature = TexturePredicate},
    {.stem = "txq", .modifiers = "$texturequery b32", .operands = "d:b32 m"},
    {.stem = "txq", .modifiers = "level width|height|depth b32", .operands = "d:b32 m s:b32"},

    // Surfaces.
    {.stem = "suld", .modifiers = "b $surface:g ca|cg|cs|cv? v2|v4?:n b8|b16|b32|b64:t $beyond", .operands = "V:t X"},
    {.stem = "sust", .modifiers = "b $surface:g wb|cg|cs|wt? v2|v4?:n b8|b16|b32|b64:t $beyond", .operands = "X v:t"},
    {.stem = "sust", .modifiers = "p $surface:g v2|v4?:n b32|u32|s32|f32:t $beyond", .operands = "X v:t"},
    {.stem = "sured", .modifiers = "b add|min|max|and|or $surface:g u32|u64|s32|s64|b32|b64:t $beyond", .operands = "X s:t"},
    {.stem = "sured", .modifiers = "p add|min|max|and|or $surface:g b32|b64:t $beyond", .operands = "X s:t"},
    {.stem = "suq", .modifiers = "$surfacequery b32", .operands = "d:b32 m"},
};
// clang-format on

}  // namespace ikat::ptx::table::media
