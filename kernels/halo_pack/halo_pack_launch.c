/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/box.h"
#include "kernels/halo.h"

static gantry_status launch_halo_pack(const gantry_launch *l)
{
    enum { PIECES = 9, BLOCKS = 64 }; /* the first of the further regions; of a piece, at most */
    static const gantry_dtype by_size[] = { [1] = GANTRY_U8, [2] = GANTRY_F16, [4] = GANTRY_F32, [8] = GANTRY_F64 };
    const gantry_arg *x = gantry_launch_arg(l, 0);
    gy_box box[GY_BOX_WAYS];
    gy_halo_boxes pieces = { { 0 }, { { NULL, { 0 }, { 0 } } } };
    int64_t most = 0;
    int count = gy_halo_given(box, l);
    for (int i = 0; i < count; i++) {
        pieces.box[i].to = gantry_launch_arg(l, PIECES + i)->data;
        most = gy_box_elements(&box[i]) > most ? gy_box_elements(&box[i]) : most;
        for (int k = 0; k < GY_BOX_AXES; k++) {
            pieces.shape[k] = box[i].shape[k];
            pieces.box[i].first[k] = (int32_t)box[i].first[k];
            pieces.box[i].count[k] = (int32_t)box[i].count[k];
            if (box[i].shape[k] > INT32_MAX)
                return GANTRY_E_UNSUPPORTED;
        }
    }
    int64_t blocks = gy_tiles(most, GY_IMAGE_THREADS);
    gy_grid grid = { (unsigned)(blocks < BLOCKS ? blocks : BLOCKS), (unsigned)count, 1, GY_IMAGE_THREADS, 1, 1 };
    const void *from = x->data;
    return gy_cuda_image_launch(l, 0, by_size[gantry_dtype_size(x->dtype)], grid, (void *[]){ &from, &pieces });
}

GY_CUDA_KERNEL(halo_pack, launch_halo_pack,
               GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F16) | GANTRY_DTYPE_BIT(GANTRY_F32) |
                   GANTRY_DTYPE_BIT(GANTRY_F64),
               "")
