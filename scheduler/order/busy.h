/* SPDX-License-Identifier: Apache-2.0 */
/* When ops of the draft can begin, as the order expects it: devices compute one op at a time, uploads of inputs wait
 * for their link, and other copies for nobody. */
#ifndef GY_SCHEDULER_ORDER_BUSY_H
#define GY_SCHEDULER_ORDER_BUSY_H

#include "scheduler/plan/plan.h"

/* When devices and links are free. */
typedef struct gy_busy {
    gy_ticks *device; /* computing */
    gy_ticks *upload; /* per device: its own link from host memory */
    gy_ticks *link;   /* per resource: what host memory's links to several devices share */
    uint32_t *shared; /* per memory: that resource, or GY_MACHINE_NONE */
} gy_busy;

gantry_status gy_busy_make(gy_busy *b, const gantry_machine *m, gantry_error *err); /* free it in any case */
void gy_busy_free(gy_busy *b);
/* When an op that is ready begins; whatever it takes is busy from then on. */
gy_ticks gy_busy_begin(gy_busy *b, const gy_plan *p, const gy_draft_op *d, gy_ticks ready);

#endif
