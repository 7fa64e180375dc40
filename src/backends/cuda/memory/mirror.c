/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small arrays of users. Locking their pages would cost more than moving them, and a host function that stages them in
 * the order of a stream holds the stream up for tens of microseconds. So each turn has page-locked room in which the
 * devices see them: inputs are brought there by the thread that makes a start, results are taken from there by the one
 * that waits for it. Only a start on a stream of the program, whose arrays are what that stream makes of them, does the
 * same by two host functions.
 */
#include "backends/cuda/memory/memory.h"

#include "base/align.h"
#include "base/error.h"
#include <string.h>

#define MOST (UINT64_C(64) << 20) /* of a turn; arrays beyond that are staged */

/* The array of the instance's buffer that it is bound to; NULL: it is not bound, or the array is not mirrored. */
static gy_cuda_array *array_of(gy_cuda *h, uint32_t turn, const gy_instance *i)
{
    bool in = i->space == GY_SPACE_INPUT, out = i->space == GY_SPACE_OUTPUT;
    if ((!in && !out) || h->memory[i->memory].device != GY_NONE)
        return NULL;
    uint64_t bytes = h->job->graph->buffers.at[i->value].bytes;
    gy_cuda_array *array = in ? &h->turn[turn].input[i->value] : &h->turn[turn].output[i->value];
    return bytes && bytes < GY_CUDA_REGISTER ? array : NULL;
}

/* Gives each array that has none its place in `block`; without a block they are counted. */
static uint64_t lay_out(gy_cuda *h, uint32_t turn, char *block)
{
    uint64_t used = 0;
    for (size_t i = 0; i < h->job->schedule->instances.count; i++) {
        const gy_instance *instance = &h->job->schedule->instances.at[i];
        gy_cuda_array *array = array_of(h, turn, instance);
        uint64_t bytes = array ? gy_aligned(h->job->graph->buffers.at[instance->value].bytes) : 0;
        if (!array || array->mirror || used + bytes > MOST)
            continue;
        array->mirror = block ? block + used : NULL;
        used += bytes;
    }
    return used;
}

gantry_status gy_cuda_mirrors_make(gy_cuda *h, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t t = 0; t < h->turns && status == GANTRY_OK; t++) {
        uint64_t bytes = lay_out(h, t, NULL);
        status = bytes ? gy_cuda_pinned(h, (void **)&h->turn[t].mirrors, bytes, err) : GANTRY_OK;
        if (h->turn[t].mirrors)
            lay_out(h, t, h->turn[t].mirrors);
    }
    return status;
}

void gy_cuda_mirrors_free(gy_cuda *h)
{
    for (uint32_t t = 0; t < h->turns; t++)
        if (h->turn[t].mirrors)
            h->d.cuMemFreeHost(h->turn[t].mirrors);
}

void gy_cuda_mirrors_in(gy_cuda *h, uint32_t turn)
{
    for (uint32_t b = 0; h->turn[turn].mirrors && b < h->job->graph->buffers.count; b++) {
        const gy_cuda_array *a = &h->turn[turn].input[b];
        if (gy_array_mirrored(a) && a->at)
            memcpy(a->mirror, a->at, h->job->graph->buffers.at[b].bytes);
    }
}

void gy_cuda_mirrors_out(gy_cuda *h, uint32_t turn)
{
    for (uint32_t b = 0; h->turn[turn].mirrors && b < h->job->graph->buffers.count; b++) {
        const gy_cuda_array *a = &h->turn[turn].output[b];
        if (gy_array_mirrored(a) && a->at)
            memcpy((void *)(uintptr_t)a->at, a->mirror, h->job->graph->buffers.at[b].bytes);
    }
}
