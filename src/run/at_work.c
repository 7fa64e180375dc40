/* SPDX-License-Identifier: Apache-2.0 */
#include "run/at_work.h"

#include "base/versioned.h"

/* A handler of signals reads it, so it must not be allocated when it is first touched, as that of a library that is
 * loaded late would be. */
static _Thread_local struct {
    const gy_job *volatile job; /* NULL: nothing of the kind */
    volatile uint32_t op;
} at_work __attribute__((tls_model("initial-exec")));

void gy_at_work_begin(const gy_job *job, uint32_t op)
{
    at_work.op = op;
    at_work.job = job;
}

void gy_at_work_end(void)
{
    at_work.job = NULL;
}

void gy_at_work_now(const gy_job **job, uint32_t *op)
{
    *job = at_work.job;
    *op = at_work.op;
}

/* Only reads what no start changes. */
int gantry_run_at_work(gantry_at_work *to)
{
    const gy_job *job = at_work.job;
    if (!job || gy_struct_check(to, sizeof *to, "gantry_at_work", NULL))
        return 0;
    const gy_op *op = &job->schedule->ops.at[at_work.op];
    const gy_node *node = &job->graph->nodes.at[op->node];
    gantry_at_work full = { .struct_size = sizeof full,
                            .node = node->id,
                            .kernel =
                                node->kernel == GY_NONE ? NULL : job->graph->kernels.at[node->kernel].manifest->name,
                            .device = job->schedule->machine->device[gy_op_device(job->schedule, op, 0)].id };
    gy_struct_write(to, &full, sizeof full);
    return 1;
}
