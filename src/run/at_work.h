/* SPDX-License-Identifier: Apache-2.0 */
/** Which op a thread carries out while a function of somebody else has it, for who has to tell of a crash
 * (gantry_run_at_work). */
#ifndef GY_RUN_AT_WORK_H
#define GY_RUN_AT_WORK_H

#include "run/backend.h"

/* The thread goes into, and comes back from, the function of an op. They do not nest. */
void gy_at_work_begin(const gy_job *job, uint32_t op);
void gy_at_work_end(void);
/* The op that this thread is at, which others help it with; *job NULL: there is none. */
void gy_at_work_now(const gy_job **job, uint32_t *op);

#endif
