/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Events between threads. A slot holds the number of the last start in which it was set, so that nothing is cleared
 * between starts and a wait can ask for an earlier one (`distance`). Setting releases, a wait that succeeds acquires.
 *
 * Whoever waits spins a little, yields a little (there may be more threads than cores), then sleeps in the kernel.
 */
#ifndef GY_HOST_SLOT_H
#define GY_HOST_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GY_SLEEP_NS = 10000000 /* at most, whoever waits for a slot */ };
typedef struct gy_slot {
    _Atomic uint32_t start; /* modulo 2^32 */
    _Atomic uint32_t sleepers;
} gy_slot;

void gy_slot_set(gy_slot *slot, uint32_t start);
/* The first start that failed, UINT64_MAX without one: waits of that start and of later ones give up. */
typedef _Atomic uint64_t gy_failed_from;

/* A wait on behalf of `start`: until the slot was set in start `number` (modulo 2^32) or in a later one. */
typedef struct gy_want {
    uint32_t number;
    uint64_t start;
} gy_want;

/* False: the start failed first. */
bool gy_slot_wait_slowly(gy_slot *slot, gy_want want, const gy_failed_from *failed);

/* Numbers may wrap; two that are compared are never 2^31 apart. */
static inline bool gy_slot_is_set(gy_slot *slot, uint32_t start)
{
    return (int32_t)(atomic_load_explicit(&slot->start, memory_order_acquire) - start) >= 0;
}

static inline bool gy_slot_wait(gy_slot *slot, gy_want want, const gy_failed_from *failed)
{
    return gy_slot_is_set(slot, want.number) || gy_slot_wait_slowly(slot, want, failed);
}

/* A slot that counts how often it was rung. Waits until it is rung for more than `seen` times, or the time is over, or
 * for no reason. */
void gy_slot_ring(gy_slot *slot);
void gy_slot_sleep(gy_slot *slot, uint32_t seen, int64_t nanoseconds);

/* One step of polite waiting: `polls` counts from 0. False: it is time to sleep. */
bool gy_wait_awake(unsigned polls);

#endif
