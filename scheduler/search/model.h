/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The plan as flat arrays for search: the model of place.c (one task at a time on a device, data arrive a transfer time
 * after their producer ends, transfers do not disturb each other), evaluated without allocation. It ends when what is
 * fetched has arrived.
 *
 * Most machines have few kinds of routes and most graphs few sizes of data, so transfer times are one small table,
 * sizes x kinds. Kind 0 is within a memory, size 0 is nothing to move: both take no time.
 *
 * A task that overwrites what another reads waits for its end in the memory of that only. Elsewhere the reader has a
 * copy; where the writer of the rows is, the task waits until that copy is made.
 */
#ifndef GY_SCHEDULER_SEARCH_MODEL_H
#define GY_SCHEDULER_SEARCH_MODEL_H

#include "scheduler/search/traffic.h"

/* A dependency, seen from one end. */
typedef struct gy_arc {
    uint32_t task, size; /* the other end; row of the table of transfer times */
} gy_arc;

/* The size of a dependency that holds within a memory only: nothing moves. */
enum { GY_SIZE_HERE = 1 };

typedef struct gy_model {
    gy_plan *plan; /* borrowed; after its passes cost and origin */
    uint32_t tasks, devices;
    size_t *pred_first, *succ_first; /* tasks + 1 */
    gy_arc *pred, *succ;
    uint32_t *copied;     /* as pred, of those that hold within a memory: the reader's entry of pred for the rows, or
                             GY_NONE;     NULL: there are none */
    const gy_ticks *time; /* nodes x devices, of the plan */
    size_t *row;          /* per task: its node's row of `time` */
    uint32_t *upload;     /* per task: size of what it reads of bound inputs */
    uint32_t *fetch;      /* per task: size of what goes to host memory behind it */

    /* transfers */
    uint32_t kinds, sizes;
    gy_ticks *move;        /* sizes x kinds */
    uint32_t *kind;        /* devices x devices */
    uint32_t *from_host;   /* per device: kind of its route from host memory */
    uint32_t *to_host;     /* per device: kind of its route to host memory */
    const gy_route **way;  /* per kind; [0] NULL */
    GY_VEC(int64_t) bytes; /* per size */
    gy_map size_of;        /* bytes -> size */
    gy_roads *roads;       /* NULL: contention is off */

    /* tasks that are kept on one device: those of unit u are member[first_member[u] .. first_member[u + 1]) */
    uint32_t units, *unit, *member;
    size_t *first_member;
    bool shares;      /* some task leaves others a part of its device */
    bool bound_units; /* some unit has several tasks, or must stay away from another */

    /* collectives: their devices follow from those of other tasks */
    uint32_t *team;       /* per task: index of plan->teams, or GY_NONE; NULL when there are none */
    uint32_t *first_rank; /* per team: its first entry in arrays over all ranks; teams + 1 entries */
    uint32_t ranks;       /* of all teams */

    gy_ticks *tail; /* tasks x devices: no schedule ends earlier than this after the task has ended on the device */
    gy_ticks *head; /* per task: it never begins earlier */
    gy_ticks step;  /* every time of the model is a multiple of it */
    gy_ticks bound; /* no placement ends earlier, in this model */
    gy_ticks mean;  /* a typical time: of a task on its fastest device */
    bool overlong;  /* sums of its times may overflow: the bounds are not there, and nothing may be evaluated */
    uint32_t *like; /* per device: the first that is alike, in the same memory; NULL: no two are, or it is not used */
    uint32_t *first_like, kinds_of_device; /* those first ones: so many */
    bool pool; /* all devices are alike and transfers take no time: only the order matters */
} gy_model;

/* The row of the table for so many bytes (-1: GY_SIZE_HERE); false: out of memory. The column for a pair of memories.
 * While it is made. */
bool gy_model_size(gy_model *m, int64_t bytes, uint32_t *size);
uint32_t gy_model_kind(gy_model *m, uint32_t from, uint32_t to);
/* Fetches (fetches.c), while the model is made. */
gantry_status gy_model_fetches(gy_model *m, gantry_error *err);
/* With `contention`, and if the machine has it, transfers wait for each other. E_NOMEM. Everything of it goes with
 * gy_model_free, also after a failure. */
gantry_status gy_model_make(gy_model *m, gy_plan *plan, bool contention, gantry_error *err);
void gy_model_free(gy_model *m);
/* The bounds: head, tail, step, bound, mean (bounds.c). */
gantry_status gy_model_bounds(gy_model *m, gantry_error *err);

static inline gy_ticks gy_model_time(const gy_model *m, uint32_t task, uint32_t device)
{
    return m->time[m->row[task] + device];
}
static inline gy_ticks gy_model_hold(const gy_model *m, uint32_t task, uint32_t device)
{
    return m->shares ? gy_plan_hold(m->plan, m->plan->flow->task[task].node, device) : gy_model_time(m, task, device);
}
static inline gy_ticks gy_model_move(const gy_model *m, uint32_t size, uint32_t from, uint32_t to)
{
    return m->move[(size_t)size * m->kinds + m->kind[(size_t)from * m->devices + to]];
}
static inline gy_ticks gy_model_upload(const gy_model *m, uint32_t task, uint32_t device)
{
    return m->move[(size_t)m->upload[task] * m->kinds + m->from_host[device]];
}
static inline gy_ticks gy_model_fetch(const gy_model *m, uint32_t task, uint32_t device)
{
    return m->move[(size_t)m->fetch[task] * m->kinds + m->to_host[device]];
}
/* Does all that is on device a alone take as long as on b alone? */
static inline bool gy_model_alike_alone(const gy_model *m, uint32_t a, uint32_t b)
{
    bool same = m->from_host[a] == m->from_host[b] && m->to_host[a] == m->to_host[b];
    for (uint32_t t = 0; t < m->tasks && same; t++)
        same = gy_model_time(m, t, a) == gy_model_time(m, t, b);
    return same;
}
static inline bool gy_model_is_near(const gy_model *m, uint32_t a, uint32_t b)
{
    return m->kind[(size_t)a * m->devices + b] == 0;
}
static inline bool gy_model_is_team(const gy_model *m, uint32_t task)
{
    return m->team && m->team[task] != GY_NONE;
}
/* Are devices the same to the task, so that a decode chooses among them? */
static inline bool gy_model_is_like(const gy_model *m, uint32_t a, uint32_t b)
{
    return m->like ? m->like[a] == m->like[b] : a == b;
}
/* t, rounded up to a time that the model can have. */
static inline gy_ticks gy_model_round(const gy_model *m, gy_ticks t)
{
    return (t + m->step - 1) / m->step * m->step;
}

#endif
