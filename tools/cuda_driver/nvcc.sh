#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands for nvcc where programs compile with it what they load by the driver: a cubin that it is asked for holds PTX,
# as the emulator runs no machine code. All else is done as asked. `ikat cuda-env` sets IKAT_NVCC, the real one.
count=$#
cubin= output= source=
for argument; do
    case $argument in
    -cubin | --cubin) argument=-ptx cubin=yes ;;
    -o | --output-file | --output-file=*) output=yes ;;
    *.cu) source=$argument ;;
    esac
    set -- "$@" "$argument"
done
shift "$count"
[ "$cubin" ] && [ ! "$output" ] && set -- "$@" -o "$(basename "$source" .cu).cubin"
exec "$IKAT_NVCC" "$@"
