/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in use in one memory over time. */
#include "schedule/memory_profile.h"

#include <stdlib.h>

typedef struct change {
    gy_ticks time;
    int64_t bytes;
} change;

/* At one time what ends comes before what begins: the one may have the other's place. */
static int by_time(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool counts(const gy_instance *i, uint32_t memory)
{
    return (i->memory == memory && i->space == GY_SPACE_SLAB) || (memory == 0 && i->space == GY_SPACE_STAGING);
}

static gy_op_span span_of(const gantry_schedule *s, const gy_op_span *span, size_t op)
{
    return span ? span[op] : (gy_op_span){ s->ops.at[op].start, s->ops.at[op].end };
}

static void find_lives(const gantry_schedule *s, const gy_op_span *span, gy_op_span *lives)
{
    gy_ticks end = span ? 0 : s->makespan;
    for (size_t i = 0; span && i < s->ops.count; i++)
        end = span[i].end > end ? span[i].end : end;
    for (size_t i = 0; i < s->instances.count; i++)
        lives[i] =
            s->instances.at[i].role == GY_ROLE_PERSIST ? (gy_op_span){ 0, end } : (gy_op_span){ GY_TICKS_MAX, -1 };
    for (size_t i = 0; i < s->ops.count; i++)
        for (uint32_t k = 0; k < s->ops.at[i].uses; k++) {
            gy_op_span *l = &lives[s->use.at[s->ops.at[i].use + k].instance], at = span_of(s, span, i);
            l->start = at.start < l->start ? at.start : l->start;
            l->end = at.end > l->end ? at.end : l->end;
        }
}

static bool add_up(gy_memory_profile *profile, const change *at, size_t count)
{
    int64_t bytes = 0;
    if (!gy_vec_push(profile, ((gy_memory_step){ 0, 0 })))
        return false;
    for (size_t i = 0; i < count; i++) {
        bytes += at[i].bytes;
        if (i + 1 < count && at[i + 1].time == at[i].time)
            continue;
        if (gy_vec_last(profile)->time == at[i].time)
            gy_vec_last(profile)->bytes = (uint64_t)bytes;
        else if (gy_vec_last(profile)->bytes != (uint64_t)bytes &&
                 !gy_vec_push(profile, ((gy_memory_step){ at[i].time, (uint64_t)bytes })))
            return false;
    }
    return true;
}

bool gy_memory_profile_make(gy_memory_profile *profile, const gantry_schedule *s, uint32_t memory,
                            const gy_op_span *span)
{
    profile->count = 0;
    GY_VEC(change) changes = { 0 };
    gy_op_span *lives = gy_calloc(s->instances.count, sizeof *lives);
    bool fine = lives && gy_vec_reserve(&changes, 2 * s->instances.count + 1);
    if (fine) {
        find_lives(s, span, lives);
        for (size_t i = 0; i < s->instances.count; i++) {
            const gy_instance *in = &s->instances.at[i];
            if (!counts(in, memory) || lives[i].end < 0)
                continue;
            changes.at[changes.count++] = (change){ lives[i].start, (int64_t)in->bytes };
            changes.at[changes.count++] = (change){ lives[i].end, -(int64_t)in->bytes };
        }
        qsort(changes.at, changes.count, sizeof *changes.at, by_time);
        fine = add_up(profile, changes.at, changes.count);
    }
    gy_vec_free(&changes);
    gy_free(lives);
    return fine;
}
