/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The needs that starts have of earlier ones, byte by byte. The ops are gone through twice. The first time leaves, for
 * each run of bytes, its last writer and the readers since; what the second time does to the bytes needs them, until it
 * has written these. Bytes in windows meet again in_flight starts later, all others in the next start.
 */
#include "schedule/counters/counters.h"

#include "base/imap.h"

/* Readers since the last write, newest first; shared between runs. */
typedef struct past {
    uint32_t reader, writer; /* of the first start; GY_NONE: nobody */
    const struct past *next;
} past;

typedef struct hazards {
    const gantry_schedule *s;
    gy_counted_needs *needs;
    gy_imap *space; /* slab of each memory, staging, then the outputs of each value's buffer */
    size_t spaces;
    gy_arena arena;
    bool second;
} hazards;

static gy_imap *space_of(const hazards *h, const gy_instance *in)
{
    size_t memories = h->s->slab.count;
    switch (in->space) {
    case GY_SPACE_SLAB:
        return &h->space[in->memory];
    case GY_SPACE_STAGING:
        return &h->space[memories];
    case GY_SPACE_OUTPUT:
        return &h->space[memories + 1 + in->value];
    default:
        return NULL; /* inputs never change */
    }
}

/* So many starts later the instance has these bytes again. Arrays of outputs are those of a turn. */
static uint32_t distance_of(const gantry_schedule *s, const gy_instance *in)
{
    bool own = in->space == GY_SPACE_OUTPUT || gy_instance_address(s, in, 1) != gy_instance_address(s, in, 0);
    return own ? s->in_flight : 1;
}

/* A batch begins as one, so what one of its ops waits for, the first does. */
static uint32_t begins_with(const gantry_schedule *s, uint32_t op)
{
    while (s->ops.at[op].joined)
        op--;
    return op;
}

static bool add_need(hazards *h, uint32_t from, uint32_t to, uint32_t distance)
{
    gy_counted_need need = { begins_with(h->s, to), distance, from, false };
    return from == GY_NONE || gy_vec_push(h->needs, need);
}

static bool need_past(hazards *h, const past *m, uint32_t op, uint8_t mode, uint32_t distance)
{
    bool done = true;
    if (m && (mode != GANTRY_WRITE || m->reader == GY_NONE))
        done = add_need(h, m->writer, op, distance);
    for (; m && mode != GANTRY_READ && m->reader != GY_NONE && done; m = m->next)
        done = add_need(h, m->reader, op, distance);
    return done;
}

static bool see_bytes(hazards *h, const past **last, uint32_t op, uint8_t mode, uint32_t distance)
{
    const past *old = *last;
    if (h->second) {
        *last = mode == GANTRY_READ ? old : NULL;
        return need_past(h, old, op, mode, distance);
    }
    past *new = gy_arena_alloc(&h->arena, sizeof *new);
    if (!new)
        return false;
    if (mode == GANTRY_READ)
        *new = (past){ op, old ? old->writer : GY_NONE, old && old->reader != GY_NONE ? old : NULL };
    else
        *new = (past){ GY_NONE, op, NULL };
    *last = new;
    return true;
}

static bool see_use(hazards *h, uint32_t op, const gy_use *u)
{
    const gy_instance *in = &h->s->instances.at[u->instance];
    gy_imap *map = space_of(h, in);
    int64_t first = (int64_t)(in->offset + gy_instance_offset(h->s, in, u->first));
    int64_t last = first + (int64_t)gy_use_bytes(h->s, u);
    if (!map || first >= last)
        return true;
    if (!map->at && !gy_imap_init(map, 0, INT64_MAX, 0))
        return false;
    uint32_t i = gy_imap_cut(map, first, last), distance = distance_of(h->s, in);
    bool done = i != GY_IMAP_NONE;
    for (; done && i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i)) {
        const past *m = (const past *)(uintptr_t)map->at[i].payload;
        done = see_bytes(h, &m, op, u->mode, distance);
        map->at[i].payload = (uintptr_t)m;
    }
    return done;
}

/* An op reads before it writes: what it does to its own bytes waits for nobody but others. */
static bool see_op(hazards *h, uint32_t op)
{
    const gy_op *o = &h->s->ops.at[op];
    bool done = true;
    for (int writes = 0; writes < 2; writes++)
        for (uint32_t u = 0; u < o->uses && done; u++)
            if ((h->s->use.at[o->use + u].mode != GANTRY_READ) == (writes != 0))
                done = see_use(h, op, &h->s->use.at[o->use + u]);
    return done;
}

bool gy_counters_hazards(gy_counted_needs *needs, const gantry_schedule *s)
{
    hazards h = { .s = s, .needs = needs, .spaces = s->slab.count + 1 + s->values.count };
    h.space = gy_calloc(h.spaces, sizeof *h.space);
    bool done = h.space != NULL;
    for (uint32_t op = 0; op < s->ops.count && done; op++)
        done = see_op(&h, op);
    h.second = true;
    for (uint32_t op = 0; op < s->ops.count && done; op++)
        done = see_op(&h, op);
    for (size_t i = 0; h.space && i < h.spaces; i++)
        gy_imap_free(&h.space[i]);
    gy_free(h.space);
    gy_arena_free(&h.arena);
    return done;
}
