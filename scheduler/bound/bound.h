/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Inside of the bound (bound.c): what has to go between host memory and the memories of devices, however tasks are
 * placed. An input lies in host memory when a start begins, and an output has to be there when it ends.
 */
#ifndef GY_SCHEDULER_BOUND_BOUND_H
#define GY_SCHEDULER_BOUND_BOUND_H

#include "scheduler/plan/plan.h"

/* The pass: finds what no schedule can beat, whatever the placement. */
gantry_status gy_plan_bound(gy_plan *p, gantry_error *err);
/* The schedule says so. */
void gy_bound_tell(gantry_schedule *s, const gy_bound *b);

/* Bytes per task, and in all: those of tasks that no device in host memory can run, each byte once. Contributions to a
 * reduction do not count as reading: the value before them may meet them anywhere. Only bytes that take rate of links
 * are counted (gy_row_pieces). */
typedef struct gy_bound_bytes {
    int64_t *up;    /* of inputs, as they are at the start, that the task reads */
    int64_t *down;  /* of outputs that the task is the last to write */
    uint8_t *waits; /* GY_WAITS_UP, GY_WAITS_DOWN: some rows have to come or go, even where their bytes do not count */
    int64_t ups, downs;
    int64_t kept; /* of states and constants that such tasks read as a start finds them */
} gy_bound_bytes;
enum { GY_WAITS_UP = 1, GY_WAITS_DOWN = 2 };

/* `all`: bytes that take no rate count, too; and nodes that copy are left out, since their rows need not go through the
 * memory of a device. */
gantry_status gy_bound_bytes_find(gy_bound_bytes *b, const gy_plan *p, bool all, gantry_error *err);
void gy_bound_bytes_free(gy_bound_bytes *b);

/* No device that works in host memory can run the node. Collectives have no one place. */
bool gy_bound_is_away(const gy_plan *p, uint32_t node);

/* Bytes that copies move between memories in a start, whatever the placement, the order and who leaves
 * (bound_moved.c). */
gantry_status gy_bound_moved(const gy_plan *p, int64_t *bytes, gantry_error *err);

/* ---- bound_pieces.c ---- */

/* Which rows of values copies can only move in pieces that take rate of links. */
typedef struct gy_row_pieces {
    const gy_plan *p;
    int64_t light;        /* bytes of a piece that take none at most; 0: all take some, and nothing below is there */
    size_t *first, *last; /* per value: its ends are row[first .. last), rising */
    int64_t *row, *heavy; /* per end: bytes of pieces that take rate before it */
} gy_row_pieces;
/* `wanted`: per value. false: out of memory; gy_row_pieces_free is due either way. */
bool gy_row_pieces_make(gy_row_pieces *x, const gy_plan *p, const uint8_t *wanted);
void gy_row_pieces_free(gy_row_pieces *x);
/* The same for values whose pieces are wanted one by one: all count. */
bool gy_row_pieces_list(gy_row_pieces *x, const gy_plan *p, const uint8_t *wanted);
/* The end at `row`: the piece that begins there. */
size_t gy_row_pieces_find(const gy_row_pieces *x, uint32_t value, int64_t row);
/* Bytes of the rows that take rate; `first` and `last` are ends of accesses, or of the buffer. */
int64_t gy_row_pieces_heavy(const gy_row_pieces *x, uint32_t value, int64_t first, int64_t last);

/*
 * A lower bound of every period; after gy_plan_prepare. Area and cut as for a makespan (bound.c); and around each
 * state, the longest chain of tasks from one that reads what the last start left to one that leaves what the first will
 * read in the next.
 */
gantry_status gy_period_bound(const gy_plan *p, gy_ticks *bound, gantry_error *err);
/* For the bound of a period (period_bound.c): what starts that follow each other cannot beat either, area and cut; the
 * time of a node on its fastest device; does the dependency hold whatever memories are used? */
gantry_status gy_bound_throughput(const gy_plan *p, gy_ticks *time, gantry_error *err);
gy_ticks gy_bound_fastest(const gy_plan *p, uint32_t node);

/* Routes of a memory: those out of it, those into it, or both, to and from all other memories. */
typedef enum gy_direction { GY_GO_OUT = 1, GY_GO_IN = 2, GY_GO_BOTH = 3 } gy_direction;
/* *rate: bytes per second that can cross at most: the rates of resources that together are on all of these routes, each
 * of which is full at best (of such sets the one that a greedy search finds). 0: no limit is known. */
gantry_status gy_cut_rate(int64_t *rate, const gantry_machine *m, uint32_t memory, gy_direction which,
                          gantry_error *err);
/* The least latency of one of these routes; 0 where there is none. */
gy_ticks gy_cut_latency(const gantry_machine *m, uint32_t memory, gy_direction which);

/* Time that bytes need to cross, rounded down; no limit: none. */
static inline gy_ticks gy_cut_time(int64_t bytes, int64_t rate)
{
    return bytes > 0 && rate > 0 ? gy_ticks_of((uint64_t)bytes, rate) - 1 : 0;
}

#endif
