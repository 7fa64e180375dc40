/* SPDX-License-Identifier: Apache-2.0 */
/**
 * From an order of tasks and a device for each to times, in the model: every task begins as soon as its data are there
 * and its device has ended what came before it in the order. No schedule is lost by that: the order by starts of any
 * schedule gives it back, or one that is earlier everywhere. O(tasks + dependencies), no allocation.
 *
 * The makespan counts what is fetched. Where the machine has contention, transfers wait for each other (traffic.h).
 *
 * In a pool (devices alike, transfers free) the device is chosen here: the one that has waited least of those that are
 * free when the data are there, else the first to become free. So it is among devices that are alike and share a
 * memory, such as the cores of a processor.
 */
#ifndef GY_SCHEDULER_SEARCH_DECODE_H
#define GY_SCHEDULER_SEARCH_DECODE_H

#include "scheduler/search/trail.h"

typedef struct gy_decode {
    const gy_model *m;
    uint32_t *device;    /* per task; collectives: of rank 0, made here unless they are tied; pools, and of
                            devices that are alike: made here */
    gy_ticks *finish;    /* per task */
    uint32_t *before;    /* per task: what its device did last before it, or GY_NONE */
    gy_ticks *free_at;   /* per device */
    uint32_t *latest;    /* per device: its last task so far */
    uint32_t *rank;      /* devices of collectives, team after team */
    uint32_t *timed;     /* devices of collectives when they were last timed, team after team */
    gy_ticks *team_time; /* what they took; 0: not timed yet */
    gy_traffic traffic;  /* if the model has roads */
    uint32_t end;        /* the task that ends last */
    gy_ticks makespan;   /* of the tasks so far */
    gy_ticks worst;      /* the latest that one of them says the makespan is at least */
    gy_trail trail;      /* of the placement that was kept */
    uint32_t from;       /* position at which the last run began, */
    uint32_t reached;    /* and up to which it came */
    bool sent;           /* it sent the uploads, too */
} gy_decode;

gantry_status gy_decode_init(gy_decode *d, const gy_model *m, gantry_error *err);
void gy_decode_free(gy_decode *d);

/* The makespan; or, as soon as it is known to be larger than `limit`, some value above `limit`. */
gy_ticks gy_decode_run(gy_decode *d, const uint32_t *order, gy_ticks limit);
/* Neighbours of a placement: after gy_decode_keep, a placement whose order and devices are those that were kept up to
 * `position`. From there on, tasks may be elsewhere, have other devices, or send to tasks that have; `uploads`: the
 * order of uploads, or their devices, are others. It ends as gy_decode_run does. Then it is kept, if it was not cut
 * off, or dropped, with the order that it was run with. */
gy_ticks gy_decode_again(gy_decode *d, const uint32_t *order, uint32_t position, bool uploads, gy_ticks limit);
void gy_decode_keep(gy_decode *d, const uint32_t *order);
void gy_decode_drop(gy_decode *d, const uint32_t *order);
/* Where collectives are, where devices are chosen here, and where there are so many that their state takes longer to
 * note than tasks to decode, each placement is decoded from its beginning. */
bool gy_decode_has_trail(const gy_decode *d);
/* After a run that was not cut off: the tasks of a chain that decides the makespan, last one first. Returns how many;
 * `chain` has room for all tasks. */
uint32_t gy_decode_critical(const gy_decode *d, uint32_t *chain);
/* When what `from` made can be used on `device`, given that it is decoded. */
gy_ticks gy_decode_arrival(const gy_decode *d, const gy_arc *arc, uint32_t device);

#endif
