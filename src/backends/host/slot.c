/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/host/slot.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 200, YIELDS = 20 };

static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

bool gy_wait_awake(unsigned polls)
{
    if (polls < SPINS) {
        pause_core();
        return true;
    }
    if (polls < SPINS + YIELDS) {
        sched_yield();
        return true;
    }
    return false;
}

static void wake(gy_slot *slot)
{
    if (atomic_load(&slot->sleepers))
        syscall(SYS_futex, &slot->start, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Both sides go through the one order of sequentially consistent operations: either the waiter sees the new number, or
 * the setter sees the sleeper. */
void gy_slot_set(gy_slot *slot, uint32_t start)
{
    atomic_store(&slot->start, start);
    wake(slot);
}

void gy_slot_ring(gy_slot *slot)
{
    atomic_fetch_add(&slot->start, 1);
    wake(slot);
}

static void sleep_on(gy_slot *slot, uint32_t seen, int64_t nanoseconds)
{
    const struct timespec limit = { .tv_nsec = nanoseconds };
    syscall(SYS_futex, &slot->start, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0);
}

void gy_slot_sleep(gy_slot *slot, uint32_t seen, int64_t nanoseconds)
{
    atomic_fetch_add(&slot->sleepers, 1);
    sleep_on(slot, seen, nanoseconds);
    atomic_fetch_sub(&slot->sleepers, 1);
}

bool gy_slot_wait_slowly(gy_slot *slot, gy_want want, const gy_failed_from *failed)
{
    for (unsigned polls = 0; gy_wait_awake(polls); polls++)
        if (gy_slot_is_set(slot, want.number))
            return true;
    atomic_fetch_add(&slot->sleepers, 1);
    bool set;
    while (!(set = gy_slot_is_set(slot, want.number)) && atomic_load(failed) > want.start) {
        uint32_t seen = atomic_load(&slot->start);
        if ((int32_t)(seen - want.number) < 0)
            sleep_on(slot, seen, GY_SLEEP_NS); /* wakes to look for a failure, which nobody signals */
    }
    atomic_fetch_sub(&slot->sleepers, 1);
    return set;
}
