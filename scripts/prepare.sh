# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts/test and scripts/demo: changes to the repository's root and makes sure that the build's
# dependencies are installed. On Debian or Ubuntu it installs missing packages, as root or through sudo; if it may not,
# it prints the command and exits with status 2. Set `want_clang` before sourcing to require clang 19 as well.
cd "$(dirname "${BASH_SOURCE[0]}")/.."

has_command() { command -v "$1" > /dev/null; }
has_header() { printf '#include <%s>\n%s\n' "$1" "${2-}" | g++ -E -x c++ - > /dev/null 2>&1; }
boost_is_new='#if __has_include(<boost/version.hpp>)
#include <boost/version.hpp>
#endif
#if BOOST_VERSION < 108100
#error
#endif'

missing=()
need() { missing+=("$@"); }
has_command g++ || need g++
has_command cmake || need cmake
has_command ninja || need ninja-build
has_command clang-format || need clang-format
has_command ld.lld || need lld
has_header boost/version.hpp "$boost_is_new" || need libboost1.81-dev
has_header fmt/format.h || need libfmt-dev
has_header catch2/catch.hpp || has_header catch2/catch_all.hpp || need catch2
has_header hwy/highway.h || need libhwy-dev
has_header CLI/CLI.hpp || need libcli11-dev
has_header nlohmann/json.hpp || need nlohmann-json3-dev
[ -z "${want_clang-}" ] || has_command clang++-19 || need clang-19

if [ ${#missing[@]} -gt 0 ]; then
    install="apt-get install -y --no-install-recommends ${missing[*]}"
    sudo=()
    if [ "$(id -u)" != 0 ]; then
        if has_command sudo && { [ -t 0 ] || sudo -n true 2> /dev/null; }; then sudo=(sudo); else sudo=(none); fi
    fi
    if [ "${sudo[*]-}" = none ] || ! has_command apt-get; then
        echo "These packages are missing. As root:  apt-get update && $install" >&2
        exit 2
    fi
    echo "== installing ${missing[*]}"
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive $install -qq > /dev/null
fi

jobs=$(nproc)

# build PRESET [TARGET...]
build() {
    cmake --preset "$1" > /dev/null && cmake --build --preset "$1" -j "$jobs" ${2+--target "${@:2}"} -- --quiet
}
