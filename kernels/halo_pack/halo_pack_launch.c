/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/box.h"
#include "kernels/halo.h"

/* false: an axis is too long for the kernel's numbers. */
static bool describe_piece(gy_halo_boxes *pieces, int i, const gy_box *box)
{
    for (int k = 0; k < GY_BOX_AXES; k++) {
        if (box->shape[k] > INT32_MAX)
            return false;
        pieces->shape[k] = box->shape[k];
        pieces->box[i].first[k] = (int32_t)box->first[k];
        pieces->box[i].count[k] = (int32_t)box->count[k];
    }
    return true;
}

static gantry_status launch_halo_pack(const gantry_launch *l)
{
    enum { PIECES = 9, BLOCKS = 64 }; /* the first of the further regions; of a piece, at most */
    const gantry_arg *x = gantry_launch_arg(l, 0);
    gy_box box[GY_BOX_WAYS];
    gy_halo_boxes pieces = { { 0 }, { { NULL, { 0 }, { 0 } } } };
    int64_t most = 0;
    int count = gy_halo_given(box, l);
    for (int i = 0; i < count; i++) {
        int64_t elements = gy_box_elements(&box[i]);
        pieces.box[i].to = gantry_launch_arg(l, PIECES + i)->data;
        most = elements > most ? elements : most;
        if (!describe_piece(&pieces, i, &box[i]))
            return GANTRY_E_UNSUPPORTED;
    }
    int64_t blocks = gy_tiles(most, GY_IMAGE_THREADS);
    gy_grid grid = { (unsigned)(blocks < BLOCKS ? blocks : BLOCKS), (unsigned)count, 1, GY_IMAGE_THREADS, 1, 1 };
    const void *from = x->data;
    return gy_cuda_image_launch(l, 0, gy_dtype_of_word(gantry_dtype_size(x->dtype)), grid,
                                (void *[]){ &from, &pieces });
}

GY_CUDA_KERNEL(halo_pack, launch_halo_pack, GY_WORD_DTYPES, "")
