/* SPDX-License-Identifier: Apache-2.0 */
/**
 * From an order of tasks and a device for each to times, in the model: every task begins as soon as its data are there
 * and its device has ended what came before it in the order. No schedule is lost by that: the order by starts of any
 * schedule gives it back, or one that is earlier everywhere. O(tasks + dependencies), no allocation.
 *
 * Where the machine has contention, transfers wait for each other (traffic.h), and the makespan counts what is fetched.
 *
 * In a pool (devices alike, transfers free) the device is chosen here: the one that has waited least of those that are
 * free when the data are there, else the first to become free.
 */
#ifndef GY_SCHEDULER_SEARCH_DECODE_H
#define GY_SCHEDULER_SEARCH_DECODE_H

#include "scheduler/search/model.h"

typedef struct gy_decode {
    const gy_model *m;
    uint32_t *device;    /* per task; collectives: of rank 0, made here unless they are tied; pools: made here */
    gy_ticks *finish;    /* per task */
    uint32_t *before;    /* per task: what its device did last before it, or GY_NONE */
    gy_ticks *free_at;   /* per device */
    uint32_t *latest;    /* per device: its last task so far */
    uint32_t *rank;      /* devices of collectives, team after team */
    uint32_t *timed;     /* devices of collectives when they were last timed, team after team */
    gy_ticks *team_time; /* what they took; 0: not timed yet */
    gy_traffic traffic;  /* if the model has roads */
    uint32_t end;        /* the task that ends last */
} gy_decode;

gantry_status gy_decode_init(gy_decode *d, const gy_model *m, gantry_error *err);
void gy_decode_free(gy_decode *d);

/* The makespan; or, as soon as it is known to be larger than `limit`, some value above `limit`. */
gy_ticks gy_decode_run(gy_decode *d, const uint32_t *order, gy_ticks limit);
/* After a run that was not cut off: the tasks of a chain that decides the makespan, last one first. Returns how many;
 * `chain` has room for all tasks. */
uint32_t gy_decode_critical(const gy_decode *d, uint32_t *chain);
/* When what `from` made can be used on `device`, given that it is decoded. */
gy_ticks gy_decode_arrival(const gy_decode *d, const gy_arc *arc, uint32_t device);

#endif
