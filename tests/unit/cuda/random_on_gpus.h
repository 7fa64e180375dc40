/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/run/test_random.c on GPUs of the fake driver: replay modes, peer access and the CPU beside them vary with
 * the seed. RANDOM_WITH is the algorithm that all collectives ask for. RANDOM_GATES: starts are graphs of GPUs that
 * reach each other, one for each (GANTRY_CUDA_GRAPHS). */
#ifndef TESTS_UNIT_CUDA_RANDOM_ON_GPUS_H
#define TESTS_UNIT_CUDA_RANDOM_ON_GPUS_H

#include "parcel.h"

#define RANDOM_BACKEND "cuda"
#ifdef RANDOM_GATES
#define RANDOM_REPLAY(seed) "graph"
#else
#define RANDOM_REPLAY(seed) ((seed) / 2 % 2 ? "graph" : "stream")
#endif
#define RANDOM_MACHINE(devices, seed) random_machine(devices, seed)
#define RANDOM_QUEUE(launch, function)                                                                                 \
    parcel_queue((parcel_driver){ fakeCudaFunction, cuLaunchKernel }, launch, function, NULL)

#ifdef RANDOM_WITH
#define RANDOM_SCHEDULE(schedule) ask(schedule)
static void ask(gantry_schedule *s)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        gy_op *op = &s->ops.at[i];
        bool has = op->kind == GY_OP_COLLECTIVE;
        op->algorithm = has ? RANDOM_WITH : op->algorithm;
    }
}
#else
#define RANDOM_SCHEDULE(schedule) ((void)(schedule))
#endif

gantry_machine *gpu_machine(int gpus, bool mixed);

static gantry_machine *random_machine(int devices, uint64_t seed)
{
    static const char *const peers[] = { "all", "none", "01,10,23,12,21" };
#ifdef RANDOM_GATES
    fakeCudaDevices(devices, peers[0], 0);
#else
    fakeCudaDevices(devices, peers[seed % 3], 0);
#endif
    fakeCudaSeed(seed);
    return gpu_machine(devices, seed % 5 == 0);
}

#endif
