/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest algorithm that can, or the one that was asked for. */
#include "scheduler/collective/collective.h"

#include "base/error.h"

/* Copies of a GPU go one behind the other, each a launch behind the one before. */
static gy_ticks launches_within(const gy_net *net, const gy_group *g)
{
    uint32_t d = net->device[g->memory[0]];
    bool waits = d != GY_MACHINE_NONE && net->m->device[d].gpu && g->pieces > 1;
    return waits ? gy_ticks_times(net->m->device[d].launch, g->pieces - 1) : 0;
}

/* In one memory there is nothing to send: what is left is copies within it, whatever they are called. */
static gy_way within(const gy_net *net, const gy_group *g)
{
    const gy_route *r = gy_machine_route(net->m, g->memory[0], g->memory[0]);
    return (gy_way){ .algorithm = g->reduce ? GY_ALGORITHM_ONE_SHOT : GY_ALGORITHM_COPY,
                     .time = gy_ticks_sum(gy_route_time(net->m, r, g->bytes), launches_within(net, g)),
                     .provenance = r->given ? GY_COST_MEASURED : GY_COST_ROOFLINE };
}

/* The time that an algorithm is compared by. A model never beats a measurement by being optimistic: it has to say less
 * than half of what was measured of another. */
static gy_ticks doubtful(const gy_way *w)
{
    if (w->provenance == GY_COST_MEASURED)
        return w->time;
    return gy_ticks_repeated(w->time, 2);
}

static bool is_better(const gy_way *c, const gy_way *best)
{
    if (c->refused || best->refused)
        return !c->refused;
    return doubtful(c) < doubtful(best);
}

bool gy_collective_choose(gy_net *net, const gy_group *g, gy_way *best)
{
    if (g->ranks < 2) {
        *best = within(net, g);
        return true;
    }
    if (!gy_net_begin(net, g))
        return false;
    *best = gy_collective_look(net, g, (gy_algorithm)1);
    for (int i = 2; i < GY_ALGORITHM_COUNT; i++) {
        gy_way c = gy_collective_look(net, g, (gy_algorithm)i);
        if (is_better(&c, best) && !gy_collective_is_unproven(&c))
            *best = c;
    }
    if (best->refused) { /* for lack of room: whoever runs it has to make do */
        best->algorithm = g->reduce ? GY_ALGORITHM_TREE : GY_ALGORITHM_COPY;
        best->time = g->reduce ? gy_time_tree(net, g) : gy_time_copy(net, g);
        best->refused = NULL;
    }
    return true;
}

/* Why it cannot be asked for, or NULL. In one memory nothing is sent: any way is as good that there is for the kind. */
static const char *refusal(gy_net *net, const gy_group *g, gy_algorithm algorithm)
{
    if (g->ranks < 2 && gy_collective_knows(algorithm, g->kind))
        return NULL;
    return gy_collective_look(net, g, algorithm).refused;
}

/* "ring, tree": those that can. */
static void list_able(gy_text *to, gy_net *net, const gy_group *g)
{
    bool any = false;
    for (int i = 1; i < GY_ALGORITHM_COUNT; i++) {
        if (refusal(net, g, (gy_algorithm)i))
            continue;
        gy_text_printf(to, "%s%s", any ? ", " : "", gy_algorithm_name((gy_algorithm)i));
        any = true;
    }
}

static gantry_status refuse(gy_net *net, const gy_group *g, const char *name, const char *node, const char *why,
                            gantry_error *err)
{
    gy_text able = { 0 };
    gy_text_add(&able, "");
    list_able(&able, net, g);
    gantry_status status = able.failed ? gy_fail_nomem(err)
                                       : gy_fail(err, GANTRY_E_GRAPH, NULL,
                                                 "%s \"%s\" asks for algorithm \"%s\": %s; here there are auto, %s",
                                                 gantry_collective_name(g->kind), node, name, why, able.at);
    gy_text_free(&able);
    return status;
}

static gantry_status refuse_unknown(gy_net *net, const gy_group *g, const char *name, const char *node,
                                    gantry_error *err)
{
    gy_near near = { 0 };
    gy_text why = { 0 };
    for (int i = 1; i < GY_ALGORITHM_COUNT; i++)
        gy_near_offer(&near, name, gy_algorithm_name((gy_algorithm)i));
    gy_text_printf(&why, near.best ? "nobody knows it (did you mean \"%s\"?)" : "nobody knows it", near.best);
    gantry_status status = why.failed ? gy_fail_nomem(err) : refuse(net, g, name, node, why.at, err);
    gy_text_free(&why);
    return status;
}

gantry_status gy_collective_obey(gy_net *net, const gy_group *g, const char *name, const char *node, gy_way *best,
                                 gantry_error *err)
{
    if (!gy_collective_choose(net, g, best))
        return gy_fail_nomem(err);
    if (!name)
        return GANTRY_OK;
    if (!gy_net_begin(net, g))
        return gy_fail_nomem(err);
    gy_algorithm asked = gy_algorithm_find(name);
    if (asked == GY_ALGORITHM_NONE)
        return refuse_unknown(net, g, name, node, err);
    const char *why = refusal(net, g, asked);
    if (why)
        return refuse(net, g, name, node, why, err);
    if (g->ranks < 2)
        best->algorithm = asked;
    else
        *best = gy_collective_look(net, g, asked);
    return GANTRY_OK;
}
