/* SPDX-License-Identifier: Apache-2.0 */
/* A run is used by one thread at a time, in the process that made it. Programs that forget get an error, not a race. */
#include "run/run.h"

#include "base/error.h"
#include <unistd.h>

gantry_status gy_run_enter(const gantry_run *run, const char *function, gantry_error *err)
{
    GY_TRY(gy_need(run, "run", function, err));
    if (run->process != getpid()) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "%s was called in process %ld with a run of process %ld: threads and GPUs of a run do not come "
                       "along when a process forks; make a run in the process that uses it",
                       function, (long)getpid(), (long)run->process);
    }
    /* Nothing else changes in a run that is const to its user. */
    gantry_run *used = (gantry_run *)(uintptr_t)run;
    if (__atomic_exchange_n(&used->in_use, true, __ATOMIC_ACQUIRE)) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "%s was called while another thread was in a function with the same run; use a run from one "
                       "thread at a time, or guard it with a mutex",
                       function);
    }
    return GANTRY_OK;
}

gantry_status gy_run_leave(const gantry_run *run, gantry_status status)
{
    gantry_run *used = (gantry_run *)(uintptr_t)run;
    __atomic_store_n(&used->in_use, false, __ATOMIC_RELEASE);
    return status;
}

/* A signal handler may interrupt any function: one store, and nothing that could be locked. */
_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a flag that a signal handler sets has no lock");

void gantry_run_cancel(gantry_run *run)
{
    if (run)
        atomic_store(&run->canceled, true);
}
