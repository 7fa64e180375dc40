/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of several processes: what of inputs and outputs each rank has itself, so that it need not go by way of rank 0
 * (schedule/part.h). */
#include "run/run.h"

#include "base/error.h"
#include "base/memory.h"
#include "schedule/ranks/ranks.h"

/* Contents of files are not in the hash of the graph. */
static bool is_alike(const gantry_run *run, uint32_t id)
{
    const gy_init *init = &run->graph->buffers.at[id].init;
    return run->apart.alike && init->kind != GY_INIT_NPY && init->kind != GY_INIT_RAW;
}

/* All have given the same number, and none gave 0. */
static gantry_status compare_keys(gantry_run *run, uint64_t key, gantry_error *err)
{
    gantry_network *n = run->job.network;
    uint64_t *all = gy_calloc(n->ranks, sizeof *all);
    if (!all)
        return gy_fail_nomem(err);
    bool there = n->calls->gather(&key, all, sizeof key, gy_network_is_lost, n);
    run->apart.alike = key != 0;
    for (uint32_t i = 0; there && i < n->ranks; i++)
        run->apart.alike = run->apart.alike && all[i] == key;
    gy_free(all);
    return there ? GANTRY_OK : gy_network_fail(n, err);
}

static gantry_status choose_outputs(gantry_run *run, gantry_error *err)
{
    const gantry_schedule *s = run->schedule;
    if (s->phases.count) /* what a phase leaves is on rank 0, from which the next one has it */
        return GANTRY_OK;
    GY_TRY(gy_own_outputs(run->apart.own, s, err));
    for (size_t b = 0; b < run->graph->buffers.count; b++)
        if (run->graph->buffers.at[b].bytes < GY_OUTPUT_APART)
            run->apart.own[b] &= (uint8_t)~GY_OWN_OUTPUT;
    return gy_own_list_make(&run->apart.left, run->apart.own, s, err);
}

gantry_status gy_run_ranks_make(gantry_run *run, const gantry_run_options *options, gantry_error *err)
{
    const gantry_graph *g = run->graph;
    if (!run->job.network || !run->backend->executes)
        return GANTRY_OK;
    GY_TRY(compare_keys(run, options->inputs_key, err));
    run->apart.own = gy_calloc(g->buffers.count + 1, 1);
    if (!run->apart.own)
        return gy_fail_nomem(err);
    for (uint32_t b = 0; b < g->buffers.count; b++) {
        bool same = g->buffers.at[b].cls == GANTRY_INPUT || g->buffers.at[b].cls == GANTRY_CONST;
        run->apart.own[b] = same && !g->buffers.at[b].external && is_alike(run, b) ? GY_OWN_INPUT : 0;
    }
    if (options->outputs_apart)
        GY_TRY(choose_outputs(run, err));
    run->job.own = run->apart.own;
    return GANTRY_OK;
}

void gy_run_ranks_free(gantry_run *run)
{
    gy_free(run->apart.own);
    gy_vec_free(&run->apart.left);
}

bool gy_run_put_alike(gantry_run *run, uint32_t id)
{
    return run->job.network && is_alike(run, id) && !run->binding[id].of_first;
}

/* With phases, host memory takes the whole. */
void gy_run_rows_wanted(const gantry_run *run, uint32_t id, int64_t *first, int64_t *last)
{
    const gy_buffer *b = &run->graph->buffers.at[id];
    *first = 0;
    *last = b->rows;
    if (run->apart.own && b->cls == GANTRY_INPUT && !run->schedule->phases.count)
        gy_own_input_rows(run->schedule, run->apart.own, run->job.network->rank, id, first, last);
}

/* ---- outputs ---- */

bool gy_run_is_apart(const gantry_run *run, uint32_t buffer)
{
    return run->apart.own && (run->apart.own[buffer] & GY_OWN_OUTPUT) && run->apart.collected != run->waited;
}

static gantry_status collect_rows(gantry_run *run, const gy_own_rows *rows, gantry_error *err)
{
    gantry_network *n = run->job.network;
    const gy_buffer *b = &run->graph->buffers.at[rows->buffer];
    int64_t from = gy_buffer_offset(b, rows->first), to = gy_buffer_offset(b, rows->last);
    char *at = (char *)run->output[gy_job_index(&run->job, 0, rows->buffer)] + from;
    bool done = true;
    if (rows->rank == 0 || (n->rank != 0 && n->rank != rows->rank))
        return GANTRY_OK;
    if (n->rank == 0)
        done = n->calls->receive(at, (uint64_t)(to - from), rows->rank, gy_network_is_lost, n);
    else
        done = n->calls->send(at, (uint64_t)(to - from), 0, gy_network_is_lost, n);
    return done ? GANTRY_OK : gy_network_fail(n, err);
}

static gantry_status collect(gantry_run *run, gantry_error *err)
{
    gantry_status status = gy_run_need_idle(run, "gantry_run_collect", err);
    bool failed = run->waited > 0 && run->waited >= run->failure.first && run->waited <= run->failure.last;
    if (status || !run->job.network || run->waited == 0 || failed || run->apart.collected == run->waited)
        return status;
    for (size_t i = 0; i < run->apart.left.count && !status; i++)
        status = collect_rows(run, &run->apart.left.at[i], err);
    if (status)
        return status;
    run->apart.collected = run->waited;
    if (run->edge && run->apart.left.count)
        gy_run_edge_outputs(run, 0);
    return GANTRY_OK;
}

gantry_status gantry_run_collect(gantry_run *run, gantry_error *err)
{
    GY_USE_RUN(run, collect(run, err), err);
}
