/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The machine's measured times of kernels, looked up for node after node: the time for the node's exact arguments
 * (gy_node_case), else the table for all arguments. Nodes of one kernel follow each other, and names are compared once
 * for all of them; times for exact arguments are found by a hash.
 */
#ifndef GY_SCHEDULER_COST_TABLES_H
#define GY_SCHEDULER_COST_TABLES_H

#include "scheduler/plan/plan.h"

typedef struct gy_tables {
    const gy_plan *plan;
    uint32_t kernel; /* of the last node, with its form and its dtype */
    const char *form;
    gantry_dtype dtype;
    const gy_kernel_table **of;   /* per device: the table for all arguments, or NULL */
    const gy_kernel_table **like; /* per device: of the kernel that goes through memory in the same way, or NULL */
    bool cases;                   /* that kernel has times for exact arguments */
    bool *unknown;                /* per device: it may be in batches, and nothing was measured of that */
    gy_map index;                 /* hash of a time for exact arguments -> its place in the machine */
    gy_text arguments;            /* of the node, where `cases` */
    bool named;                   /* they are a text */
} gy_tables;

/* false: out of memory, in all of these. `t` is zero-initialised; end it in any case. */
bool gy_tables_begin(gy_tables *t, const gy_plan *p);
/* The node that is asked for next. */
bool gy_tables_turn(gy_tables *t, const gy_node *n);
/* The table that says what that node takes on a device, or NULL. */
const gy_kernel_table *gy_tables_find(const gy_tables *t, const gy_node *n, uint32_t device);
/* The table for all arguments alone, or NULL. */
const gy_kernel_table *gy_tables_of_kernel(const gy_tables *t, const gy_node *n, uint32_t device);
/* The table by bytes of the kernel that goes through memory in the same way, where none is of the node's own, or NULL.
 */
const gy_kernel_table *gy_tables_like(const gy_tables *t, const gy_node *n, uint32_t device);
/* *added: by one more op of the node to a batch, GY_TICKS_MAX: it is in none. false: nothing was measured of that, and
 * it may be in one. */
bool gy_tables_batched(const gy_tables *t, const gy_node *n, uint32_t device, gy_ticks *added);
void gy_tables_end(gy_tables *t);

#endif
