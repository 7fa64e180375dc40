/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_RUN_MEASURE_WORKERS_H
#define GY_RUN_MEASURE_WORKERS_H

#include "machine/measured.h"

/* Adds to what->workers, for all GPUs, if they are of one kind, at once. `machine`, `names`, `seconds`: as for
 * collectives. Where it cannot be measured, or GPUs cannot carry starts out by themselves, there is a note. E_NOMEM. */
gantry_status gy_measure_workers(gy_measured *what, const gantry_machine *machine, const gantry_machine *names,
                                 double seconds, gantry_error *err);

/* The times of nodes with `when`, on the first GPU of a machine that has all that was measured before. There is
 * a note where they cannot be measured. */
gantry_status gy_measure_when(gy_measured *what, const gantry_machine *machine, double seconds, gantry_error *err);

#endif
