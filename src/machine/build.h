/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A machine under construction: gy_machine_new, fill the arrays, declare direct routes, gy_machine_finish. Only the
 * files of this folder see it.
 */
#ifndef GY_MACHINE_BUILD_H
#define GY_MACHINE_BUILD_H

#include "machine/machine.h"

#define GY_MOST_MEMORIES 4097 /* the matrix of routes of so many takes 1.5 GB: beyond that a file is a mistake */

typedef struct gy_machine_size {
    uint32_t memories, devices, resources;
} gy_machine_size;

/* Zeroed arrays of these sizes, all routes NONE, contention on, one owner. NULL: out of memory. */
gantry_machine *gy_machine_new(const char *name, gy_machine_size size);
/* A copy of `text` in the machine's arena; NULL: out of memory. */
const char *gy_machine_text(gantry_machine *m, const char *text);
/* Adds a remark. Takes a text in the machine's arena; false: out of memory, also when `note` is NULL. */
bool gy_machine_note(gantry_machine *m, const char *note);

/* A selection from a machine: which devices stay, and the new numbers of memories and resources, GY_MACHINE_NONE for
 * those that go. */
typedef struct gy_machine_kept {
    const bool *device;
    const uint32_t *memory, *resource;
} gy_machine_kept;
/* Copies memories, devices, resources and the model: what is kept, or all (NULL). Routes, tables and texts are left
 * out. false: out of memory. */
bool gy_machine_copy_parts(gantry_machine *m, const gantry_machine *from, const gy_machine_kept *kept);

/* The same machine again, with one owner; resources that no route uses are left out. NULL: out of memory. */
gantry_machine *gy_machine_again(const gantry_machine *from);

/* Adds a table of times; its points are copied. false: out of memory, also when `kind` is NULL. */
bool gy_machine_add_table(gantry_machine *m, const gy_collective_table *table);

/* The same for a kernel; also when `kernel` is NULL. */
bool gy_machine_add_kernel(gantry_machine *m, const gy_kernel_table *table);
/* Makes the points of `batched` the machine's own. false: out of memory. */
bool gy_machine_copy_batched(gantry_machine *m, gy_kernel_table *table);
/* Makes its own copy of `strided`. false: out of memory. */
bool gy_machine_copy_strided(gantry_machine *m, gy_kernel_table *table);
/* Makes the points of what workers take the machine's own. false: out of memory. */
bool gy_machine_copy_workers(gantry_machine *m, gy_worker_times *workers);
/* Adds a fact, behind those that are there; one of that name is replaced. Texts are copied. false: out of memory. */
bool gy_machine_fact(gantry_machine *m, const char *name, const char *value);

/* Adds those of lines "name: value"; other lines mean nothing. */
bool gy_machine_facts(gantry_machine *m, const char *lines);

/* The resources that flows of a route share; the functions below copy the list. */
typedef struct gy_via {
    const uint32_t *resource;
    uint32_t count;
} gy_via;

/* Declares a direct route (from == to: within a memory) with measured points, copied. false: out of memory. */
bool gy_machine_points(gantry_machine *m, uint32_t from, uint32_t to, const gy_point *point, uint32_t points,
                       gy_via via);
/* Says of the route if it is a message. */
void gy_machine_by_network(gantry_machine *m, uint32_t from, uint32_t to, bool network);
/* Says of the route that kernels make copies of up to so many bytes. */
void gy_machine_by_kernels(gantry_machine *m, uint32_t from, uint32_t to, int64_t bytes);
/* The same as a latency and a rate in bytes per second. */
bool gy_machine_link(gantry_machine *m, uint32_t from, uint32_t to, gy_ticks latency, int64_t rate, gy_via via);
/* True if the points are what gy_machine_link makes. */
bool gy_route_is_link(const gy_route *r, gy_ticks *latency, int64_t *rate);

/* ceil(a * b / c), at most GY_TICKS_MAX; a, b >= 0, c > 0. */
int64_t gy_scale_up(int64_t a, int64_t b, int64_t c);

/* Fills in copies within a memory and composes relays. Afterwards gy_machine_unreached tells what has no route. */
bool gy_machine_compose(gantry_machine *m);
/* The first pair of memories, in index order, without a route. */
bool gy_machine_unreached(const gantry_machine *m, uint32_t *from, uint32_t *to);

#endif
