/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adjoint of a step of jacobi2d or jacobi3d. The step gives a mean of neighbours to what lies within the grid, and
 * keeps the border; so an element gets a share of the adjoint of each neighbour within the grid, and one of the border
 * all of its own besides.
 */
#ifndef GY_KERNELS_JACOBI_GRAD_H
#define GY_KERNELS_JACOBI_GRAD_H

#include "kernels/grid.h"

/* `NAME`: the element at `at` of the whole grid, whose adjoint of the step's result is *v; of `axes` axes, the last
 * ones. Sums are in the order of the step. */
#define GY_JACOBI_GRAD(NAME, TYPE, QUALIFIERS)                                                                         \
    QUALIFIERS TYPE NAME(const TYPE *v, const gy_grid_boxes *g, int axes, const int64_t *at)                           \
    {                                                                                                                  \
        const int64_t step[3] = { g->plane, g->row, 1 };                                                               \
        TYPE pair[3] = { (TYPE)0, (TYPE)0, (TYPE)0 };                                                                  \
        int within = 0;                                                                                                \
        for (int k = 3 - axes; k < 3; k++)                                                                             \
            within += at[k] > 0 && at[k] < g->whole[k] - 1;                                                            \
        for (int k = 3 - axes; k < 3; k++) {                                                                           \
            const int others = within - (at[k] > 0 && at[k] < g->whole[k] - 1);                                        \
            const TYPE before = others == axes - 1 && at[k] > 1 ? v[-step[k]] : (TYPE)0;                               \
            const TYPE behind = others == axes - 1 && at[k] < g->whole[k] - 2 ? v[step[k]] : (TYPE)0;                  \
            pair[k] = before + behind;                                                                                 \
        }                                                                                                              \
        const TYPE mean = axes == 2 ? (TYPE)0.25 * (pair[1] + pair[2]) : ((pair[0] + pair[1]) + pair[2]) / (TYPE)6;    \
        return within == axes ? mean : v[0] + mean;                                                                    \
    }

#endif
