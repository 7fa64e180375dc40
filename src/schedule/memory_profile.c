/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in use in one memory over time. */
#include "schedule/memory_profile.h"

#include <stdlib.h>

typedef struct change {
    gy_ticks time;
    int64_t bytes;
} change;

typedef struct life {
    gy_ticks first, last;
} life;

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

static void find_lives(const gantry_schedule *s, life *lives)
{
    for (size_t i = 0; i < s->instances.count; i++)
        lives[i] = s->instances.at[i].role == GY_ROLE_PERSIST ? (life){ 0, s->makespan } : (life){ GY_TICKS_MAX, -1 };
    for (size_t i = 0; i < s->ops.count; i++)
        for (uint32_t k = 0; k < s->ops.at[i].uses; k++) {
            life *l = &lives[s->use.at[s->ops.at[i].use + k].instance];
            l->first = s->ops.at[i].start < l->first ? s->ops.at[i].start : l->first;
            l->last = s->ops.at[i].end > l->last ? s->ops.at[i].end : l->last;
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

bool gy_memory_profile_make(gy_memory_profile *profile, const gantry_schedule *s, uint32_t memory)
{
    profile->count = 0;
    GY_VEC(change) changes = { 0 };
    life *lives = gy_calloc(s->instances.count, sizeof *lives);
    bool fine = lives && gy_vec_reserve(&changes, 2 * s->instances.count + 1);
    if (fine) {
        find_lives(s, lives);
        for (size_t i = 0; i < s->instances.count; i++) {
            const gy_instance *in = &s->instances.at[i];
            if (!counts(in, memory) || lives[i].last < 0)
                continue;
            changes.at[changes.count++] = (change){ lives[i].first, (int64_t)in->bytes };
            changes.at[changes.count++] = (change){ lives[i].last, -(int64_t)in->bytes };
        }
        qsort(changes.at, changes.count, sizeof *changes.at, by_time);
        fine = add_up(profile, changes.at, changes.count);
    }
    gy_vec_free(&changes);
    gy_free(lives);
    return fine;
}
