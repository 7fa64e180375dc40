/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong on purpose: declared to write all of y, it writes half. */
#include <gantry/gantry.h>

gantry_status half(const gantry_launch *l)
{
    const float *x = l->arg[0].data;
    float *y = l->arg[1].data;
    for (int64_t i = 0; i < l->arg[1].rows / 2; i++)
        y[i] = 2 * x[i];
    return GANTRY_OK;
}
