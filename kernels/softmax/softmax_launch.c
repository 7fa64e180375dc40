/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows_launch.h"

enum { OF_ATTENTION = 1 }; /* launch_attention_products.c launches it */

static gantry_status launch_softmax(const gantry_launch *l)
{
    double scale = l->arg[0].number;
    int64_t causal = l->arg[1].integer, first = l->arg[2].integer;
    const void *x = l->arg[3].data;
    void *y = l->arg[4].data;
    int64_t width = gy_row_width(&l->arg[3]), rows = gy_row_count(&l->arg[3], width);
    int form = gy_row_form(&l->arg[3], width);
    return gy_cuda_image_launch(l, form ? OF_ATTENTION + form : 0, l->arg[3].dtype, gy_rows_grid(rows, width),
                                (void *[]){ &scale, &causal, &first, &x, &y, &rows, &width });
}

GY_CUDA_KERNEL(softmax, launch_softmax, GY_FLOAT_DTYPES, "", [OF_ATTENTION] = "_of", GY_ROW_FORMS)
