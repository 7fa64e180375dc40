/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/measured.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *sorted, uint32_t count)
{
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

gy_figure gy_figure_of(double *us, uint32_t samples)
{
    if (samples == 0)
        return (gy_figure){ 0 };
    qsort(us, samples, sizeof *us, by_size);
    double middle = median(us, samples);
    for (uint32_t i = 0; i < samples; i++)
        us[i] = fabs(us[i] - middle);
    qsort(us, samples, sizeof *us, by_size);
    return (gy_figure){ middle, median(us, samples), samples };
}

void gy_measured_free(gy_measured *m)
{
    for (size_t i = 0; i < m->copies.count; i++)
        gy_vec_free(&m->copies.at[i].points);
    for (size_t i = 0; i < m->kernels.count; i++) {
        gy_vec_free(&m->kernels.at[i].points);
        gy_vec_free(&m->kernels.at[i].batched);
        gy_vec_free(&m->kernels.at[i].strided);
    }
    for (size_t i = 0; i < m->collectives.count; i++)
        gy_vec_free(&m->collectives.at[i].points);
    for (size_t i = 0; i < m->workers.count; i++)
        gy_vec_free(&m->workers.at[i].pairs);
    gy_vec_free(&m->workers);
    gy_vec_free(&m->formulas);
    gy_vec_free(&m->copies);
    gy_vec_free(&m->traffic);
    gy_vec_free(&m->kernels);
    gy_vec_free(&m->collectives);
    gy_vec_free(&m->devices);
    gy_text_free(&m->fingerprint);
    gy_text_free(&m->notes);
    *m = (gy_measured){ 0 };
}
