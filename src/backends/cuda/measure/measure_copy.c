/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, each alone on the machine: between all memories that reach each other without anything in between, and
 * within each. Small ones are timed many at a time, as a stream sees them. */
#include "backends/cuda/measure/measure.h"

#include "base/error.h"

enum { SIZES = 11 };
#define SMALLEST UINT64_C(256)

typedef struct pair {
    uint32_t from, to; /* GPUs, or GY_HARNESS_HOST */
    uint64_t bytes;
} pair;

static gantry_status queue(gy_harness *harness, const void *what, gantry_error *err)
{
    const pair *p = what;
    uint32_t gpu = p->from == GY_HARNESS_HOST ? p->to : p->from;
    return gy_harness_copy(harness, (gy_harness_lane){ gpu, 0 }, p->from, p->to, p->bytes, 0, err);
}

/* 256 B, 1 KiB, ... 256 MiB, as far as there is room; the largest is always the room itself. */
static uint64_t size_of(const gy_harness *harness, int i)
{
    uint64_t bytes = SMALLEST << (2 * i);
    return i + 1 == SIZES || bytes > harness->bytes ? harness->bytes : bytes;
}

static uint32_t sizes_of(const gy_harness *harness)
{
    uint32_t sizes = 1;
    while (sizes < SIZES && SMALLEST << (2 * (sizes - 1)) < harness->bytes)
        sizes++;
    return sizes;
}

static gantry_status measure_pair(gy_measure *m, pair p, gantry_error *err)
{
    gy_measured_copy made = { .from = gy_harness_memory(&m->harness, p.from),
                              .to = gy_harness_memory(&m->harness, p.to) };
    gy_workload workload = { .queue = queue,
                             .what = &p,
                             .first_lane = { p.from == GY_HARNESS_HOST ? p.to : p.from, 0 } };
    gy_budget budget = { gy_measure_next(m), sizes_of(&m->harness) };
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < sizes_of(&m->harness) && !status; i++) {
        gy_measured_point point = { 0 };
        p.bytes = size_of(&m->harness, (int)i);
        point.work = (double)p.bytes;
        status = gy_harness_sample(&m->harness, &workload, gy_budget_next(&budget), &point.time, err);
        status = status || gy_vec_push(&made.points, point) ? status : gy_fail_nomem(err);
    }
    if (status || !gy_vec_push(&m->to->copies, made)) {
        gy_vec_free(&made.points);
        return status ? status : gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

static uint32_t count(const gy_measure *m)
{
    uint32_t found = 0;
    pair p = { 0 };
    for (uint32_t i = 0; i < gy_harness_pairs(&m->harness); i++)
        found += gy_harness_pair_at(&m->harness, i, &p.from, &p.to);
    return found;
}

static gantry_status measure(gy_measure *m, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    pair p = { 0 };
    for (uint32_t i = 0; i < gy_harness_pairs(&m->harness) && !status; i++)
        status = gy_harness_pair_at(&m->harness, i, &p.from, &p.to) ? measure_pair(m, p, err) : GANTRY_OK;
    return status;
}

const gy_figures gy_figures_copies = { "copies", 4, count, measure };
