/* SPDX-License-Identifier: Apache-2.0 */
/* The node as placing saw it: the candidates, and what made the difference. */
#include "scheduler/cost/cost.h"
#include "scheduler/explain/explain.h"
#include "scheduler/policies/policy.h"

#include <stdlib.h>
#include <string.h>

static const char *device_id(const gy_plan *p, uint32_t device)
{
    return p->machine->device[device].id;
}

/* ---- candidates ---- */

static int by_device(const void *a, const void *b)
{
    const gy_try *x = a, *y = b;
    return x->device < y->device ? -1 : x->device > y->device;
}

static const gy_try *chosen_of(const gy_plan *p, uint32_t task)
{
    for (size_t i = 0; i < p->placed.tries.count; i++)
        if (p->placed.tries.at[i].device == p->placed.device[task])
            return &p->placed.tries.at[i];
    return NULL;
}

static void add_candidates(gy_text *to, const gy_plan *p, uint32_t task)
{
    gy_table t = { .align = "lrrrrl" };
    const gy_try *chosen = chosen_of(p, task);
    gy_text_printf(to, "\ncandidates, when %s came to it\n", p->policy->name);
    for (size_t i = 0; i < p->placed.tries.count; i++) {
        const gy_try *try = &p->placed.tries.at[i];
        gy_table_cell(&t, "%s %s:", try == chosen ? "=>" : "  ", device_id(p, try->device));
        gy_table_cell(&t, "data ready %.3f us", gy_ticks_to_us(try->ready));
        gy_table_cell(&t, "start %.3f us", gy_ticks_to_us(try->start));
        gy_table_cell(&t, "compute %.3f us", gy_ticks_to_us(try->finish - try->start));
        gy_table_cell(&t, "finish %.3f us", gy_ticks_to_us(try->finish));
        gy_table_cell(&t, "%s", try == chosen ? "chosen" : "");
    }
    gy_table_print(&t, to);
}

/* ---- the decision ---- */

typedef struct term {
    gy_ticks more; /* than for the device that was chosen */
    const char *what, *later, *earlier;
    bool data;
} term;

/* Terms that speak against the device come first, then those that speak for it, the largest first. */
static int largest_first(const void *a, const void *b)
{
    const term *x = a, *y = b;
    gy_ticks big = x->more < 0 ? -x->more : x->more, other = y->more < 0 ? -y->more : y->more;
    if ((x->more < 0) != (y->more < 0))
        return x->more < 0 ? 1 : -1;
    if (big != other)
        return big > other ? -1 : 1;
    return strcmp(x->what, y->what);
}

/* Which rows the data of the device wait for last. */
static void add_last(gy_text *to, const gy_plan *p, uint32_t task, uint32_t device)
{
    gy_inputs in = { 0 };
    uint32_t memory = p->machine->device[device].memory;
    if (!gy_inputs_find(&in, p, task, memory))
        to->failed = true;
    size_t last = gy_inputs_last(&in);
    if (last != SIZE_MAX && in.at[last].memory != memory && in.at[last].takes > 0) {
        gy_text_printf(to, " (%s over ", in.at[last].dep ? gy_plan_node(p, in.at[last].dep->from)->id : "bound inputs");
        gy_inputs_route(to, p, in.at[last].memory, memory);
        gy_text_add(to, ")");
    }
    gy_vec_free(&in);
}

/* "it computes 6.000 us longer, though its data arrive 5.000 us earlier": the terms add up to the difference. */
static void add_terms(gy_text *to, const gy_plan *p, uint32_t task, const gy_try *try, const gy_try *chosen)
{
    term terms[] = {
        { try->ready - chosen->ready, "its data arrive", "later", "earlier", true },
        { (try->start - try->ready) - (chosen->start - chosen->ready), "it is busy", "longer", "less", false },
        { (try->finish - try->start) - (chosen->finish - chosen->start), "it computes", "longer", "less", false },
    };
    const char *between = ": ";
    bool contrasted = false;
    qsort(terms, 3, sizeof *terms, largest_first);
    for (int i = 0; i < 3; i++) {
        const term *one = &terms[i];
        bool contrasts = one->more < 0 && !contrasted;
        if (!one->more)
            continue;
        gy_text_add(to, contrasts && between[0] == ' ' ? ", though " : between);
        contrasted = contrasted || contrasts;
        gy_text_printf(to, "%s %.3f us %s", one->what, gy_ticks_to_us(one->more > 0 ? one->more : -one->more),
                       one->more > 0 ? one->later : one->earlier);
        if (one->data && one->more > 0)
            add_last(to, p, task, try->device);
        between = " and ";
    }
}

static void add_decision(gy_text *to, const gy_plan *p, uint32_t task)
{
    const gy_try *chosen = chosen_of(p, task);
    bool earlier = false;
    if (!chosen || p->placed.tries.count < 2)
        return;
    gy_text_printf(to, "\nwhy %s\n", device_id(p, chosen->device));
    for (size_t i = 0; i < p->placed.tries.count; i++) {
        const gy_try *try = &p->placed.tries.at[i];
        gy_ticks more = try->finish - chosen->finish;
        if (try == chosen)
            continue;
        if (more)
            gy_text_printf(to, "  %s would finish %.3f us %s", device_id(p, try->device),
                           gy_ticks_to_us(more > 0 ? more : -more), more > 0 ? "later" : "earlier");
        else
            gy_text_printf(to, "  %s would finish at the same time", device_id(p, try->device));
        add_terms(to, p, task, try, chosen);
        gy_text_add(to, "\n");
        earlier = earlier || more < 0;
    }
    if (earlier)
        gy_text_printf(to, "  %s goes by more than this node's finish\n", p->policy->name);
}

/* ---- collectives ---- */

static void add_team(gy_text *to, const gy_plan *p, uint32_t task)
{
    const gy_team *team = gy_plan_team(p, task);
    gy_table t = { .align = "lll" };
    for (uint32_t i = 0; i < team->ranks; i++) {
        gy_table_cell(&t, "rank %u", i);
        gy_table_cell(&t, "on %s", device_id(p, team->device[i]));
        gy_table_cell(&t, "%s",
                      team->fixed                                        ? "where \"on\" puts it"
                      : team->writer[i] == GY_NONE                       ? "nothing was written anywhere"
                      : gy_plan_rank_home(p, team, i) != team->device[i] ? "away from where its rows were written"
                                                                         : "where its rows were written");
    }
    gy_text_add(to, team->fixed ? "\nranks go where \"on\" puts them\n"
                    : gy_plan_is_tied(p, p->flow->task[task].node)
                        ? "\nthe one rank goes where \"on\", \"with\" and \"apart\" let it\n"
                        : "\nranks go where what they give was written\n");
    gy_table_print(&t, to);
}

void gy_explain_place(gy_text *to, const gy_plan *p, uint32_t task)
{
    gy_explain_inputs(to, p, task);
    if (gy_plan_team(p, task)) {
        add_team(to, p, task);
        return;
    }
    if (p->placed.tries.count)
        qsort(p->placed.tries.at, p->placed.tries.count, sizeof *p->placed.tries.at, by_device);
    gy_explain_transfers(to, p, task);
    gy_explain_cost(to, p, p->flow->task[task].node);
    add_candidates(to, p, task);
    add_decision(to, p, task);
}
