/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A graph in which the same is done one after another, scheduled and run as a user's would be. How much longer a start
 * with more of it takes is what one of it takes, without what a start costs.
 */
#ifndef GY_RUN_MEASURE_CHAIN_H
#define GY_RUN_MEASURE_CHAIN_H

#include "base/text.h"
#include "machine/measured.h"
#include <gantry/run.h>

typedef struct gy_chain {
    gantry_graph *graph;
    gantry_schedule *schedule;
    gantry_run *run;
    uint32_t calls;
    const char *replay; /* with this word `replay` of its run has to begin */
} gy_chain;

/* Opens what `text` is, replayed as `replay` says; `timeout_us`: of its run, 0: none. Close also on failure. */
gantry_status gy_chain_open(gy_chain *c, const gy_text *text, const gantry_machine *machine, uint32_t calls,
                            const char *replay, double timeout_us, gantry_error *err);
void gy_chain_close(gy_chain *c);
/* One call more, by starts of both, of which some come first that are not counted; `us`, unless it is NULL: a start of
 * `few`. Fewer samples where the time is over. E_UNSUPPORTED: they were replayed in another way. */
gantry_status gy_chain_sample(const gy_chain *few, const gy_chain *many, int64_t until_ns, gy_figure *figure,
                              gy_figure *us, gantry_error *err);

#endif
