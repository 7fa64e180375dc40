/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Small problems whose schedules a test can time by itself: tasks with a time on each device, and for each dependency
 * the bytes that go along it. On the machine here a byte takes 1 us between any two memories, but 2 us from those of
 * odd numbers to the host, and transfers do not disturb each other. Naive code of the tests works on `problem` alone;
 * the code under test on the graph made of it.
 */
#ifndef TESTS_SEARCH_SUITE_H
#define TESTS_SEARCH_SUITE_H

#include <check.h>

#include "schedule/schedule.h"
#include "scheduler/search/anneal.h"
#include "scheduler/search/decode.h"
#include "scheduler/search/exact.h"
#include "scheduler/search/model.h"
#include "scheduler/search/search.h"
#include "support/run_suite.h"

#define MOST_TASKS   16
#define MOST_DEVICES 4

typedef struct problem {
    int tasks, devices;
    int time[MOST_TASKS][MOST_DEVICES];
    int bytes[MOST_TASKS][MOST_TASKS]; /* from, to (to > from); 0: no dependency */
    int input[MOST_TASKS];             /* bytes that it reads of host memory */
    int output[MOST_TASKS];            /* bytes that are fetched behind it */
    bool pool;                         /* devices are alike, and what goes along dependencies takes no time */
} problem;

/* A placement: device of each task, and the order of all. */
typedef struct placement {
    uint32_t device[MOST_TASKS], order[MOST_TASKS];
} placement;

int pick(uint64_t *state, int n); /* 0 .. n-1 */

problem draw_problem(uint64_t seed, int tasks, int devices, bool pool);
placement draw_placement(const problem *p, uint64_t *state);
/* Makespan in us; `start`, `finish` per task. Written down from the definition of list scheduling without insertion. */
int time_of(const problem *p, const placement *at, int *start, int *finish);
/* From the end of a task until what is fetched of it has arrived, in us. */
int fetch_of(const problem *p, const placement *at, uint32_t task);
/* The least of all orders and devices. */
int brute_force(const problem *p);
bool is_topological(const problem *p, const uint32_t *order);

/* The same as graph, machine, plan and model. */
typedef struct bench {
    gantry_graph *graph;
    gantry_machine *machine;
    gy_plan plan;
    gy_model model;
} bench;

gantry_graph *make_graph(const problem *p);
gantry_machine *make_machine(int devices);
/* Tasks that read parts of one input and rows of each other, for devices with contention. */
gantry_graph *graph_with_contention(uint64_t seed);
void bench_open(bench *b, const problem *p);
void bench_of(bench *b, gantry_graph *graph, gantry_machine *machine); /* which it owns from then on */
void bench_close(bench *b);

void candidate_of(gy_candidate *c, const bench *b, const placement *at);
placement placement_of(const gy_candidate *c);

static inline gy_ticks us(int t)
{
    return (gy_ticks)t * 1000000;
}

#endif
