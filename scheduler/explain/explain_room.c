/* SPDX-License-Identifier: Apache-2.0 */
/* From the schedule alone: rows that had to leave a memory, for what, and how they came back. Those that the op uses,
 * and those that left to make room for what it uses. */
#include "scheduler/explain/explain.h"

#define SHOWN 8 /* rows of a list */

typedef struct room {
    const gantry_schedule *s;
    gy_text *to;
    uint32_t *first, *last; /* per instance: the ops that use it first and last; GY_NONE: none do */
    uint32_t shown;
} room;

static const gy_instance *instance_at(const room *r, uint32_t x)
{
    return &r->s->instances.at[x];
}

static bool is_moved(const gy_op *op)
{
    return op->node == GY_NONE ? op->kind != GY_OP_FILL && !op->reduce : op->repeat;
}

static bool same_rows(const gy_instance *a, const gy_instance *b)
{
    return a->value == b->value && a->memory == b->memory && a->space == b->space && a->first < b->last &&
           b->first < a->last;
}

static bool same_bytes(const gy_instance *a, const gy_instance *b)
{
    return a->memory == b->memory && a->space == b->space && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

/* Does an op between the two make new rows in place of these? */
static bool is_made_between(const room *r, uint32_t from, uint32_t to, const gy_instance *rows)
{
    for (uint32_t i = from + 1; i < to; i++) {
        const gy_op *op = &r->s->ops.at[i];
        for (uint32_t k = 0; k < op->uses && !is_moved(op); k++) {
            const gy_use *u = &r->s->use.at[op->use + k];
            const gy_instance *in = instance_at(r, u->instance);
            if (u->mode != GANTRY_READ && in->value == rows->value && u->first < rows->last && rows->first < u->last)
                return true;
        }
    }
    return false;
}

/* The instance that had rows of this one before, in the same memory, and left; GY_NONE. */
static uint32_t find_before(const room *r, uint32_t x)
{
    uint32_t best = GY_NONE, begin = r->first[x];
    if (begin == GY_NONE || !is_moved(&r->s->ops.at[begin]))
        return GY_NONE;
    for (uint32_t y = 0; y < r->s->instances.count; y++)
        if (y != x && r->first[y] != GY_NONE && r->last[y] < begin && same_rows(instance_at(r, y), instance_at(r, x)) &&
            (best == GY_NONE || r->last[y] > r->last[best]))
            best = y;
    return best != GY_NONE && !is_made_between(r, r->last[best], begin, instance_at(r, x)) ? best : GY_NONE;
}

/* The instance that has the same rows in the same memory later. */
static uint32_t find_after(const room *r, uint32_t x)
{
    uint32_t best = GY_NONE;
    for (uint32_t y = 0; y < r->s->instances.count; y++)
        if (y != x && r->first[y] != GY_NONE && r->first[y] > r->last[x] &&
            same_rows(instance_at(r, y), instance_at(r, x)) && (best == GY_NONE || r->first[y] < r->first[best]))
            best = y;
    return best != GY_NONE && find_before(r, best) == x ? best : GY_NONE;
}

/* The first to have bytes of the instance once that is gone. */
static uint32_t find_next(const room *r, uint32_t x)
{
    uint32_t best = GY_NONE;
    for (uint32_t y = 0; y < r->s->instances.count; y++)
        if (y != x && r->first[y] != GY_NONE && r->first[y] > r->last[x] &&
            same_bytes(instance_at(r, y), instance_at(r, x)) && (best == GY_NONE || r->first[y] < r->first[best]))
            best = y;
    return best;
}

/* ---- text ---- */

static void add_instance(const room *r, uint32_t x)
{
    const gy_instance *in = instance_at(r, x);
    gy_use all = { .instance = x, .first = in->first, .last = in->last };
    gy_use_text(r->to, r->s, &all);
}

static void add_left(const room *r, uint32_t x)
{
    const gy_op *out = &r->s->ops.at[r->last[x]];
    const gy_instance *in = instance_at(r, x);
    bool sent = out->kind == GY_OP_EVICT && r->s->use.at[out->use].instance == x;
    gy_text_add(r->to, "  ");
    add_instance(r, x);
    gy_text_printf(r->to, " left %s at %.3f us: ", r->s->machine->memory[in->memory].id, gy_ticks_to_us(out->end));
    if (sent)
        gy_text_printf(r->to, "sent to %s in %.3f us",
                       r->s->machine->memory[instance_at(r, r->s->use.at[out->use + 1].instance)->memory].id,
                       gy_ticks_to_us(out->end - out->start));
    else
        gy_text_add(r->to, "dropped, since they can be had again");
}

static void add_reason(const room *r, uint32_t x)
{
    uint32_t next = find_next(r, x);
    if (next == GY_NONE)
        return;
    gy_text_add(r->to, "; room for ");
    add_instance(r, next);
    gy_text_add(r->to, ", needed by ");
    gy_op_text(r->to, r->s, r->first[next]);
}

static void add_return(const room *r, uint32_t x, const char *verb)
{
    const gy_op *in = &r->s->ops.at[r->first[x]];
    gy_text_printf(r->to, "    %s at %.3f us by ", verb, gy_ticks_to_us(in->end));
    gy_op_text(r->to, r->s, r->first[x]);
    gy_text_printf(r->to, " in %.3f us\n", gy_ticks_to_us(in->end - in->start));
}

static void add_head(room *r)
{
    gy_text_add(r->to, r->shown++ ? "" : "\nrows that had to leave\n");
}

/* Rows that persist in host memory, as all that persists does not fit. */
static bool lives_outside(const room *r, uint32_t x)
{
    const gy_op *in = r->first[x] == GY_NONE ? NULL : &r->s->ops.at[r->first[x]];
    if (!in || in->kind != GY_OP_FETCH)
        return false;
    const gy_instance *home = instance_at(r, r->s->use.at[in->use].instance);
    return home->role == GY_ROLE_PERSIST && home->memory == 0;
}

static void explain_instance(room *r, uint32_t x)
{
    uint32_t before = find_before(r, x);
    if (before == GY_NONE && !lives_outside(r, x))
        return;
    add_head(r);
    if (before != GY_NONE) {
        add_left(r, before);
        add_reason(r, before);
        gy_text_add(r->to, "\n");
    } else {
        gy_text_add(r->to, "  ");
        add_instance(r, x);
        gy_text_printf(r->to, " persist in %s: there is no room in %s for all that persists\n",
                       r->s->machine->memory[0].id, r->s->machine->memory[instance_at(r, x)->memory].id);
    }
    add_return(r, x, before == GY_NONE ? "there" : "back");
}

/* Was the instance put there for the op? */
static bool is_for(const room *r, uint32_t x, uint32_t op)
{
    return r->first[x] == op || (r->first[x] != GY_NONE && is_moved(&r->s->ops.at[r->first[x]]));
}

/* Those whose bytes the instance has taken over, and that come back. */
static void explain_room_for(room *r, uint32_t x)
{
    for (uint32_t y = 0; y < r->s->instances.count && r->shown < SHOWN; y++) {
        uint32_t after = GY_NONE;
        if (r->first[y] != GY_NONE && r->first[x] != GY_NONE && find_next(r, y) == x)
            after = find_after(r, y);
        if (after == GY_NONE)
            continue;
        add_head(r);
        add_left(r, y);
        add_reason(r, y);
        gy_text_add(r->to, "\n");
        add_return(r, after, "back");
    }
}

static bool note_lives(room *r)
{
    size_t count = r->s->instances.count;
    r->first = gy_calloc(count + 1, sizeof *r->first);
    r->last = gy_calloc(count + 1, sizeof *r->last);
    for (size_t x = 0; x < count && r->first && r->last; x++)
        r->first[x] = r->last[x] = GY_NONE;
    for (uint32_t i = 0; i < r->s->ops.count && r->first && r->last; i++)
        for (uint32_t k = 0; k < r->s->ops.at[i].uses; k++) {
            uint32_t x = r->s->use.at[r->s->ops.at[i].use + k].instance;
            r->first[x] = r->first[x] == GY_NONE ? i : r->first[x];
            r->last[x] = i;
        }
    return r->first && r->last;
}

/* Each instance once, however often the op uses it. */
static bool is_first_use(const room *r, const gy_op *op, uint32_t k)
{
    for (uint32_t n = 0; n < k; n++)
        if (r->s->use.at[op->use + n].instance == r->s->use.at[op->use + k].instance)
            return false;
    return instance_at(r, r->s->use.at[op->use + k].instance)->space == GY_SPACE_SLAB;
}

void gy_explain_room(gy_text *to, const gantry_schedule *s, uint32_t index)
{
    room r = { .s = s, .to = to };
    const gy_op *op = &s->ops.at[index];
    bool known = note_lives(&r);
    to->failed = to->failed || !known;
    for (uint32_t k = 0; k < op->uses && known && r.shown < SHOWN; k++)
        if (is_first_use(&r, op, k))
            explain_instance(&r, s->use.at[op->use + k].instance);
    for (uint32_t k = 0; k < op->uses && known; k++)
        if (is_first_use(&r, op, k) && is_for(&r, s->use.at[op->use + k].instance, index))
            explain_room_for(&r, s->use.at[op->use + k].instance);
    gy_free(r.first);
    gy_free(r.last);
}
