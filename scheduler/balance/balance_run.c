/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling a graph whose parts may be cut in several ways. */
#include "scheduler/balance/balance.h"

#include "base/error.h"
#include "schedule/words.h"
#include "scheduler/phases/phases.h"
#include "scheduler/pipeline/pipeline.h"

typedef struct choice {
    gantry_graph *graph;
    const gantry_machine *machine;
    const gy_options *options;
    gantry_schedule *best;
    bool equal_done;    /* equal parts were tried */
    bool tight;         /* memory is short for some cut and policy */
    gantry_error first; /* why the first that did not fit did not */
} choice;

/* Does something spill, or was something skipped that would have to? */
static bool is_tight(const gantry_schedule *s)
{
    for (size_t i = 0; i < s->tried.count; i++)
        if (s->tried.at[i].tight)
            return true;
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_EVICT)
            return true;
    for (size_t i = 0; i < s->phases.count; i++)
        if (is_tight(s->phases.at[i].schedule))
            return true;
    return false;
}

/* The time that the objective makes least. */
static gy_ticks cost_of(const gantry_schedule *s)
{
    return s->period > 0 ? s->period : s->makespan;
}

/* `name` is static. */
static void name_balance(gantry_schedule *s, const char *name)
{
    s->balance = name;
    for (size_t i = 0; i < s->phases.count; i++)
        s->phases.at[i].schedule->balance = name;
}

static void keep(choice *c, gantry_schedule *s, gy_balance method)
{
    name_balance(s, gy_word(&gy_balance_words, method));
    c->tight = c->tight || is_tight(s);
    if (c->best && cost_of(c->best) <= cost_of(s)) {
        gantry_schedule_free(s);
        return;
    }
    gantry_schedule_free(c->best);
    c->best = s;
}

static gantry_status try_method(choice *c, gy_balance method, gantry_error *err)
{
    gantry_graph *cut;
    gantry_schedule *s = NULL;
    gantry_error inner = { 0 };
    gantry_status status = gy_balance_cut(&cut, c->graph, c->machine, c->options, method, err);
    if (status)
        return status;
    bool again = cut == c->graph && c->equal_done;
    c->equal_done = c->equal_done || cut == c->graph;
    if (!again)
        status = gy_phases_run(&s, cut, c->machine, c->options, &inner);
    bool moved = cut != c->graph;
    gantry_graph_free(cut);
    if (status == GANTRY_E_UNSUPPORTED && moved) /* phases can depend on where parts end; equal ones may do */
        return c->best ? GANTRY_OK : try_method(c, GY_BALANCE_STATIC, err);
    if (s)
        keep(c, s, method);
    if (status == GANTRY_E_CAPACITY && c->first.status == GANTRY_OK)
        c->first = inner;
    else if (status && err)
        *err = inner;
    return status == GANTRY_E_CAPACITY ? GANTRY_OK : status;
}

/* Can equal parts be better than the best so far? What no schedule of these can beat may be more than that: then they
 * are not planned. */
static gantry_status ask_equal(const choice *c, bool *can, gantry_error *err)
{
    const gantry_schedule *best = c->best;
    gy_bound bound;
    *can = true;
    if (!best || c->equal_done || best->period > 0 || best->phases.count)
        return GANTRY_OK;
    GY_TRY(gy_pipeline_bound(&bound, c->graph, c->machine, c->options->max_memory, err));
    *can = bound.time < cost_of(best);
    return GANTRY_OK;
}

static gantry_status try_methods(choice *c, gantry_error *err)
{
    if (c->options->balance == GY_BALANCE_GUIDED) { /* nothing was measured yet */
        GY_TRY(try_method(c, GY_BALANCE_DYNAMIC, err));
        if (c->best)
            c->best->balance = "guided";
        return GANTRY_OK;
    }
    if (c->options->balance != GY_BALANCE_CHOSEN)
        return try_method(c, c->options->balance, err);
    /* Makespans or periods are compared: for least load, what is even is taken as good. */
    bool compare = c->options->objective != GY_OBJECTIVE_MAX_LOAD;
    bool can = true;
    gantry_status status = try_method(c, GY_BALANCE_DYNAMIC, err);
    if (!status && compare)
        status = ask_equal(c, &can, err);
    if (!status && can && (compare || !c->best))
        status = try_method(c, GY_BALANCE_STATIC, err);
    if (!status && (!c->best || c->tight))
        status = try_method(c, GY_BALANCE_MEMORY, err);
    return status;
}

/* `name` may belong to another schedule, or be NULL. false: out of memory. */
static bool copy_balance(gantry_schedule *s, const char *name)
{
    s->balance = name ? gy_arena_strdup(&s->arena, name) : NULL;
    bool done = !name || s->balance;
    for (size_t i = 0; i < s->phases.count && done; i++)
        done = copy_balance(s->phases.at[i].schedule, name);
    return done;
}

/* One cut is given: that of another schedule. */
static gantry_status run_like(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                              const gy_options *options, gantry_error *err)
{
    const gantry_schedule *like = options->like;
    gantry_graph *cut;
    gantry_schedule *s = NULL;
    if (like->graph_hash != graph->hash)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "like: a schedule of graph \"%s\", which is not this \"%s\"",
                       like->graph_name, graph->name);
    gantry_status status = gy_schedule_graph(&cut, like, graph, err);
    if (status)
        return status;
    status = gy_phases_run(&s, cut, machine, options, err);
    gantry_graph_free(cut);
    if (status)
        return status;
    if (!copy_balance(s, like->balance)) {
        gantry_schedule_free(s);
        return gy_fail_nomem(err);
    }
    *schedule = s;
    return GANTRY_OK;
}

gantry_status gy_balance_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                             const gy_options *options, gantry_error *err)
{
    if (!gy_graph_has_auto(graph))
        return gy_phases_run(schedule, graph, machine, options, err);
    if (options->like)
        return run_like(schedule, graph, machine, options, err);
    choice c = { .graph = graph, .machine = machine, .options = options };
    gantry_status status = try_methods(&c, err);
    if (!status && !c.best) {
        if (err)
            *err = c.first;
        status = c.first.status;
    }
    if (status)
        gantry_schedule_free(c.best);
    else
        *schedule = c.best;
    return status;
}
