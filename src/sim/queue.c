/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue: a binary heap of jobs; each knows its index in the heap, so that a flow's end can be moved. */
#include "sim/internal.h"

/* Ties go to the earlier start and the lower position: the order in which a reader would tell it. */
static bool before(const gy_sim *sim, uint32_t a, uint32_t b)
{
    const gy_sim_job *x = &sim->jobs.at[a], *y = &sim->jobs.at[b];
    return x->time != y->time ? x->time < y->time : x->item < y->item;
}

static void put(gy_sim *sim, size_t index, uint32_t job)
{
    sim->queue.at[index] = job;
    sim->jobs.at[job].heap_index = (uint32_t)index;
}

static void rise(gy_sim *sim, size_t index)
{
    uint32_t job = sim->queue.at[index];
    while (index > 0 && before(sim, job, sim->queue.at[(index - 1) / 2])) {
        put(sim, index, sim->queue.at[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    put(sim, index, job);
}

static void sink(gy_sim *sim, size_t index)
{
    uint32_t job = sim->queue.at[index];
    for (size_t child; (child = 2 * index + 1) < sim->queue.count; index = child) {
        if (child + 1 < sim->queue.count && before(sim, sim->queue.at[child + 1], sim->queue.at[child]))
            child++;
        if (!before(sim, sim->queue.at[child], job))
            break;
        put(sim, index, sim->queue.at[child]);
    }
    put(sim, index, job);
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
    rise(sim, sim->jobs.at[job].heap_index);
    sink(sim, sim->jobs.at[job].heap_index);
}
