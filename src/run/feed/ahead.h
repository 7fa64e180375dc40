/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Arrays that threads make ahead of their use, in a ring of places. Arrays are numbered. Each is made when there is
 * room, taken by one user, and given back, in this order; all but the making is for one thread. An array may have parts
 * that several threads make at once. Parts are begun in the order of their arrays, so a thread that is done with one
 * array goes on with the next.
 */
#ifndef GY_RUN_FEED_AHEAD_H
#define GY_RUN_FEED_AHEAD_H

#include <gantry/status.h>
#include <stdbool.h>
#include <stdint.h>

enum { GY_AHEAD_THREADS = 8 }; /* at most, of one ring */

typedef struct gy_ahead gy_ahead;
/* Makes a part of an array, from 0 on; `to` is where the whole array begins. */
typedef gantry_status (*gy_make)(void *user, uint64_t number, uint32_t part, void *to, gantry_error *err);

/* How arrays are made: in so many parts, by so many threads at most. Fewer do where the process cannot have more. */
typedef struct gy_ahead_work {
    gy_make make;
    void *user;
    uint32_t parts, threads; /* at least 1 */
} gy_ahead_work;

/* Memory for the places: `make` and `free` of some owner. */
typedef struct gy_ahead_memory {
    gantry_status (*make)(void *of, void **to, uint64_t bytes, gantry_error *err);
    void (*free)(void *of, void *at);
    void *of;
} gy_ahead_memory;

/* Begins with array `first`. `make` is called by the threads until gy_ahead_stop has returned. `memory` NULL: places
 * are pages of the process. */
gantry_status gy_ahead_start(gy_ahead **ahead, const gy_ahead_memory *memory, uint32_t places, uint64_t bytes,
                             uint64_t first, const gy_ahead_work *work, gantry_error *err);
/* Waits for the next array, so many nanoseconds at most. True: gy_ahead_next will say what became of it. */
bool gy_ahead_wait(gy_ahead *ahead, int64_t ns);
bool gy_ahead_ready(gy_ahead *ahead); /* the next array is made */
/* The array that is taken next, after gy_ahead_wait was true; or why it could not be made, as often as it is asked: the
 * error of the first part of the first array that could not, whichever thread was first. */
gantry_status gy_ahead_next(gy_ahead *ahead, const void **array, gantry_error *err);
/* The user has the next array; those with numbers below `kept` come back to the ring. */
void gy_ahead_take(gy_ahead *ahead);
void gy_ahead_give_back(gy_ahead *ahead, uint64_t kept);
uint64_t gy_ahead_taken(const gy_ahead *ahead); /* the number of the array that is taken next */
/* Waits for the calls at work; then the threads are gone. */
void gy_ahead_stop(gy_ahead *ahead);
/* After gy_ahead_stop. NULL is fine. */
void gy_ahead_free(gy_ahead *ahead);

#endif
