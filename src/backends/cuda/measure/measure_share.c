/* SPDX-License-Identifier: Apache-2.0 */
/* The portion of a GPU that a kernel takes: what several of them at once take, over what they take one after another.
 */
#include "backends/cuda/measure/measure_share.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

#define ROUND_US 100.0  /* of one stream, so that the start and the end of a graph hardly count */
#define MOST_US  2000.0 /* of all streams, one after another */

enum { MOST_ROUNDS = 32, FEW_ROUNDS = 4, LEAST_TWINS = 2 };

void gy_twins_open(gy_twins *twins, gy_harness *harness, const gy_recipe_launch *of)
{
    twins->count = 0;
    while (twins->count + 1 < GY_HARNESS_STREAMS &&
           gy_recipe_twin(&twins->at[twins->count], harness, of, twins->count + 1, NULL) == GANTRY_OK)
        twins->count++;
}

void gy_twins_free(gy_twins *twins, gy_harness *harness)
{
    while (twins->count)
        gy_recipe_free(&twins->at[--twins->count], harness);
}

/* Rounds of launches, each twin on a stream of its own. */
typedef struct rounds {
    const gy_twins *twins;
    uint32_t count;
} rounds;

static gantry_status queue_rounds(gy_harness *harness, const void *what, gantry_error *err)
{
    const rounds *r = what;
    gy_harness_lane first = { r->twins->at[0].gpu, 0 };
    for (uint32_t i = 0; i < r->twins->count; i++)
        GY_TRY(gy_harness_order(harness, first, (gy_harness_lane){ first.gpu, i + 1 }, err));
    for (uint32_t i = 0; i < r->count * r->twins->count; i++)
        GY_TRY(gy_recipe_queue(harness, &r->twins->at[i % r->twins->count], err));
    for (uint32_t i = 0; i < r->twins->count; i++)
        GY_TRY(gy_harness_order(harness, (gy_harness_lane){ first.gpu, i + 1 }, first, err));
    return GANTRY_OK;
}

/* Captured, so that launches of the host do not count. Where a capture is refused the share is not known. */
static gantry_status time_rounds(gy_harness *harness, const rounds *r, int64_t until_ns, gy_figure *figure,
                                 gantry_error *err)
{
    gy_harness_graph g = { .lane = { r->twins->at[0].gpu, 0 } };
    *figure = (gy_figure){ 0 };
    if (gy_harness_graph_make(&g, harness, queue_rounds, r, 1, NULL))
        return gy_harness_drain(harness, err);
    gy_workload workload = { .queue = gy_harness_graph_queue, .what = &g, .first_lane = g.lane };
    workload.most = r->twins->at[0].most;
    gantry_status status = gy_harness_sample(harness, &workload, until_ns, figure, err);
    gy_harness_graph_drop(&g, harness);
    return status;
}

/* Long kernels fill a GPU, and fewer of them show it. */
static void keep_short(gy_twins *twins, gy_harness *harness, double us)
{
    while (twins->count > LEAST_TWINS && us * twins->count > MOST_US)
        gy_recipe_free(&twins->at[--twins->count], harness);
}

gantry_status gy_twins_share(gy_twins *twins, gy_harness *harness, const gy_figure *alone, int64_t until_ns,
                             uint32_t *share, gantry_error *err)
{
    rounds r = { twins, 1 };
    gy_figure all;
    *share = 0;
    if (twins->count < LEAST_TWINS || !(alone->us > 0))
        return GANTRY_OK;
    keep_short(twins, harness, alone->us);
    uint32_t most = gy_now_ns() < until_ns ? MOST_ROUNDS : FEW_ROUNDS;
    if (!twins->at[0].most)
        r.count = ROUND_US / alone->us > most ? most : 1 + (uint32_t)(ROUND_US / alone->us);
    GY_TRY(time_rounds(harness, &r, until_ns, &all, err));
    if (all.samples) {
        double part = all.us / (alone->us * r.count * twins->count);
        *share = part < 1 ? (uint32_t)(part * GY_WHOLE_DEVICE) + 1 : GY_WHOLE_DEVICE;
    }
    return GANTRY_OK;
}
