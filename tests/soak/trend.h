/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of things that may not grow during a long run: the least that was seen early is compared with the least
 * that was seen late, so that what is in use for a moment only does not count. The first tenth of the way does not
 * count either: then things are loaded, and pools get their sizes.
 *
 * A driver of GPUs makes some things once, and late: 300 KiB of the heap, a thread, a piece of a GPU's memory
 * (docs/reliability.md). That is one step; a leak goes on. So where there is a driver, growth that is left when its
 * largest step is taken off counts. Without a driver all growth does, and so do descriptors and the threads that are
 * not the driver's always.
 */
#ifndef TESTS_SOAK_TREND_H
#define TESTS_SOAK_TREND_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_GPUS = 16, TREND_WINDOWS = 10 };

typedef enum trend_kind {
    TREND_HEAP,
    TREND_RESIDENT,
    TREND_DESCRIPTORS,
    TREND_THREADS,
    TREND_DRIVER_THREADS,
    TREND_GPU, /* memory in use of the first GPU; those of others follow */
    TREND_KINDS = TREND_GPU + MOST_GPUS
} trend_kind;

/* Taken between two starts; 0: not known. Bytes but for the counts. */
typedef struct sample {
    uint64_t of[TREND_KINDS];
} sample;

/* The least that was seen in each tenth of the way behind the first. */
typedef struct trend {
    sample least[TREND_WINDOWS - 1];
    uint64_t taken;
    double next; /* when the next sample is due */
} trend;

/* `part` of the way, 0 to 1. */
void trend_add(trend *t, double part, const sample *now);
/* Prints what changed; false: something grew. `driver`: one of GPUs is in the process. */
bool trend_is_flat(const trend *t, bool driver);

#endif
