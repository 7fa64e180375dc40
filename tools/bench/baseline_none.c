/* SPDX-License-Identifier: Apache-2.0 */
/* In place of baseline.c where cuda.h was not there. */
#include "baseline.h"

#include <stdio.h>

gantry_status baseline_open(baseline **made, const char *what, const gantry_machine *machine,
                            const baseline_options *wanted, gantry_error *err)
{
    (void)machine;
    (void)wanted;
    *made = NULL;
    *err = (gantry_error){ .status = GANTRY_E_UNSUPPORTED, .device = -1 };
    snprintf(err->text, sizeof err->text,
             "\"%s\" by hand needs a gantry command that was built where cuda.h is, and this one was not", what);
    return err->status;
}

gantry_status baseline_time(baseline *b, double *us, double *bytes, gantry_error *err)
{
    (void)b;
    (void)us;
    (void)bytes;
    *err = (gantry_error){ .status = GANTRY_E_UNSUPPORTED, .device = -1 };
    return err->status;
}

void baseline_close(baseline *b)
{
    (void)b;
}
