/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue: a binary heap of jobs that know their place in it, so that a flow's end can be moved. */
#include "sim/internal.h"

/* Ties go to the earlier start and the lower position: the order in which a reader would tell it. */
static bool before(const gy_sim *sim, uint32_t a, uint32_t b)
{
    const gy_sim_job *x = &sim->jobs.at[a], *y = &sim->jobs.at[b];
    return x->time != y->time ? x->time < y->time : x->item < y->item;
}

static void put(gy_sim *sim, size_t place, uint32_t job)
{
    sim->queue.at[place] = job;
    sim->jobs.at[job].place = (uint32_t)place;
}

static void rise(gy_sim *sim, size_t place)
{
    uint32_t job = sim->queue.at[place];
    while (place > 0 && before(sim, job, sim->queue.at[(place - 1) / 2])) {
        put(sim, place, sim->queue.at[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(sim, place, job);
}

static void sink(gy_sim *sim, size_t place)
{
    uint32_t job = sim->queue.at[place];
    for (size_t child; (child = 2 * place + 1) < sim->queue.count; place = child) {
        if (child + 1 < sim->queue.count && before(sim, sim->queue.at[child + 1], sim->queue.at[child]))
            child++;
        if (!before(sim, sim->queue.at[child], job))
            break;
        put(sim, place, sim->queue.at[child]);
    }
    put(sim, place, job);
}

void gy_sim_queue_push(gy_sim *sim, uint32_t job)
{
    sim->queue.at[sim->queue.count++] = job;
    rise(sim, sim->queue.count - 1);
}

uint32_t gy_sim_queue_pop(gy_sim *sim)
{
    uint32_t job = sim->queue.at[0];
    uint32_t last = sim->queue.at[--sim->queue.count];
    if (sim->queue.count > 0) {
        put(sim, 0, last);
        sink(sim, 0);
    }
    return job;
}

void gy_sim_queue_update(gy_sim *sim, uint32_t job)
{
    rise(sim, sim->jobs.at[job].place);
    sink(sim, sim->jobs.at[job].place);
}
