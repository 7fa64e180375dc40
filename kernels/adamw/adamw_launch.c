/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/adamw/step.h"

/* The function is that of the gradient's type, which says what the weights are. */
static gantry_status launch_adamw(const gantry_launch *l)
{
    gy_adam a = gy_adam_of(l);
    const void *g = l->arg[GY_ADAM_G].data;
    void *w = l->arg[GY_ADAM_W].data, *m = l->arg[GY_ADAM_M].data, *v = l->arg[GY_ADAM_V].data;
    int64_t n = gy_arg_size(&l->arg[GY_ADAM_W]);
    return gy_cuda_image_launch(l, 0, l->arg[GY_ADAM_G].dtype, gy_grid_for(n), (void *[]){ &a, &w, &g, &m, &v, &n });
}

GY_CUDA_KERNEL(adamw, launch_adamw, GY_FLOAT_DTYPES, "")
