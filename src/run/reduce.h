/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise reductions in a fixed order: ((from[0] (+) from[1]) (+) from[2]) ..., and collectives by them. */
#ifndef GY_RUN_REDUCE_H
#define GY_RUN_REDUCE_H

#include "schedule/exchange/exchange.h"

/**
 * `op` is SUM, MIN, MAX or PROD. Integers wrap. f16 and bf16 are combined in f32 and rounded once. MIN and MAX of a NaN
 * and anything is NaN. `to` may be one of `from`, element for element.
 */
void gy_reduce(gantry_dtype dtype, gantry_access op, void *to, const void *const *from, size_t sources, uint64_t count);
/* Sets `count` elements to what leaves every number unchanged (kernel/identity.h). */
void gy_fill_identity(void *to, gantry_dtype dtype, gantry_access op, uint64_t count);

/* A collective op that the CPU carries out. */
typedef struct gy_host_collective {
    const gy_exchange *exchange;
    char *stage;       /* of a staged one: room for all pieces; else NULL */
    const void **from; /* room for the sources of a piece */
} gy_host_collective;

gantry_status gy_host_collective_make(gy_host_collective **made, gy_arena *arena, const gantry_schedule *s,
                                      const gantry_graph *graph, uint32_t op, gantry_error *err);
/* `at`: where the uses of the op are. */
void gy_host_collective_execute(const gy_host_collective *c, void *const *at);

#endif
