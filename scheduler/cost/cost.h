/* SPDX-License-Identifier: Apache-2.0 */
/* Times of nodes on devices, who may run where, and the bytes of each memory that instances may take. */
#ifndef GY_SCHEDULER_COST_COST_H
#define GY_SCHEDULER_COST_COST_H

#include "scheduler/plan/plan.h"

/* The pass: time of every node on every device, and who may run where. */
gantry_status gy_plan_cost(gy_plan *p, gantry_error *err);
/* The part of it that says who may run where. */
gantry_status gy_plan_eligible(gy_plan *p, gantry_error *err);
/* The node has one place, of which `on`, `with` or `apart` say something. A collective of one rank that is tied goes
 * where other nodes with these wishes may go; one that is not goes where its rows are. */
bool gy_plan_is_tied(const gy_plan *p, uint32_t node);
/* The device that `on` gives a rank of a collective, which has such a list. E_GRAPH: the machine has none of that name.
 */
gantry_status gy_plan_on_rank(gy_plan *p, uint32_t node, uint32_t rank, uint32_t *device, gantry_error *err);
/* The capacity of each memory; `max_memory` as in gantry_schedule_options. */
gantry_status gy_plan_capacity(gy_plan *p, const char *max_memory, gantry_error *err);
/* The entries of `max_memory`, which `m` can read, that are of memories of `some`, a selection of it. False, and no
 * text: a name stands for another memory there. `text` is the caller's. */
bool gy_capacity_select(gy_text *text, const char *max_memory, const gantry_machine *m, const gantry_machine *some);
/* Takes scratch off the capacity of the memories, once tasks are placed. Where memory is to be spared, devices whose
 * small nodes ask for scratch compute in one lane, which has it once. */
gantry_status gy_plan_scratch(gy_plan *p, gantry_error *err);
/* Does it make a difference to spare memory? */
bool gy_plan_can_spare(const gantry_graph *graph, const gantry_machine *machine);

/* The route of what a fill node writes on a GPU, where the host makes it once and it is uploaded at each start; else
 * NULL. */
const gy_route *gy_plan_upload(const gy_plan *p, uint32_t node, uint32_t device);
/* The overhead of formulas there, beside their flops, in us; 0 on CPUs. */
double gy_plan_overhead(const gy_plan *p, uint32_t node, uint32_t device);
/* The peak that the roofline of the node takes, GFLOP/s; 0: the machine gives none. */
double gy_plan_gflops(const gy_plan *p, uint32_t node, uint32_t device);
/* The measured table that says something of the node: the time of its kernel with its very arguments,
 * else the kernel's table, else NULL; and what the node has of its work. Where a time was given with the node it is not
 * used. tables.h is for many nodes. */
const gy_kernel_table *gy_plan_table(const gy_plan *p, uint32_t node, uint32_t device);
double gy_plan_work(const gy_node *node, const gy_kernel_table *table);
/* The time that the table says for so much work on the device, which does `rate` of it in a us; 0: not known. Where the
 * last figure of a GPU is a launch more than it is work, by that rate and by the figure before it, what is beyond does
 * not follow from it: it takes so much longer than a launch and the work at that rate as the last figure did, where
 * that is less. */
gy_ticks gy_table_time(const gy_kernel_table *table, double work, double rate, const gy_device *device);
/* Of so many bytes by the table of gy_plan_like; 0: there is none. */
gy_ticks gy_like_time(const gy_kernel_table *like, double bytes, const gy_device *device);
/* Of a node by a table that is not of its very arguments. */
gy_ticks gy_plan_table_time(const gy_plan *p, uint32_t node, uint32_t device, const gy_kernel_table *table);
/* The bytes that memory of the device moves for the node, where no table says what it takes: half of them lie together
 * in pieces, of which a GPU moves whole sectors, the other half are packed. */
double gy_plan_moved(const gy_node *node, const gy_device *device);
/* The table by bytes of the kernel that the node's goes through memory like, on a GPU: the roofline takes no less;
 * NULL: there is none. */
const gy_kernel_table *gy_plan_like(const gy_plan *p, uint32_t node, uint32_t device);
/* The time that blocks of the node wait for memory in turn, on a GPU. */
gy_ticks gy_plan_waits(const gy_plan *p, uint32_t node, uint32_t device);
/* The time of the square product that is as deep as the node's, on a GPU, where that computes more; 0: it says nothing.
 */
gy_ticks gy_plan_deep(const gy_plan *p, uint32_t node, uint32_t device);
/* Each of many launches that overlap takes a GPU so long all the same, which a machine does not say: what a node of
 * eight chains took on H200s (a fork and join of four 2.9 us). */
static inline gy_ticks gy_launch_beside(void)
{
    return gy_ticks_from_us(0.18);
}
/* The time that one more op of the node adds to a batch of them on the device, less than it takes alone; GY_TICKS_MAX:
 * it is in none. As was measured with its very arguments, else of its kernel; without either, a kernel of which a
 * library makes many by one call is taken for half as fast as the roofline says, without its launch. */
gy_ticks gy_plan_batched(const gy_plan *p, uint32_t node, uint32_t device);
bool gy_plan_may_batch(const gy_plan *p); /* false: no node is in any */
/* Time of `bytes` from memory to memory, 0 within one. */
gy_ticks gy_transfer_time(const gy_plan *p, uint32_t from, uint32_t to, int64_t bytes);
/* Of the memories that a placed task leaves its rows in, the one from which they get to `memory` soonest: what a
 * collective made is in that of each of its ranks. */
uint32_t gy_plan_nearest(const gy_plan *p, uint32_t task, uint32_t memory, int64_t bytes);

#endif
