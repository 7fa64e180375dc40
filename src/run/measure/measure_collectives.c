/* SPDX-License-Identifier: Apache-2.0 */
#include "run/measure/collectives.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "machine/gpus.h"
#include <gantry/run.h>
#include <string.h>

enum { SIZES = 5, FEW = 2, WARM = 2, SAMPLES = 5, LEAST = 3 };
#define SMALLEST UINT64_C(1024)
#define FACTOR   16

/* ---- a graph that is run ---- */

typedef struct chain {
    gantry_graph *graph;
    gantry_schedule *schedule;
    gantry_run *run;
    uint32_t calls;
} chain;

static void close_chain(chain *c)
{
    gantry_run_free(c->run);
    gantry_schedule_free(c->schedule);
    gantry_graph_free(c->graph);
    *c = (chain){ 0 };
}

typedef struct task {
    const gantry_machine *machine; /* its ranks' devices */
    gantry_collective kind;
    gy_algorithm algorithm;
    uint32_t ranks;
    int64_t until_ns;
    bool never; /* the algorithm does not do that kind */
} task;

/* Every collective is by the algorithm, among all GPUs. */
static gantry_status check_ops(const gantry_schedule *s, const task *t, gantry_error *err)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        bool right = op->kind != GY_OP_COLLECTIVE || (op->algorithm == t->algorithm && op->lanes == t->ranks);
        for (uint32_t r = 0; right && op->kind == GY_OP_COLLECTIVE && r < op->lanes; r++)
            right = t->machine->device[gy_op_device(s, op, r)].gpu;
        if (!right)
            return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "op %zu of the schedule is not among all GPUs", i);
    }
    return GANTRY_OK;
}

/* GPUs that do not come to a meeting by counters cost the calibration seconds, not its end. */
static gantry_status open_chain(chain *c, task *t, uint64_t bytes, uint32_t calls, gantry_error *err)
{
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    *c = (chain){ .calls = calls };
    so.replay = "graph";
    so.effort = 0;
    so.policy = "heft";
    so.spill = "off";
    ro.backend = "cuda";
    ro.timeout_us = t->algorithm == GY_ALGORITHM_COUNTERS ? 3e6 : ro.timeout_us;
    gantry_status status = gy_collective_graph(&c->graph, t->kind, t->algorithm, t->ranks, bytes, calls, err);
    if (!status) {
        status = gantry_schedule_new(&c->schedule, c->graph, t->machine, &so, err);
        t->never = status == GANTRY_E_GRAPH;
    }
    status = status ? status : check_ops(c->schedule, t, err);
    status = status ? status : gantry_run_new(&c->run, c->schedule, &ro, err);
    return status;
}

static gantry_status time_chain(const chain *c, double *us, gantry_error *err)
{
    uint64_t ticket;
    int64_t begin = gy_now_ns();
    gantry_status status = gantry_run_start(c->run, &ticket, err);
    status = status ? status : gantry_run_wait(c->run, ticket, err);
    *us = (double)(gy_now_ns() - begin) / 1e3;
    return status;
}

/* ---- a size ---- */

/* Starts as streams cost the host more, which would be taken for the collective's. */
static gantry_status check_replay(const chain *c, gantry_error *err)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    gantry_status status = gantry_run_get_info(c->run, &info, err);
    if (!status && strncmp(info.replay, "graph", 5) != 0)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "it was not replayed as a graph: %s", info.replay);
    return status;
}

static gantry_status sample(const chain *few, const chain *many, int64_t until_ns, gy_figure *figure, gantry_error *err)
{
    double us[SAMPLES], a, b;
    uint32_t samples = 0;
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < WARM + SAMPLES && !status && (samples < LEAST || gy_now_ns() < until_ns); i++) {
        status = time_chain(few, &a, err);
        status = status ? status : time_chain(many, &b, err);
        if (!status && i >= WARM) /* something disturbed it: an upper bound */
            us[samples++] = b > a ? (b - a) / (many->calls - few->calls) : b / many->calls;
    }
    status = status ? status : check_replay(few, err);
    status = status ? status : check_replay(many, err);
    *figure = status ? (gy_figure){ 0 } : gy_figure_of(us, samples);
    return status;
}

/* Where GPUs cannot meet by counters, the algorithm is another one that has its table already. */
static gantry_status check_way(const chain *c, task *t, gantry_error *err)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    if (t->algorithm != GY_ALGORITHM_COUNTERS)
        return GANTRY_OK;
    GY_TRY(gantry_run_get_info(c->run, &info, err));
    t->never = !strstr(info.replay, "meet by counters");
    return t->never ? gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "GPUs do not meet by counters") : GANTRY_OK;
}

static gantry_status measure_size(task *t, uint64_t bytes, gy_figure *figure, gantry_error *err)
{
    chain few = { 0 }, many = { 0 };
    uint32_t more = bytes <= UINT64_C(1) << 20 ? 16 : 4;
    gantry_status status = open_chain(&few, t, bytes, FEW, err);
    status = status ? status : check_way(&few, t, err);
    status = status ? status : open_chain(&many, t, bytes, FEW + more, err);
    status = status ? status : sample(&few, &many, t->until_ns, figure, err);
    close_chain(&many);
    close_chain(&few);
    return status;
}

/* Sizes that there is no room for are left out. */
static gantry_status measure_table(task *t, gy_measured_points *points, gantry_error *err)
{
    uint64_t unit = 16 * (uint64_t)t->ranks * t->ranks, bytes = SMALLEST;
    for (int i = 0; i < SIZES; i++, bytes *= FACTOR) {
        gy_measured_point point = { 0 };
        uint64_t whole = bytes / unit * unit;
        if (!whole)
            continue;
        gantry_status status = measure_size(t, whole, &point.time, err);
        if (status == GANTRY_E_CAPACITY || t->never)
            return GANTRY_OK;
        point.work = (double)whole;
        if (status || !gy_vec_push(points, point))
            return status ? status : gy_fail_nomem(err);
        if (gy_now_ns() > t->until_ns)
            return gy_fail(err, GANTRY_E_TIMEOUT, NULL, "there was no time left for larger ones");
    }
    return GANTRY_OK;
}

/* ---- all ---- */

static gantry_status add_table(gy_measured *what, task *t, const char *kind, gantry_error *err)
{
    gy_measured_collective made = { t->kind, t->algorithm, kind, t->ranks, { 0 } };
    gantry_error why = { 0 };
    gantry_status status = measure_table(t, &made.points, &why);
    if (status && status != GANTRY_E_NOMEM) {
        gy_text_printf(&what->notes, "not measured: %s of %u GPUs by %s: %s\n", gantry_collective_name(t->kind),
                       t->ranks, gy_algorithm_name(t->algorithm), why.text);
    }
    if (status == GANTRY_E_NOMEM || made.points.count < 2 || !gy_vec_push(&what->collectives, made)) {
        bool full = status == GANTRY_E_NOMEM || made.points.count >= 2;
        gy_vec_free(&made.points);
        return full ? gy_fail_nomem(err) : GANTRY_OK;
    }
    return GANTRY_OK;
}

static gantry_status measure_ranks(gy_measured *what, const gantry_machine *machine, const char *kind, uint32_t ranks,
                                   int64_t until_ns, gantry_error *err)
{
    static const gy_algorithm ways[] = { GY_ALGORITHM_TWO_SHOT, GY_ALGORITHM_COPY, GY_ALGORITHM_COUNTERS };
    gantry_status status = GANTRY_OK;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        for (int k = GANTRY_ALL_REDUCE; k <= GANTRY_ALL_TO_ALL && !status; k++) {
            task t = { machine, (gantry_collective)k, ways[w], ranks, until_ns, false };
            if (gy_now_ns() < until_ns)
                status = add_table(what, &t, kind, err);
        }
    }
    return status;
}

/* The first so many GPUs, "id:0,1"; NULL: they are not of one kind, or one is there twice. */
static gantry_machine *select_gpus(const gantry_machine *m, uint32_t ranks, uint32_t *first)
{
    gantry_machine *made = NULL;
    gy_text text = { 0 };
    uint32_t found = 0;
    bool good = true;
    for (uint32_t i = 0; i < m->devices && found < ranks && good; i++) {
        if (!m->device[i].gpu || m->device[i].memory == 0)
            continue;
        *first = found ? *first : i;
        good = strcmp(m->device[i].kind, m->device[*first].kind) == 0;
        for (uint32_t k = *first; k < i && good; k++)
            good = !m->device[k].gpu || gy_device_ordinal(m, k) != gy_device_ordinal(m, i);
        gy_text_printf(&text, "%s%u", found++ ? "," : "id:", i);
    }
    if (good && found == ranks && !text.failed && gantry_machine_select(&made, m, text.at, NULL))
        made = NULL;
    gy_text_free(&text);
    return made;
}

static uint32_t count_gpus(const gantry_machine *m)
{
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < m->devices; i++)
        gpus += m->device[i].gpu && m->device[i].memory != 0;
    return gpus;
}

/* The next smaller number of ranks: a power of two; 0: two were the last. */
static uint32_t fewer(uint32_t ranks)
{
    uint32_t next = 2;
    while (2 * next < ranks)
        next *= 2;
    return ranks > 2 ? next : 0;
}

/* While a run is open the contexts of its GPUs are there: making them anew for every run would take most of the time.
 */
static void hold_contexts(chain *holder, const gantry_machine *m, uint32_t ranks)
{
    task t = { m, GANTRY_BROADCAST, GY_ALGORITHM_COPY, ranks, 0, false };
    if (!holder->run && open_chain(holder, &t, 16 * (uint64_t)ranks * ranks, 1, NULL))
        close_chain(holder);
}

gantry_status gy_measure_collectives(gy_measured *what, const gantry_machine *machine, const gantry_machine *names,
                                     double seconds, gantry_error *err)
{
    int64_t until_ns = gy_now_ns() + (int64_t)(seconds * 1e9);
    uint32_t gpus = count_gpus(machine), first = 0;
    gantry_status status = GANTRY_OK;
    chain holder = { 0 };
    for (uint32_t ranks = gpus; ranks > 1 && !status; ranks = fewer(ranks)) {
        gantry_machine *some = select_gpus(machine, ranks, &first);
        if (some) {
            hold_contexts(&holder, some, ranks);
            status = measure_ranks(what, some, names->device[first].kind, ranks, until_ns, err);
        }
        gantry_machine_free(some);
    }
    close_chain(&holder);
    if (!status && gpus > 1 && gy_now_ns() >= until_ns)
        gy_text_add(&what->notes, "not measured: some collectives without NCCL, for lack of time\n");
    return status || !what->notes.failed ? status : gy_fail_nomem(err);
}
