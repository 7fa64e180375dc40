/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The load of an assignment: what the busiest device has to do when a pipeline is full, so that one start follows the
 * other at this distance (J. Tarnawski et al., Efficient Algorithms for Device Placement of DNN Graph Operators,
 * NeurIPS 2020). This is the one definition that the policy "split", its local search and the report use.
 *
 *   load(device) = time of its tasks + transfers in + transfers out
 *
 *   in    each value that another memory made (or a bound input), once per device that reads it
 *   out   each value that it made and another memory reads, or that is an output: once for all readers behind the host
 *         memory (staged, or the host itself; for a device in the host memory: for all readers), and once for each
 * memory that it is sent to directly
 *
 * A transfer through the host memory is paid by both: sender to host, host to receiver. A direct one takes its time
 * from both; of a relay each pays its own hop. Tasks that must share a device (`with`, `apart`) are one *unit*. Every
 * memory has to hold the const and state buffers of its units; what transfers need for a while is the packer's
 * business. What a state brings over from the last start costs nothing here, and contributions to a reduction are
 * handed on in order. Collectives have no one device: they are no
 * units, and what they move is not counted.
 */
#ifndef GY_SCHEDULER_LOAD_LOAD_H
#define GY_SCHEDULER_LOAD_LOAD_H

#include "scheduler/plan/plan.h"

/* Rows that one unit makes and that exactly `readers` other units read. */
typedef struct gy_load_item {
    uint32_t maker;           /* unit; GY_NONE: a bound input, in host memory */
    uint32_t size;            /* index of sizes */
    uint32_t reader, readers; /* range of gy_load.reader */
    bool home;                /* part of an output */
} gy_load_item;

/* Rows that stay in each memory where one of `users` units is. */
typedef struct gy_load_held {
    uint64_t bytes;
    uint32_t user, users; /* range of gy_load.user */
} gy_load_held;

/* One size from one memory to another. `once`: the sender pays once for all such readers. */
typedef struct gy_load_pay {
    gy_ticks send, receive;
    bool once;
} gy_load_pay;

typedef struct gy_load {
    const gy_plan *p;
    uint32_t units, devices, memories;
    uint32_t *order;   /* all tasks, each after those it waits for, wherever the graph has its sources (load_order.c) */
    uint8_t *loose;    /* per task: it waits for nothing, or for one other such task only */
    uint32_t *unit_of; /* per task; GY_NONE: a collective */
    uint32_t *task_of; /* per unit: its first task in `order`, by which units are numbered */
    gy_ticks *time;    /* units x devices; GY_TICKS_MAX: not allowed */
    GY_VEC(gy_load_item) items;
    GY_VEC(uint32_t) reader;
    GY_VEC(gy_load_held) held;
    GY_VEC(uint32_t) user;
    uint32_t *item_first, *item_of; /* per unit: the items that it makes or reads */
    uint32_t *held_first, *held_of;
    GY_VEC(int64_t) sizes;
    gy_load_pay *pay; /* sizes x memories x memories */
} gy_load;

/* After gy_plan_prepare; the plan stays borrowed. gy_load_free in any case. */
gantry_status gy_load_make(gy_load *l, const gy_plan *p, gantry_error *err);
void gy_load_free(gy_load *l);
/* For gy_load_make: order and loose. */
gantry_status gy_load_order(gy_load *l, const gy_plan *p, gantry_error *err);

/* An assignment, changed one unit at a time: O(items of the unit x devices). */
typedef struct gy_assignment {
    const gy_load *l;
    uint32_t *device;  /* per unit; GY_NONE: nowhere yet, neither makes nor reads anything */
    gy_ticks *load;    /* per device */
    uint64_t *used;    /* per memory: bytes held */
    uint32_t *readers; /* items x devices */
    uint32_t *users;   /* held x memories */
} gy_assignment;

bool gy_assignment_init(gy_assignment *a, const gy_load *l); /* false: out of memory; free in any case */
void gy_assignment_free(gy_assignment *a);
/* To another device, or from or to nowhere. The time of a unit where it is not allowed counts as 0. */
void gy_assignment_move(gy_assignment *a, uint32_t unit, uint32_t device);
/* As in `device`, per unit. */
void gy_assignment_set(gy_assignment *a, const uint32_t *device);
/* That of the busiest device. */
gy_ticks gy_assignment_load(const gy_assignment *a);
/* Bytes that do not fit, over all memories. */
uint64_t gy_assignment_excess(const gy_assignment *a);
/* Given the device of all others: may the unit be there (time, `apart`)? */
bool gy_assignment_allows(const gy_assignment *a, uint32_t unit, uint32_t device);

#endif
