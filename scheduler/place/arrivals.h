/* SPDX-License-Identifier: Apache-2.0 */
/**
 * When the data of a task can be in a memory, by what is placed so far. Tasks with the same long list of predecessors
 * (flow.h) share the answer: it is worked out once for each memory, and again only when a predecessor was placed or
 * taken back. So n readers of what n tasks wrote take n steps, not n * n. Readers of a collective differ in the ranks
 * that have what they read, so they share no answers.
 */
#ifndef GY_SCHEDULER_PLACE_ARRIVALS_H
#define GY_SCHEDULER_PLACE_ARRIVALS_H

#include "scheduler/plan/plan.h"

/* Bytes that a task reads of what a rank of a collective has. */
typedef struct gy_arrival_part {
    uint32_t rank;
    int64_t bytes;
} gy_arrival_part;

/* Rows that a task waits for, in the memory where they are made. */
typedef struct gy_source {
    gy_ticks ready, latest; /* when they are made; when they can be in any memory of a worker */
    int64_t bytes;          /* 0: rows that the task overwrites, and waits for only there */
    uint32_t memory;
} gy_source;

/* For the lists of a flow that several tasks have. */
typedef struct gy_arrivals {
    uint32_t *row;         /* per list: its row of `at`, or GY_NONE: tasks do not share it */
    gy_ticks *at;          /* rows x memories; below 0: not known */
    gy_followers follower; /* which lists change when a task is placed */
    /* Of the task that was asked for last, and of its predecessor: each is asked for with many memories. */
    gy_arrival_part *part; /* room for the regions of any collective; NULL: there is none */
    uint32_t parts, task, from;
    /* Of the task that was asked for with one memory after another: its sources, those first that may come last. */
    GY_VEC(gy_source) source;
    bool failed;            /* out of memory: answers are still right, but it is to be said */
    uint32_t asked, listed; /* the last task; that of the sources; GY_NONE */
    gy_ticks made;          /* the last of them is */
    gy_map slowest;         /* memory and bytes -> the longest that they take to a memory of a worker */
    uint8_t *worker;        /* per memory: a worker computes in it */
} gy_arrivals;

/* false: out of memory; to be freed all the same. */
bool gy_arrivals_init(gy_arrivals *arrivals, const gy_plan *p);
void gy_arrivals_free(gy_arrivals *arrivals);
/* The task was placed or taken back. */
void gy_arrivals_changed(gy_plan *p, uint32_t task);
/* When all that predecessors made for the task can be in the memory; predecessors without a place are left out. */
gy_ticks gy_arrivals_ready(const gy_plan *p, uint32_t task, uint32_t memory);

#endif
