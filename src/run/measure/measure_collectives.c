/* SPDX-License-Identifier: Apache-2.0 */
#include "run/measure/collectives.h"

#include "run/measure/chain.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "machine/gpus.h"
#include <gantry/run.h>
#include <string.h>

enum { SIZES = 5, FEW = 2 };
#define SMALLEST UINT64_C(1024)
#define FACTOR   16

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
static gantry_status open_chain(gy_chain *c, task *t, uint64_t bytes, uint32_t calls, uint32_t steps, gantry_error *err)
{
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    *c = (gy_chain){ .calls = calls, .replay = "graph" };
    so.replay = "graph";
    so.effort = 0;
    so.policy = "heft";
    so.spill = "off";
    ro.backend = "cuda";
    ro.timeout_us = t->algorithm == GY_ALGORITHM_COUNTERS ? 3e6 : ro.timeout_us;
    gantry_status status = gy_collective_graph(&c->graph, t->kind, t->algorithm, t->ranks, bytes, calls, steps, err);
    if (!status) {
        status = gantry_schedule_new(&c->schedule, c->graph, t->machine, &so, err);
        t->never = status == GANTRY_E_GRAPH;
    }
    status = status ? status : check_ops(c->schedule, t, err);
    status = status ? status : gantry_run_new(&c->run, c->schedule, &ro, err);
    return status;
}

/* ---- a size ---- */

/* Where GPUs cannot meet by counters, the algorithm is another one that has its table already. */
static gantry_status check_way(const gy_chain *c, task *t, gantry_error *err)
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
    gy_chain few = { 0 }, many = { 0 };
    uint32_t more = bytes <= UINT64_C(1) << 20 ? 16 : 4;
    gantry_status status = open_chain(&few, t, bytes, FEW, FEW + more, err);
    status = status ? status : check_way(&few, t, err);
    status = status ? status : open_chain(&many, t, bytes, FEW + more, FEW + more, err);
    status = status ? status : gy_chain_sample(&few, &many, t->until_ns, figure, NULL, err);
    gy_chain_close(&many);
    gy_chain_close(&few);
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

gantry_machine *gy_select_gpus(const gantry_machine *m, uint32_t ranks, uint32_t *first)
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

uint32_t gy_count_gpus(const gantry_machine *m)
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
static void hold_contexts(gy_chain *holder, const gantry_machine *m, uint32_t ranks)
{
    task t = { m, GANTRY_BROADCAST, GY_ALGORITHM_COPY, ranks, 0, false };
    if (!holder->run && open_chain(holder, &t, 16 * (uint64_t)ranks * ranks, 1, 1, NULL))
        gy_chain_close(holder);
}

gantry_status gy_measure_collectives(gy_measured *what, const gantry_machine *machine, const gantry_machine *names,
                                     double seconds, gantry_error *err)
{
    int64_t until_ns = gy_now_ns() + (int64_t)(seconds * 1e9);
    uint32_t gpus = gy_count_gpus(machine), first = 0;
    gantry_status status = GANTRY_OK;
    gy_chain holder = { 0 };
    for (uint32_t ranks = gpus; ranks > 1 && !status; ranks = fewer(ranks)) {
        gantry_machine *some = gy_select_gpus(machine, ranks, &first);
        if (some) {
            hold_contexts(&holder, some, ranks);
            status = measure_ranks(what, some, names->device[first].kind, ranks, until_ns, err);
        }
        gantry_machine_free(some);
    }
    gy_chain_close(&holder);
    if (!status && gpus > 1 && gy_now_ns() >= until_ns)
        gy_text_add(&what->notes, "not measured: some collectives without NCCL, for lack of time\n");
    return status || !what->notes.failed ? status : gy_fail_nomem(err);
}
