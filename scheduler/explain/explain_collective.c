/* SPDX-License-Identifier: Apache-2.0 */
/* How a collective is carried out, and how else it could be; from the schedule alone. */
#include "scheduler/collective/collective.h"
#include "scheduler/explain/explain.h"

#define SHOWN 8 /* memories named, collectives behind one node */

/* "gpu0, gpu1, gpu2" */
static void add_memories(gy_text *to, const gantry_schedule *s, const gy_group *g, uint64_t set)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < g->ranks && shown <= SHOWN; i++) {
        if (i < 64 && !(set >> i & 1))
            continue;
        gy_text_printf(to, "%s%s", shown ? ", " : "", shown < SHOWN ? s->machine->memory[g->memory[i]].id : "...");
        shown++;
    }
}

static void add_bound(gy_text *to, const gantry_schedule *s, const gy_group *g)
{
    gy_collective_limit l;
    char size[32];
    if (!gy_collective_bound(&l, s->machine, g)) {
        to->failed = true;
        return;
    }
    gy_text_printf(to, "  none is faster than %.3f us:", gy_ticks_to_us(l.time));
    if (l.bandwidth > 0) {
        gy_text_printf(to, " %s must get %s", gy_bytes_text(size, sizeof size, (uint64_t)l.bytes),
                       l.inside ? "into or out of " : "to all ranks");
        if (l.inside)
            add_memories(to, s, g, l.inside);
        gy_text_printf(to, " at %g GB/s, %.3f us;", (double)l.rate / 1e9, gy_ticks_to_us(l.bandwidth));
    }
    gy_text_printf(to, " the farthest are %u hop%s apart, %.3f us\n", l.steps, l.steps == 1 ? "" : "s",
                   gy_ticks_to_us(l.latency));
}

static void add_row(gy_table *t, const gy_way *way, const gy_op *op, bool others)
{
    gy_table_cell(t, "%s %s:", way->algorithm == op->algorithm ? "=>" : "  ", gy_algorithm_name(way->algorithm));
    if (way->refused)
        gy_table_cell(t, "%s", "");
    else
        gy_table_cell(t, "%.3f us", gy_ticks_to_us(way->time));
    gy_table_cell(t, "%s",
                  way->refused                          ? way->refused
                  : way->provenance == GY_COST_MEASURED ? "measured: the machine's table"
                  : gy_collective_is_unproven(way)      ? "a model; chosen only where it was measured"
                  : others                              ? "steps over the machine's routes; others were measured"
                                                        : "steps over the machine's routes");
}

static void add_algorithms(gy_text *to, const gantry_schedule *s, const gy_op *op, const gy_group *g)
{
    gy_table t = { .align = "lrl" };
    gy_net net;
    if (!gy_net_init(&net, s->machine) || !gy_net_begin(&net, g))
        to->failed = true;
    gy_way way[GY_ALGORITHM_COUNT];
    bool measured = false;
    for (int i = 1; i < GY_ALGORITHM_COUNT && !to->failed; i++) {
        way[i] = gy_collective_look(&net, g, (gy_algorithm)i);
        measured = measured || way[i].provenance == GY_COST_MEASURED;
    }
    for (int i = 1; i < GY_ALGORITHM_COUNT && !to->failed; i++)
        add_row(&t, &way[i], op, measured);
    gy_net_free(&net);
    gy_table_print(&t, to);
    add_bound(to, s, g);
}

/* The sum of what each of the batch takes by the best algorithm for it alone. */
static gy_ticks time_apart(gy_text *to, const gantry_schedule *s, const gy_op *first)
{
    gy_ticks sum = 0;
    gy_net net;
    to->failed = to->failed || !gy_net_init(&net, s->machine);
    for (uint32_t i = 0; i < first->batch && !to->failed; i++) {
        gy_group g;
        gy_way way = { 0 };
        if (!gy_group_of_op(&g, s, &first[i])) {
            to->failed = true;
            break;
        }
        to->failed = !gy_net_begin(&net, &g) || !gy_collective_choose(&net, &g, &way);
        sum = gy_ticks_both(sum, way.time);
        gy_group_free(&g);
    }
    gy_net_free(&net);
    return sum;
}

static void explain_batch(gy_text *to, const gantry_schedule *s, const gy_op *first)
{
    gy_text_printf(
        to,
        "  it is in a batch of %u: one by one they would take %.3f us; the batch begins when the last of them "
        "can\n",
        first->batch, gy_ticks_to_us(time_apart(to, s, first)));
}

static void explain_op(gy_text *to, const gantry_schedule *s, uint32_t index)
{
    const gy_op *op = &s->ops.at[index];
    gy_group g;
    char size[32];
    gy_text name = { 0 };
    while (op->joined)
        op--;
    if (!gy_group_of_batch(&g, s, op)) {
        to->failed = true;
        return;
    }
    gy_op_text(&name, s, index);
    to->failed = to->failed || name.failed;
    gy_text_printf(to, "\n%s %s: %s among %u memories (", op->node == GY_NONE ? "put in for it:" : "how",
                   name.failed ? "" : name.at, gy_bytes_text(size, sizeof size, (uint64_t)g.bytes), g.ranks);
    add_memories(to, s, &g, UINT64_MAX);
    gy_text_printf(to, ")%s, %.3f us by %s\n", g.in_place ? ", in place" : "", gy_ticks_to_us(op->duration),
                   op->algorithm ? gy_algorithm_name(op->algorithm) : "whoever runs it");
    gy_text_free(&name);
    if (op->batch)
        explain_batch(to, s, op);
    if (g.ranks > 1)
        add_algorithms(to, s, op, &g);
    else
        gy_text_add(to, "  all of it is in one memory\n");
    gy_group_free(&g);
}

static bool brings(const gantry_schedule *s, const gy_op *op, const gy_use *read)
{
    for (uint32_t i = op->ins; i < op->uses; i++) {
        const gy_use *w = &s->use.at[op->use + i];
        if (w->instance == read->instance && w->first < read->last && read->first < w->last)
            return true;
    }
    return false;
}

/* The last collective that the scheduler put in before `index` for what it reads by the use, or GY_NONE. */
static uint32_t bringer(const gantry_schedule *s, uint32_t index, const gy_use *read)
{
    for (uint32_t i = index; i-- > 0;) {
        const gy_op *op = &s->ops.at[i];
        if (op->kind == GY_OP_COLLECTIVE && op->node == GY_NONE && brings(s, op, read))
            return i;
    }
    return GY_NONE;
}

void gy_explain_collectives(gy_text *to, const gantry_schedule *s, uint32_t index)
{
    const gy_op *op = &s->ops.at[index];
    uint32_t seen[SHOWN], count = 0;
    if (op->kind == GY_OP_COLLECTIVE)
        explain_op(to, s, index);
    for (uint32_t i = 0; i < op->uses && count < SHOWN; i++) {
        const gy_use *u = &s->use.at[op->use + i];
        uint32_t found = u->mode == GANTRY_READ || u->mode == GANTRY_READWRITE ? bringer(s, index, u) : GY_NONE, k = 0;
        while (k < count && seen[k] != found)
            k++;
        if (found == GY_NONE || k < count)
            continue;
        seen[count++] = found;
        explain_op(to, s, found);
    }
}
