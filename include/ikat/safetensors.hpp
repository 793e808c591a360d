// SPDX-License-Identifier: Apache-2.0
// Files of named tensors in the format safetensors, read and written on the host.
#pragma once
#include "tools/safetensors/safetensors.hpp"
