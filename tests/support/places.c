/* SPDX-License-Identifier: Apache-2.0 */
/* Where a test of Check has come to. Each assertion that holds would write its place to a file, and the program that
 * started the test would read them all when that has ended: a system call and a move of 8 KiB for each, which takes
 * longer than many tests when sanitizers watch it. Here a test tells each place once, when it comes there first. Check
 * itself tells where an assertion fails; a crash is after the last place that was new. */
#include <stdatomic.h>
#include <stdint.h>

enum { PLACES = 4096 };

void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line)
{
    static _Atomic uint64_t told[PLACES]; /* two places that share one are told in turns */
    uint64_t place = (uint64_t)(uintptr_t)file ^ (uint64_t)(unsigned)line << 48;
    _Atomic uint64_t *last = &told[((uintptr_t)file / 8 + (unsigned)line) % PLACES];
    if (atomic_load_explicit(last, memory_order_relaxed) == place)
        return;
    atomic_store_explicit(last, place, memory_order_relaxed);
    __real__mark_point(file, line);
}
