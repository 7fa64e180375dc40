/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/order/vector_clock.h"

#include <string.h>

enum { ROOM = 1024 }; /* clocks, at the beginning */

bool gy_vector_clock_init(gy_vector_clock *c, const gantry_schedule *s)
{
    *c = (gy_vector_clock){ .s = s, .lanes = s->lanes.count, .room = ROOM };
    size_t width = c->lanes + 1;
    c->at = gy_calloc(c->room, width * sizeof *c->at);
    c->lane_at = gy_calloc(width, width * sizeof *c->lane_at);
    c->last = gy_calloc(width, sizeof *c->last);
    c->now = gy_calloc(width, sizeof *c->now);
    c->known = gy_calloc(width, sizeof *c->known);
    if (c->at && c->lane_at && c->last && c->now && c->known)
        return true;
    gy_vector_clock_free(c);
    return false;
}

void gy_vector_clock_free(gy_vector_clock *c)
{
    gy_free(c->at);
    gy_free(c->lane_at);
    gy_free(c->last);
    gy_free(c->now);
    gy_free(c->known);
    c->at = c->lane_at = c->last = c->now = c->known = NULL;
}

static void join(gy_vector_clock *c, const uint32_t *other)
{
    for (size_t i = 0; i < c->lanes; i++)
        c->now[i] = other[i] > c->now[i] ? other[i] : c->now[i];
}

void gy_vector_clock_begin(gy_vector_clock *c, uint32_t position)
{
    const gy_op *op = &c->s->ops.at[position];
    memset(c->now, 0, c->lanes * sizeof *c->now);
    for (uint32_t k = 0; k < op->lanes; k++)
        join(c, &c->lane_at[c->s->op_lane.at[op->lane + k] * c->lanes]);
}

void gy_vector_clock_wait(gy_vector_clock *c, uint32_t from)
{
    join(c, &c->at[(from - c->first) * c->lanes]);
}

bool gy_vector_clock_has(const gy_vector_clock *c, uint32_t from)
{
    return c->now[c->s->op_lane.at[c->s->ops.at[from].lane]] > from;
}

/* The first op that some lane does not know to have ended. Clocks are gone through one by one, as they lie in memory:
 * of a thousand GPUs they are hundreds of megabytes. */
static size_t first_unknown(const gy_vector_clock *c, size_t next)
{
    size_t first = next;
    memcpy(c->known, c->last, c->lanes * sizeof *c->known);
    for (size_t k = 0; k < c->lanes; k++) {
        const uint32_t *clock = &c->lane_at[k * c->lanes];
        for (size_t lane = 0; lane < c->lanes; lane++)
            c->known[lane] = clock[lane] < c->known[lane] ? clock[lane] : c->known[lane];
    }
    for (size_t lane = 0; lane < c->lanes; lane++)
        first = c->known[lane] < c->last[lane] && c->known[lane] < first ? c->known[lane] : first;
    return first;
}

/* Drops what nobody will ask for; doubles the room where that does not leave half of it. */
static bool make_room(gy_vector_clock *c)
{
    size_t next = c->first + c->count, first = first_unknown(c, next);
    first = first > c->first ? first : c->first;
    memmove(c->at, &c->at[(first - c->first) * c->lanes], (next - first) * c->lanes * sizeof *c->at);
    c->first = first;
    c->count = next - first;
    if (c->count <= c->room / 2)
        return true;
    uint32_t *at = gy_realloc(c->at, c->room * 2, (c->lanes + 1) * sizeof *at);
    if (!at)
        return false;
    c->at = at;
    c->room *= 2;
    return true;
}

bool gy_vector_clock_end(gy_vector_clock *c, uint32_t position)
{
    const gy_op *op = &c->s->ops.at[position];
    if (c->count == c->room && !make_room(c))
        return false;
    for (uint32_t k = 0; k < op->lanes; k++)
        c->now[c->s->op_lane.at[op->lane + k]] = position + 1;
    for (uint32_t k = 0; k < op->lanes; k++) {
        uint32_t lane = c->s->op_lane.at[op->lane + k];
        memcpy(&c->lane_at[lane * c->lanes], c->now, c->lanes * sizeof *c->now);
        c->last[lane] = position + 1;
    }
    memcpy(&c->at[c->count++ * c->lanes], c->now, c->lanes * sizeof *c->now);
    return true;
}
