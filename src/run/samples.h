/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Times that starts of a run have taken, op by op, kept to calibrate its machine. A time counts where nothing else made
 * it longer: an op that had its device for itself; a copy whose resources were not asked for more, by all copies at the
 * time and the rates that the machine gives them alone, than they have.
 */
#ifndef GY_RUN_SAMPLES_H
#define GY_RUN_SAMPLES_H

#include "run/run.h"

#define GY_SAMPLES_MOST  32                 /* starts that are kept */
#define GY_SAMPLES_TIMES (INT64_C(1) << 25) /* and times of ops */

/* Starts: us of each op, phase after phase; negative: does not count. */
typedef struct gy_samples {
    GY_VEC(double *) start;
    gy_op_time *last; /* when the ops of the last of them ran, counted in each phase from its beginning */
    size_t ops;       /* of all phases */
} gy_samples;

void gy_samples_free(gy_samples *s); /* NULL is fine */

/* The schedule of phase i of a schedule, or the schedule itself as phase 0; NULL past the last. */
const gantry_schedule *gy_samples_phase(const gantry_schedule *s, size_t i);

/* The op launches one kernel, by a call of its own: as those of a batch do in a run whose ops are kept apart. One with
 * a `when` may have launched nothing. */
static inline bool gy_samples_kernel(const gantry_schedule *s, const gy_op *op, bool apart)
{
    return gy_op_calls(op) && op->node != GY_NONE && (apart || (!op->batch && !op->joined)) &&
           s->graph->nodes.at[op->node].kernel != GY_NONE && !gy_op_is_conditional(s, op);
}

/* Kernels with their arguments, by element type and kind of device, each once. Zero-initialised is ready. */
typedef struct gy_cases {
    const char *kernel, *kind; /* of the op that was looked at last */
    gantry_dtype dtype;
    bool told; /* `arguments` has its arguments: gy_node_case */
    gy_text arguments, key;
    gy_names seen;
} gy_cases;
/* The number of what an op of a kernel runs, GY_NO_NAME without memory. */
uint32_t gy_cases_look(gy_cases *c, const gantry_schedule *s, const gy_op *op, bool *isnew);
/* The time that the machine has for just that; NULL: none. */
const gy_kernel_table *gy_cases_find(const gy_cases *c, const gantry_machine *m);
void gy_cases_free(gy_cases *c);

/* Sets us[op] of the ops of a schedule. `apart`: a device computed one op after the other, so one that seems to begin
 * before the end of the one ahead (the next kernel may be at its beginning by then) began at that end. false: out of
 * memory. */
bool gy_samples_count(const gantry_schedule *s, const gy_op_time *time, bool apart, double *us);

#endif
