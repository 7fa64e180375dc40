/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of own.json for the CPU. */
#include <gantry/kernel.h>

gantry_status mix(const gantry_launch *l);
gantry_status turn(const gantry_launch *l);
gantry_status reverse(const gantry_launch *l);
gantry_status clip(const gantry_launch *l);
gantry_status smooth(const gantry_launch *l);

gantry_status mix(const gantry_launch *l)
{
    const float *x = l->arg[1].data;
    float weight = (float)l->arg[0].number, *y = l->arg[2].data;
    for (int64_t i = 0; i < l->arg[3].integer; i++)
        y[i] = weight * x[i] + y[i] + (float)l->arg[4].integer;
    return GANTRY_OK;
}

gantry_status turn(const gantry_launch *l)
{
    const int32_t *x = l->arg[0].data;
    int32_t *y = l->arg[1].data;
    int64_t h = l->arg[2].integer, w = l->arg[3].integer;
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++)
            y[j * h + i] = x[i * w + j];
    return GANTRY_OK;
}

gantry_status reverse(const gantry_launch *l)
{
    double *x = l->arg[0].data, *scratch = l->scratch;
    int64_t n = l->arg[1].integer;
    for (int64_t i = 0; i < n; i++)
        scratch[i] = x[i];
    for (int64_t i = 0; i < n; i++)
        x[i] = scratch[n - 1 - i];
    return GANTRY_OK;
}

gantry_status clip(const gantry_launch *l)
{
    const float *x = l->arg[0].data;
    float *y = l->arg[1].data, limit = (float)l->arg[2].number;
    for (int64_t i = 0; i < l->arg[3].integer; i++)
        y[i] = x[i] < limit ? x[i] : limit;
    return GANTRY_OK;
}

gantry_status smooth(const gantry_launch *l)
{
    const float *x = l->arg[0].data;
    float *y = l->arg[1].data;
    int64_t first = l->arg[0].first_row, last = first + l->arg[0].rows; /* by itself: not from the numbers */
    for (int64_t row = l->arg[1].first_row; row < l->arg[1].first_row + l->arg[1].rows; row++)
        y[row - l->arg[1].first_row] =
            (row > first ? x[row - 1 - first] : 0) + x[row - first] + (row + 1 < last ? x[row + 1 - first] : 0);
    return GANTRY_OK;
}
