#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails calls of the real libraries of CUDA, on a computer with GPUs (docs/reliability.md). NCCL wants two.
#
#   tests/faults/on_gpu.sh [SECONDS [BUILD [JOBS]]]    by default 540 seconds, build/release, 8 processes at once
#
# LIBRARIES names the folders of NVIDIA's libraries, if the system does not find them (GANTRY_CUDA_LIBRARIES). Each scenario is
# counted first; then so many of its calls fail, evenly spread, as fit into its share of the time; what has begun
# then has a minute to end. Exit code 1: something is wrong.
set -uo pipefail

cd "$(dirname "$0")/../.."
seconds=${1:-540}
build=$(realpath "${2:-build/release}")
jobs=${3:-8}
program=$build/tests/faults/faults
scenarios=(gpu-detect gpu gpu-graph gpu-period gpu-phases gpu-collective gpu-nccl gpu-linalg gpu-times gpu-code)
export GANTRY_MODULES=$build/lib
[ -z "${LIBRARIES:-}" ] || export GANTRY_CUDA_LIBRARIES=$LIBRARIES
share=$((seconds / ${#scenarios[@]}))
wrong=0
for scenario in "${scenarios[@]}"; do
    begin=$(date +%s%N)
    counted=$("$program" --tree "$PWD" --class device --scenario "$scenario" --last 1 --jobs 1 --limit 120)
    one=$((($(date +%s%N) - begin) / 3000000)) # ms: three processes, one after the other
    calls=$(sed -n 's/.* device: \([0-9]*\) calls.*/\1/p' <<<"$counted")
    if [ "${calls:-0}" = 0 ]; then
        echo "$counted"
        continue
    fi
    stride=$((calls * (one + 1) / jobs / (share * 1000 / 2) + 1)) # half of the share: they get in each other's way
    echo "$scenario: $calls calls, $one ms each, one in $stride fails"
    "$program" --tree "$PWD" --class device --scenario "$scenario" --stride $stride --jobs "$jobs" --limit 60 --seconds "$share" || wrong=1
done
exit $wrong
