/* SPDX-License-Identifier: Apache-2.0 */
/* The word that stands still in a start that does not come to its end: of all that a gate waits for and nobody has set,
 * that of the first op, since gates are in the order of their ops and each waits for what comes before it. */
#include "backends/cuda/stream/gates_state.h"

#include "base/error.h"
#include <stdio.h>
#include <string.h>

static bool fetch(gy_cuda *h, uint32_t device, uint32_t first, uint32_t words)
{
    const gates_gpu *g = &h->gates->gpu[device];
    CUdeviceptr from = g->block + (CUdeviceptr)first * GY_GATE_STEP;
    return gy_cuda_use(h, device, NULL) == GANTRY_OK &&
           h->d.cuMemcpyDtoHAsync(h->gates->seen, from, (size_t)words * GY_GATE_STEP, g->aside.stream) ==
               CUDA_SUCCESS &&
           gy_cuda_settle(h, g->aside) == CUDA_SUCCESS;
}

static void see_gpu(gy_cuda *h, uint32_t device, gates_word *first)
{
    const gates_gpu *g = &h->gates->gpu[device];
    for (uint32_t i = 0; i < g->words; i++) {
        uint32_t at = i % GATES_SEEN, left = g->words - i;
        if (at == 0 && !fetch(h, device, i, left < GATES_SEEN ? left : GATES_SEEN))
            return;
        uint64_t word[2]; /* the second one: a gate waits for the first */
        memcpy(word, h->gates->seen + (size_t)at * GY_GATE_STEP, sizeof word);
        if (word[0] == 0 && word[1] == 1 && g->who.at[i].waits < first->waits)
            *first = g->who.at[i];
    }
}

static size_t print_op(const gy_cuda *h, char *to, size_t size, const char *before, uint32_t op)
{
    const gantry_schedule *s = h->job->schedule;
    gy_text name = { 0 };
    gy_op_text(&name, s, op);
    snprintf(to, size, "%sop %u, \"%.60s\", on device \"%.30s\"", before, op,
             name.failed || !name.length ? "?" : name.at, s->machine->device[gy_op_device(s, &s->ops.at[op], 0)].id);
    gy_text_free(&name);
    return strlen(to);
}

void gy_gates_tell_stuck(gy_cuda *h, uint32_t before, char *to, size_t size)
{
    gates_word first = { GY_NONE, GY_NONE };
    size_t at = 0;
    for (uint32_t i = 0; i < h->devices; i++)
        if (h->gates->gpu[i].used)
            see_gpu(h, i, &first);
    if (first.waits == GY_NONE && before == GY_NONE)
        snprintf(to, size, "; no GPU waits for another");
    if (first.waits >= before)
        return;
    at += print_op(h, to + at, size - at, "; ", first.waits);
    at += print_op(h, to + at, size - at, " waits for ", first.ended);
    snprintf(to + at, size - at, ": its word is 0, and 1 is awaited");
}
