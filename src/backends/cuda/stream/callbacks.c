/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/stream/stream.h"

#include "backends/cuda/times/times.h"
#include "base/clock.h"
#include "run/fill.h"
#include "run/reduce.h"
#include <string.h>

/* The first one wins; host functions of different lanes may run at once. */
static void note_failure(gy_cuda *h, const gy_note *note, gantry_status status, int32_t word)
{
    unsigned nobody = GY_NONE;
    if (atomic_compare_exchange_strong(&h->failed.op, &nobody, note->op)) {
        h->failed.status = status; /* read after the start has ended */
        h->failed.word = word;
    }
}

static void call(gy_cuda *h, const gy_note *note)
{
    gy_cuda_call *c = &h->op[note->op].call[note->turn];
    c->word = 0;
    gantry_status status = c->function(&c->launch);
    if (status || c->word) {
        note_failure(h, note, status, c->word);
    }
}

static void fill(gy_cuda *h, const gy_note *note)
{
    const gantry_schedule *s = h->job->schedule;
    const gantry_graph *g = h->job->graph;
    const gy_op *op = &s->ops.at[note->op];
    const gy_use *use = &s->use.at[note->use];
    const gy_instance *instance = &s->instances.at[use->instance];
    const gy_buffer *b = &g->buffers.at[s->values.at[instance->value].buffer];
    if (op->node == GY_NONE) {
        gy_fill_identity(note->to, b->dtype, (gantry_access)(op->reduce ? op->reduce : instance->op),
                         note->bytes / gantry_dtype_size(b->dtype));
    } else {
        gy_fill_rows(note->to, b, &gy_node_extra_of(g, op->node)->fill, use->first, use->last);
    }
}

void gy_note_run(void *data)
{
    const gy_note *note = data;
    if (atomic_load_explicit(&note->h->failed.op, memory_order_acquire) != GY_NONE) {
        return;
    }
    int64_t began = gy_cupti_on(note->h) ? gy_now_ns() : 0;
    switch (note->kind) {
    case GY_NOTE_CALL:
        call(note->h, note);
        break;
    case GY_NOTE_MOVE:
        memmove(note->to, note->from, note->bytes);
        break;
    case GY_NOTE_FILL:
        fill(note->h, note);
        break;
    case GY_NOTE_REDUCE:
        gy_reduce(note->dtype, note->reduce, note->to, note->sources, note->count,
                  note->bytes / gantry_dtype_size(note->dtype));
        break;
    case GY_NOTE_BRING:
        gy_cuda_mirrors_bring(note->h, note->turn);
        break;
    case GY_NOTE_TAKE:
        gy_cuda_mirrors_take(note->h, note->turn);
        break;
    }
    gy_cupti_ran(note->h, note->op, began);
}
