/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/jacobi_grad.h"

#include "kernels/box.h"
#include "kernels/jacobi_grad_host.h"
#include "kernels/manifest.h"

GY_JACOBI_GRAD(element_f32, float, static inline)
GY_JACOBI_GRAD(element_f64, double, static inline)

/* Lines of y, each along the last axis. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    const gy_grid_boxes g = gy_grid_boxes_of(&l->arg[0], &l->arg[1]);
    int axes = (int)l->arg[0].rank;
    for (int64_t i = first; i < last; i++) {
        int64_t plane = i / g.count[1], row = i % g.count[1], from = g.skip + plane * g.plane + row * g.row;
        int64_t at[3] = { g.first[0] + plane, g.first[1] + row, g.first[2] };
        for (int64_t k = 0; k < g.count[2]; k++, at[2]++)
            if (l->arg[0].dtype == GANTRY_F32)
                ((float *)l->arg[1].data)[i * g.count[2] + k] =
                    element_f32((const float *)l->arg[0].data + from + k, &g, axes, at);
            else
                ((double *)l->arg[1].data)[i * g.count[2] + k] =
                    element_f64((const double *)l->arg[0].data + from + k, &g, axes, at);
    }
    return GANTRY_OK;
}

gantry_status gy_jacobi_grad_run(const gantry_launch *l)
{
    gy_extent y = gy_extent_of(&l->arg[1]);
    return gantry_launch_cut(l, y.count[1] * y.count[2], gy_grain_of_rows(y.count[3]), piece, NULL);
}
