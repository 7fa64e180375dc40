/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ways for starts of one schedule: as replay.c decides, or by resident kernels. Both use the same addresses, and
 * what the one does is complete before the other begins, so each start may go either way. What the way that rests needs
 * stays as it is: a graph, or programs and counters.
 */
#include "backends/cuda/submit/submit.h"

#include "backends/cuda/resident/resident.h"
#include "base/error.h"
#include <stdio.h>

/* Times that turning takes at most, as a rule: loading the code, finding calls and counters, compiling formulas. */
#define LOAD_NS     INT64_C(50000000)
#define OP_NS       INT64_C(5000)
#define FORMULAS_NS INT64_C(500000000)

int64_t gy_ways_turn_ns(const gy_cuda *h)
{
    const gantry_graph *g = h->job->graph;
    bool formulas = false;
    for (size_t i = 0; i < g->kernels.count; i++)
        formulas = formulas || g->kernels.at[i].program;
    return LOAD_NS + (int64_t)h->job->schedule->ops.count * OP_NS + (formulas ? FORMULAS_NS : 0);
}

/* Programs may be on their way. */
static void close_devices(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->devices; i++)
        if (h->resident->gpu[i].queue.stream && gy_cuda_use(h, i, NULL) == GANTRY_OK)
            gy_cuda_settle(h, h->resident->gpu[i].queue);
    gy_resident_free(h);
    h->resident = NULL;
}

/* Streams that wait for workers and workers that wait for streams are no way that is worth a trial. */
static gantry_status check_whole(gy_cuda *h, gantry_error *err)
{
    const gy_resident *r = h->resident;
    if (r->off)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "%s", r->off);
    if (!r->lefts)
        return GANTRY_OK;
    gy_text name = { 0 };
    uint32_t op = r->unfit_op == GY_NONE ? r->left[0] : r->unfit_op;
    gy_op_text(&name, h->job->schedule, op);
    gantry_status status =
        gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "op %u, \"%s\": %s", op, name.failed || !name.length ? "?" : name.at,
                r->unfit_op == GY_NONE ? "streams carry it out" : r->unfit_why);
    gy_text_free(&name);
    return status;
}

static gantry_status open_devices(gy_cuda *h, gantry_error *err)
{
    GY_TRY(gy_resident_make(h, err));
    GY_TRY(gy_resident_on(h) ? gy_resident_program(h, 0, err) : GANTRY_OK);
    GY_TRY(check_whole(h, err));
    return gy_resident_probe(h, err);
}

/* Graphs are gone, and no start is compared any more. */
static void close_host(gy_cuda *h)
{
    for (uint32_t t = 0; t < h->turns; t++)
        gy_graph_free(h, t);
    h->graphs = h->automatic.on = false;
    h->replay = "stream";
    gy_submitters_free(h);
}

gantry_status gy_ways_turn_to(gy_cuda *h, gy_lead way, bool for_good, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    if (h->broken.status)
        return gy_fail(err, h->broken.status, NULL, "the run is over since an earlier failure: %s", h->broken.text);
    gy_cuda_enter(h);
    if (way == GY_LEAD_DEVICE && !h->resident && (status = open_devices(h, err)) && h->resident)
        close_devices(h);
    if (!status && h->resident)
        h->resident->rests = way == GY_LEAD_HOST;
    if (!status && for_good && way == GY_LEAD_DEVICE)
        close_host(h);
    else if (!status && for_good && h->resident)
        close_devices(h);
    gy_cuda_leave(h);
    return status;
}
