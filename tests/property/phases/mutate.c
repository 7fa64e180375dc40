/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate.h"

#include <stdlib.h>

/* ---- bounds ---- */

/* One phase cuts one split at another row. */
bool move_bound(gantry_schedule *s, uint64_t *state)
{
    gantry_schedule *one = s->phases.at[draw(state, (int)s->phases.count)].schedule;
    if (one->bounds.count == 0)
        return false;
    struct gy_part_bounds *b = &one->bounds.at[draw(state, (int)one->bounds.count)];
    int part = 1 + draw(state, (int)b->parts - 1), step = draw(state, 2) ? 1 : -1;
    int64_t row = b->first[part] + step;
    if (b->parts < 2 || row < b->first[part - 1] || row > b->first[part + 1])
        return false;
    int64_t *first = gy_arena_alloc(&one->arena, (b->parts + 1u) * sizeof *first);
    for (uint32_t i = 0; i <= b->parts; i++)
        first[i] = b->first[i];
    first[part] = row;
    b->first = first;
    return true;
}

/* ---- hand-over ---- */

static bool is_written(const gantry_schedule *s, uint32_t instance)
{
    for (size_t i = 0; i < s->use.count; i++)
        if (s->use.at[i].instance == instance && s->use.at[i].mode != GANTRY_READ)
            return true;
    return false;
}

static bool overlaps(const gy_instance *a, const gy_instance *b)
{
    return a->value == b->value && a->first < b->last && b->first < a->last;
}

static bool is_handed_on(const gy_phase_context *x, uint32_t buffer)
{
    for (uint32_t i = 0; i < x->moves; i++)
        if (x->move[i].made && x->move[i].from == buffer)
            return true;
    return false;
}

/* The only instance that keeps rows which a phase changes, and which are wanted after it, keeps them no longer. */
static bool forget_instance(gantry_schedule *one, const gy_phase_context *x)
{
    for (uint32_t i = 0; i < one->instances.count; i++) {
        gy_instance *in = &one->instances.at[i];
        bool alone = in->role == GY_ROLE_PERSIST && in->first < in->last && is_handed_on(x, in->value);
        for (uint32_t k = 0; k < one->instances.count && alone; k++)
            alone = k == i || one->instances.at[k].role != GY_ROLE_PERSIST || !overlaps(in, &one->instances.at[k]);
        if (alone && is_written(one, i)) {
            in->role = GY_ROLE_DATA;
            return true;
        }
    }
    return false;
}

/* A copy to what is read after the phase leaves its last row out. */
static bool shorten_copy(gantry_schedule *one, const gy_phase_context *x)
{
    for (size_t i = one->ops.count; i-- > 0;) {
        const gy_op *op = &one->ops.at[i];
        gy_use *to = &one->use.at[op->use + 1];
        if (op->kind != GY_OP_COPY || op->node != GY_NONE)
            continue;
        const gy_instance *in = &one->instances.at[to->instance];
        if (in->space == GY_SPACE_OUTPUT && to->last - to->first > 1 && is_handed_on(x, in->value)) {
            to->last--;
            to[-1].last--;
            return true;
        }
    }
    return false;
}

bool drop_rows(gantry_schedule *s, const gantry_schedule *like, uint64_t *state)
{
    size_t first = (size_t)draw(state, (int)s->phases.count);
    for (size_t k = 0; k < s->phases.count; k++) {
        size_t i = (first + k) % s->phases.count;
        const gy_phase_context *x = like->phases.at[i].schedule->graph->phase;
        gantry_schedule *one = s->phases.at[i].schedule;
        if (x->phase.starts > 1 ? forget_instance(one, x) : shorten_copy(one, x))
            return true;
    }
    return false;
}
