/* SPDX-License-Identifier: Apache-2.0 */
#include "trend.h"

#include <inttypes.h>
#include <stdio.h>

enum { KIB = 1024, EARLY_END = 3, LATE_BEGIN = 6 };
/* The heap in use is exact; pages that hold it are kept by malloc as it likes, and by AddressSanitizer for long. */
#if defined(__SANITIZE_ADDRESS__)
enum { HEAP_SLACK = 64 * KIB, RESIDENT_SLACK = 512 * KIB * KIB };
#else
enum { HEAP_SLACK = 64 * KIB, RESIDENT_SLACK = 4 * KIB * KIB };
#endif

/* `once`: the driver's share of it may grow in one step. */
typedef struct kind {
    const char *name, *unit;
    uint64_t slack, divisor;
    bool once;
} kind;

static const kind kinds[] = {
    [TREND_HEAP] = { "the heap", " KiB", HEAP_SLACK, KIB, true },
    [TREND_RESIDENT] = { "resident memory", " KiB", RESIDENT_SLACK, KIB, true },
    [TREND_DESCRIPTORS] = { "the number of descriptors", "", 0, 1, false },
    [TREND_THREADS] = { "the number of threads", "", 0, 1, false },
    [TREND_DRIVER_THREADS] = { "the number of the driver's threads", "", 0, 1, true },
    [TREND_GPU] = { "memory in use of GPU", " KiB", 0, KIB, true },
};

static const kind *kind_of(int what)
{
    return &kinds[what < TREND_GPU ? what : TREND_GPU];
}

void trend_add(trend *t, double part, const sample *now)
{
    int window = (int)(part * TREND_WINDOWS) - 1; /* the first tenth does not count */
    if (window < 0)
        return;
    sample *to = &t->least[window < TREND_WINDOWS - 2 ? window : TREND_WINDOWS - 2];
    for (int i = 0; i < TREND_KINDS; i++)
        if (now->of[i] && (to->of[i] == 0 || now->of[i] < to->of[i]))
            to->of[i] = now->of[i];
    t->taken++;
}

/* The least in windows [first, end); 0: there is no sample. */
static uint64_t least_of(const trend *t, int what, int first, int end)
{
    uint64_t least = 0;
    for (int i = first; i < end; i++)
        if (t->least[i].of[what] && (least == 0 || t->least[i].of[what] < least))
            least = t->least[i].of[what];
    return least;
}

/* The largest rise from one window to the next of what is never less again; 0 where a window has no sample, since
 * nothing tells one step from several then. */
static uint64_t largest_step(const trend *t, int what)
{
    uint64_t step = 0;
    for (int i = 0; i < LATE_BEGIN; i++) {
        uint64_t before = least_of(t, what, i, TREND_WINDOWS - 1), after = least_of(t, what, i + 1, TREND_WINDOWS - 1);
        if (!t->least[i].of[what] || !t->least[i + 1].of[what])
            return 0;
        step = after - before > step ? after - before : step;
    }
    return step;
}

static void print_one(const trend *t, int what)
{
    const kind *k = kind_of(what);
    uint64_t before = least_of(t, what, 0, EARLY_END), after = least_of(t, what, LATE_BEGIN, TREND_WINDOWS - 1);
    if (!before && !after)
        return;
    printf("; %s", k->name);
    if (what >= TREND_GPU)
        printf(" %d", what - TREND_GPU);
    printf(" %" PRIu64 " -> %" PRIu64 "%s", before / k->divisor, after / k->divisor, k->unit);
}

static bool grew(const trend *t, int what, bool driver)
{
    const kind *k = kind_of(what);
    uint64_t before = least_of(t, what, 0, EARLY_END), after = least_of(t, what, LATE_BEGIN, TREND_WINDOWS - 1);
    if (after <= before + k->slack)
        return false;
    uint64_t growth = after - before, step = driver && k->once ? largest_step(t, what) : 0;
    /* A leak that goes on makes six steps that are alike, so a sixth less slack finds it as early as its whole growth
     * would. */
    bool once = step && (step >= growth || growth - step <= k->slack - k->slack / LATE_BEGIN);
    printf("%s grew from %" PRIu64 " to %" PRIu64 "%s\n", k->name, before, after,
           once ? ", in one step: what the driver makes once, and late" : "");
    return !once;
}

bool trend_is_flat(const trend *t, bool driver)
{
    bool more = false;
    printf("%" PRIu64 " samples", t->taken);
    for (int i = 0; i < TREND_KINDS; i++)
        print_one(t, i);
    printf("\n");
    for (int i = 0; i < TREND_KINDS; i++)
        more |= grew(t, i, driver);
    return !more && least_of(t, TREND_DESCRIPTORS, 0, EARLY_END) &&
           least_of(t, TREND_DESCRIPTORS, LATE_BEGIN, TREND_WINDOWS - 1);
}
