/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Explaining, in five parts: where the node's inputs come from and which device would have run it when
 * (explain_place.c), what it takes there (explain_cost.c), how collectives are carried out (explain_collective.c),
 * which rows had to leave (explain_room.c), and what it waits for in the schedule as it is (explain_waits.c).
 * Everything is appended to a text; who began it looks at `failed`.
 */
#ifndef GY_SCHEDULER_EXPLAIN_EXPLAIN_H
#define GY_SCHEDULER_EXPLAIN_EXPLAIN_H

#include "scheduler/plan/plan.h"

/* Lines of cells in columns. `align` has a letter a column, 'l' or 'r'; the last column has no spaces behind it. */
typedef struct gy_table {
    const char *align;
    gy_text cells; /* each with its 0 */
    size_t count;
} gy_table;

void gy_table_cell(gy_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends the lines, indented by two, and frees the cells. */
void gy_table_print(gy_table *t, gy_text *to);

/* Where rows come from, and when they can be in a memory if nothing is in their way. */
typedef struct gy_input {
    const gy_dep *dep; /* NULL: bound inputs, in host memory from the start */
    uint32_t memory;   /* from there */
    int64_t bytes;
    gy_ticks made, takes, arrives;
} gy_input;
typedef GY_VEC(gy_input) gy_inputs;

/* ---- explain_inputs.c ---- */
/* The inputs of a placed task, on their way to the memory. false: out of memory. */
bool gy_inputs_find(gy_inputs *in, const gy_plan *p, uint32_t task, uint32_t memory);
size_t gy_inputs_last(const gy_inputs *in); /* the one that arrives last; SIZE_MAX: there are none */
/* "gpu0 -> host -> gpu1", "in gpu0". */
void gy_inputs_route(gy_text *to, const gy_plan *p, uint32_t from, uint32_t memory);
void gy_explain_inputs(gy_text *to, const gy_plan *p, uint32_t task);
/* To each device that was tried. */
void gy_explain_transfers(gy_text *to, const gy_plan *p, uint32_t task);

/* Writes the time of the node on each device, and where the figure comes from. */
void gy_explain_cost(gy_text *to, const gy_plan *p, uint32_t node);
/* After placing with `watch` of the attempt set to the task: its inputs, the candidates, and which term decided. */
void gy_explain_place(gy_text *to, const gy_plan *p, uint32_t task);
/* The algorithms of the op if it is a collective, and of those that were put in to bring what it reads. Needs the
 * schedule alone. */
void gy_explain_collectives(gy_text *to, const gantry_schedule *s, uint32_t op);
/* Writes which rows had to leave a memory: those that the op uses, and those that made room for them. Needs the
 * schedule alone. */
void gy_explain_room(gy_text *to, const gantry_schedule *s, uint32_t op);
/* Writes why an op begins when it does, and which ops wait for it. Needs the schedule alone. */
void gy_explain_waits(gy_text *to, const gantry_schedule *s, uint32_t op);
/* The same of counters, where the schedule has them. */
void gy_explain_counters(gy_text *to, const gantry_schedule *s, uint32_t op);
/* Writes why workers of a resident kernel carry the op out, or why it is launched, where what workers take was
 * measured. */
gantry_status gy_explain_stretch(gy_text *to, const gantry_schedule *s, uint32_t op, gantry_error *err);
/* Writes by how many CUDA graphs a start is carried out where it is captured, and why, where that is to be decided. */
gantry_status gy_explain_graphs(gy_text *to, const gantry_schedule *s, gantry_error *err);

#endif
