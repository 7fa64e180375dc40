/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of NCCL, among the first 2, 4, 8, ... and all GPUs, over sizes. A time is that of one of many in a
 * captured graph: how much longer a graph with more of them takes, so that what a launch costs is not in it. Where
 * NCCL fails, there are fewer figures, and a note says why. */
#include "backends/cuda/measure/measure.h"

#include "base/clock.h"
#include "base/error.h"

enum { SIZES = 10 };
#define SMALLEST UINT64_C(1024)

static const gantry_collective kinds[] = { GANTRY_ALL_REDUCE, GANTRY_REDUCE,    GANTRY_BROADCAST,
                                           GANTRY_SCATTER,    GANTRY_GATHER,    GANTRY_REDUCE_SCATTER,
                                           GANTRY_ALL_GATHER, GANTRY_ALL_TO_ALL };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The i-th number of ranks; 0 past the last. */
static uint32_t ranks_at(const gy_harness *harness, uint32_t i)
{
    uint32_t ranks = UINT32_C(2) << i, before = UINT32_C(1) << i;
    ranks = ranks < harness->gpus ? ranks : harness->gpus;
    return ranks > before && gy_harness_nccl_can(harness, ranks) ? ranks : 0;
}

/* Calls that take long are repeated less often. */
static uint32_t calls_for(uint64_t bytes)
{
    return bytes <= UINT64_C(1) << 20 ? 16 : bytes <= UINT64_C(16) << 20 ? 6 : 2;
}

/* `more` has `calls` more of them than `one`. */
typedef struct pair {
    gy_harness_chain one, more;
    uint32_t calls;
} pair;

static gantry_status time_pair(const pair *p, double *us, gantry_error *err)
{
    double one = 0, more = 0;
    gantry_status status = gy_harness_chain_time(&p->more, &more, err);
    status = status ? status : gy_harness_chain_time(&p->one, &one, err);
    *us = more > one ? (more - one) / p->calls : more / p->more.calls; /* something disturbed it */
    return status;
}

static gantry_status sample(const pair *p, int64_t until_ns, gy_figure *figure, gantry_error *err)
{
    double us[GY_HARNESS_SAMPLES];
    uint32_t samples = 0;
    gantry_status status = time_pair(p, &us[0], err); /* the first one may load things */
    while (!status && samples < GY_HARNESS_SAMPLES && (samples < GY_HARNESS_LEAST || gy_now_ns() < until_ns)) {
        status = time_pair(p, &us[samples], err);
        samples += status == GANTRY_OK;
    }
    *figure = status ? (gy_figure){ 0 } : gy_figure_of(us, samples);
    return status;
}

/* ---- one size ---- */

typedef struct ranks {
    gy_measure *m;
    gy_harness_nccl nccl;
    bool calls; /* graphs are refused */
} ranks;

/* New communicators, as a capture that failed may have spoilt them. */
static gantry_status go_without_graphs(ranks *r, const gantry_error *why, gantry_error *err)
{
    gy_harness *harness = &r->m->harness;
    r->calls = true;
    gy_text_printf(&r->m->to->notes, "not measured: collectives of NCCL among %u GPUs in graphs, but as calls: %s\n",
                   r->nccl.ranks, why->text);
    GY_TRY(gy_harness_nccl_abort(&r->nccl, err));
    return gy_harness_nccl_open(&r->nccl, harness, &r->m->nccl, r->nccl.ranks, err);
}

static gantry_status capture_pair(ranks *r, pair *p, gantry_error *err)
{
    gantry_error why = { 0 };
    if (r->calls)
        return GANTRY_OK;
    gantry_status status = gy_harness_chain_capture(&p->one, &why);
    status = status ? status : gy_harness_chain_capture(&p->more, &why);
    if (status) {
        gy_harness_chain_free(&p->one);
        return go_without_graphs(r, &why, err);
    }
    return GANTRY_OK;
}

/* The calls run first, which is when NCCL connects what it needs for them. */
static gantry_status measure_size(ranks *r, gantry_collective kind, uint64_t bytes, int64_t until_ns, gy_figure *figure,
                                  gantry_error *err)
{
    pair p = { .calls = calls_for(bytes) };
    double unused;
    p.one = (gy_harness_chain){ .nccl = &r->nccl, .kind = kind, .bytes = bytes, .calls = 1 };
    p.more = p.one;
    p.more.calls += p.calls;
    gantry_status status = gy_harness_chain_time(&p.one, &unused, err);
    status = status ? status : capture_pair(r, &p, err);
    status = status ? status : sample(&p, until_ns, figure, err);
    gy_harness_chain_free(&p.one);
    gy_harness_chain_free(&p.more);
    return status;
}

static gantry_status measure_kind(ranks *r, gantry_collective kind, gantry_error *err)
{
    gy_measure *m = r->m;
    gy_measured_collective made = { .collective = kind, .algorithm = GY_ALGORITHM_NCCL, .ranks = r->nccl.ranks };
    made.kind = m->harness.machine->device[m->harness.gpu[0].device].kind;
    gy_budget budget = { gy_measure_next(m), SIZES };
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < SIZES && !status; i++) {
        gy_measured_point point = { 0 };
        uint64_t bytes = gy_harness_nccl_bytes(&r->nccl, kind, SMALLEST << (2 * i));
        if (!bytes)
            continue;
        point.work = (double)bytes;
        status = measure_size(r, kind, bytes, gy_budget_next(&budget), &point.time, err);
        status = status || gy_vec_push(&made.points, point) ? status : gy_fail_nomem(err);
    }
    if (status || made.points.count < 2) {
        gy_vec_free(&made.points);
        return status;
    }
    if (!gy_vec_push(&m->to->collectives, made)) {
        gy_vec_free(&made.points);
        return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

/* ---- all ---- */

static gantry_status measure_ranks(gy_measure *m, uint32_t count, gantry_error *err)
{
    ranks r = { .m = m };
    gantry_error why = { 0 };
    gantry_status status = gy_harness_nccl_open(&r.nccl, &m->harness, &m->nccl, count, &why);
    for (int i = 0; i < KINDS && !status; i++)
        status = measure_kind(&r, kinds[i], &why);
    if (!status) {
        gy_harness_nccl_close(&r.nccl);
        return GANTRY_OK;
    }
    status = status == GANTRY_E_NOMEM ? gy_fail_nomem(err) : GANTRY_OK;
    gantry_status ended = gy_harness_nccl_abort(&r.nccl, err);
    gy_text_printf(&m->to->notes, "not measured: collectives of NCCL among %u GPUs: %s\n", count, why.text);
    return status ? status : ended;
}

static uint32_t count(const gy_measure *m)
{
    uint32_t found = 0;
    for (uint32_t i = 0; m->nccl.lib.handle && ranks_at(&m->harness, i); i++)
        found += KINDS;
    return found;
}

static gantry_status measure(gy_measure *m, gantry_error *err)
{
    for (uint32_t i = 0; ranks_at(&m->harness, i); i++)
        GY_TRY(measure_ranks(m, ranks_at(&m->harness, i), err));
    return GANTRY_OK;
}

const gy_figures gy_figures_collectives = { "collectives of NCCL", 4, count, measure };
