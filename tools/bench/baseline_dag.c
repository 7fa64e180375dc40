/* SPDX-License-Identifier: Apache-2.0 */
/* A tree, or layers at random, of tiny kernels, as a graph has them whose edges are those of the tasks and no others:
 * the stream of a GPU is told before each kernel what that comes behind. A row of another GPU is copied for each who
 * reads it. */
#include "baseline_work.h"

#include <stdlib.h>

typedef struct dag_nodes {
    const bench_dag *dag;
    CUgraphNode *of;  /* of each task */
    bool *read;       /* of each task: another reads its row */
    CUgraphNode *end; /* room for as many as there are tasks */
} dag_nodes;

/* The node that the task comes behind: where another GPU made the row, a copy of it. */
static gantry_status bring(gpus *g, const dag_nodes *n, const bench_task *t, int64_t from, CUgraphNode *behind,
                           gantry_error *err)
{
    int gpu = t->device, other = bench_dag_task(n->dag, from).device;
    *behind = n->of[from];
    n->read[from] = true;
    if (other == gpu)
        return GANTRY_OK;
    gantry_status status = gpus_behind(g, gpu, behind, 1, err);
    if (status)
        return status;
    CUresult code =
        g->d.cuMemcpyDtoDAsync(g->at[gpu].block + g->bytes, g->at[other].block, TINY_BYTES, g->at[gpu].stream[0]);
    status = gpus_check(g, code, gpu, "copying", err);
    return status ? status : gpus_last(g, gpu, behind, err);
}

static gantry_status queue_task(gpus *g, const dag_nodes *n, int64_t i, gantry_error *err)
{
    bench_task t = bench_dag_task(n->dag, i);
    CUgraphNode behind[2];
    gantry_status status = gpus_use(g, t.device, err);
    for (int k = 0; k < t.froms && !status; k++)
        status = bring(g, n, &t, t.from[k], &behind[k], err);
    if (!status)
        status = gpus_behind(g, t.device, behind, (size_t)t.froms, err);
    if (!status)
        status = gpus_tiny(g, t.device, err);
    return status ? status : gpus_last(g, t.device, &n->of[i], err);
}

/* The stream comes behind all tasks of the GPU that nobody reads. */
static gantry_status end_gpu(const gpus *g, const dag_nodes *n, int gpu, gantry_error *err)
{
    size_t count = 0;
    for (int64_t i = 0; i < n->dag->tasks; i++)
        if (!n->read[i] && bench_dag_task(n->dag, i).device == gpu)
            n->end[count++] = n->of[i];
    return count ? gpus_behind(g, gpu, n->end, count, err) : GANTRY_OK;
}

static gantry_status queue_all(gpus *g, const dag_nodes *n, gantry_error *err)
{
    gantry_status status = gpus_order_all(g, g->count, true, err);
    for (int64_t i = 0; i < n->dag->tasks && !status; i++)
        status = queue_task(g, n, i, err);
    for (int gpu = 0; gpu < g->count && !status; gpu++)
        status = end_gpu(g, n, gpu, err);
    return status ? status : gpus_order_all(g, g->count, false, err);
}

gantry_status baseline_dag_queue(gpus *g, void *work, gantry_error *err)
{
    const bench_dag *dag = work;
    size_t tasks = (size_t)dag->tasks;
    dag_nodes n = { dag, calloc(tasks, sizeof *n.of), calloc(tasks, sizeof *n.read), calloc(tasks, sizeof *n.end) };
    gantry_status status =
        n.of && n.read && n.end ? queue_all(g, &n, err) : bench_error(err, GANTRY_E_NOMEM, "out of memory");
    free(n.of);
    free(n.read);
    free(n.end);
    return status;
}
