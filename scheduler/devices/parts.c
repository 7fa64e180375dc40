/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/devices/parts.h"

#include "scheduler/balance/balance.h"
#include "scheduler/pipeline/pipeline.h"

static void *plan(void *data)
{
    gy_fewer_part *p = data;
    p->options.known = &p->known; /* what policies planned on so many devices, a search does not plan again */
    bool bounded = p->limit < GY_TICKS_MAX;
    p->status =
        bounded ? gy_pipeline_bound(&p->bound, p->graph, p->machine, p->options.max_memory, &p->why) : GANTRY_OK;
    if (!p->status && (!bounded || p->bound.time < p->limit))
        p->status = gy_balance_run(&p->schedule, p->graph, p->machine, &p->options, &p->why);
    if (p->apart)
        gy_planning_join(p->options.planning);
    return NULL;
}

static void plan_apart(gy_fewer_part *p)
{
    if (!p->machine)
        return;
    gy_planning_fork(p->options.planning);
    p->apart = true; /* before the thread looks */
    if (gy_thread_create(&p->thread, plan, p) == 0)
        return;
    p->apart = false;
    gy_planning_join(p->options.planning);
}

void gy_fewer_plan(gy_fewer_part *part, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        plan_apart(&part[i]);
    for (uint32_t i = 0; i < count; i++)
        if (part[i].machine && !part[i].apart)
            (void)plan(&part[i]);
    gy_planning_await(part[0].options.planning);
    for (uint32_t i = 0; i < count; i++)
        if (part[i].apart)
            pthread_join(part[i].thread, NULL);
}

void gy_fewer_free(gy_fewer_part *part)
{
    gantry_machine_free(part->machine);
    gantry_schedule_free(part->schedule);
    gy_text_free(&part->limits);
    part->machine = NULL;
    part->schedule = NULL;
}
