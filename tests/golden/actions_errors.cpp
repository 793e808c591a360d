// SPDX-License-Identifier: Apache-2.0
// The area of diagnostics: malformed input of every kind. Its files run actions of the other areas.
