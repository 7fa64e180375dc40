/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Checking mode: one thread runs one op at a time, in a random order that happens-before allows. What a function is
 * given lies in *windows*, copies of its regions with inaccessible pages before and behind; everything else of the run
 * is inaccessible meanwhile. Each function is called at least twice per op, with its regions at the end of a window and
 * at the beginning of one, and with different bytes where it should write: what stays as it was was not written.
 * Reductions are tried from the identity and from another value. What is found is reported as GANTRY_E_CHECK.
 */
#ifndef GY_HOST_CHECK_H
#define GY_HOST_CHECK_H

#include "backends/host/ops.h"

/* ---- check_order.c ---- */

/* Happens-before within one start: lane order, and the rows of the sync table that something carries. */
typedef struct gy_order {
    uint32_t ops;
    uint32_t *first, *next; /* successors of op i: next[first[i]] .. next[first[i + 1] - 1] */
    uint32_t *before;       /* per op: number of predecessors */
    uint32_t *left, *ready; /* room for a walk */
} gy_order;

gantry_status gy_order_make(gy_order *order, const gantry_schedule *s, gantry_error *err);
void gy_order_free(gy_order *order);
/* A random legal order of all ops into `out`. E_SCHEDULE: some wait for each other. */
gantry_status gy_order_shuffle(gy_order *order, uint64_t seed, uint32_t *out, gantry_error *err);

/* ---- check_window.c ---- */

typedef struct gy_window {
    char *data; /* `bytes` of them can be touched */
    size_t bytes;
    char *pages;          /* with the inaccessible one on either side */
    size_t mapped, guard; /* `guard`: bytes of that page */
} gy_window;

/* A range of addresses, handed out in turn, so that a pointer kept from an earlier launch leads nowhere. */
typedef struct gy_windows {
    char *reserve;
    size_t bytes, next, page;
} gy_windows;

gantry_status gy_windows_make(gy_windows *w, gantry_error *err);
void gy_windows_free(gy_windows *w);
/* `at_end`: the data end where the inaccessible page begins; else they begin where one ends. */
gantry_status gy_window_open(gy_windows *w, gy_window *window, size_t bytes, bool at_end, gantry_error *err);
gantry_status gy_window_protect(gy_window *window, gantry_error *err);
void gy_window_close(gy_window *window);
static inline bool gy_windows_contain(const gy_windows *w, const void *at)
{
    return (uintptr_t)at >= (uintptr_t)w->reserve && (uintptr_t)at - (uintptr_t)w->reserve < w->bytes;
}

/* ---- check_fault.c ---- */

/* Calls `function(context)`. False: it touched memory that it may not, at *address. */
bool gy_fault_guard(void (*function)(void *context), void *context, const void **address);
/* From the first call to the matching last, faults inside gy_fault_guard are caught; others go where they went. */
bool gy_fault_install(void);
void gy_fault_remove(void);

/* ---- check_compare.c ---- */

enum { GY_POISON_SLAB = 0xFF, GY_POISON_A = 0xA5, GY_POISON_B = 0x3C };

/* How many bytes hold poison A in `a` and poison B in `b`; *first is the first of them. */
size_t gy_count_unwritten(const void *a, const void *b, size_t bytes, size_t *first);
/* A starting value for a second try of a reduction, given what the first left: one that must show in the result. */
void gy_second_start(void *start, const void *first_result, gantry_dtype dtype, gantry_access op, uint64_t count);
/* Index of the first element of `result` that is not start (+) contribution, UINT64_MAX if there is none. */
uint64_t gy_find_not_added(const void *start, const void *contribution, const void *result, gantry_dtype dtype,
                           gantry_access op, uint64_t count);

/* ---- checked.c, check_launch.c, check_report.c ---- */

typedef struct gy_checked {
    const gy_job *job;
    gy_host_memory memory;
    gy_host_ops ops;
    gy_order order;
    gy_windows windows;
    uint32_t *sequence;
    uint8_t **written; /* per memory: 1 for every byte of the slab that something has written in this start */
    gy_op_time *time;
    bool handler;
    uint64_t started, failed; /* starts; failed: the one that did, 0 */
    gantry_error error;
    int64_t elapsed_ns;
} gy_checked;

/* One op that is tried several times. */
enum { GY_TRIES = 4 };
typedef struct gy_trial {
    gy_checked *c;
    uint32_t id;
    const gy_op *op;
    const gy_node *node;
    gy_window *window; /* per use */
    gy_window scratch;
    void **home;           /* per use: where it really is */
    char **result;         /* GY_TRIES per use: what a try left, NULL where it only reads */
    char **start;          /* per use: what the second try of a reduction began with */
    gy_op_failure failure; /* of the last call */
    bool succeeded;
} gy_trial;

static inline const gy_use *gy_trial_use(const gy_trial *t, uint32_t k)
{
    return &t->c->job->schedule->use.at[t->op->use + k];
}
static inline char **gy_trial_result(const gy_trial *t, uint32_t k, int number)
{
    return &t->result[k * GY_TRIES + (uint32_t)number];
}
gantry_dtype gy_trial_dtype(const gy_trial *t, uint32_t k);

/* Calls the function of a launch op in all the ways above and brings its results to where they belong. */
gantry_status gy_check_launch(gy_checked *c, uint32_t op, gantry_error *err);
/* Where the bytes of a use are noted as written; NULL: not a slab, nothing is noted. */
uint8_t *gy_check_written(const gy_checked *c, const gy_use *use);
/* E_CHECK if one of these uses of an op reads bytes that nothing has written. */
gantry_status gy_check_reads(const gy_checked *c, uint32_t op, uint32_t first, uint32_t uses, gantry_error *err);

/* Records, each of E_CHECK. `k` is a use of the op. */
gantry_status gy_report_touch(const gy_trial *t, const void *address, gantry_error *err);
gantry_status gy_report_unwritten(const gy_trial *t, uint32_t k, size_t first, size_t count, gantry_error *err);
gantry_status gy_report_not_added(const gy_trial *t, uint32_t k, uint64_t element, gantry_error *err);
gantry_status gy_report_depends(const gy_trial *t, uint32_t k, size_t first, gantry_error *err);
gantry_status gy_report_unset(const gy_checked *c, uint32_t op, uint32_t k, size_t first, gantry_error *err);

#endif
