/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a kernel that moves pieces, by how many bytes lie together: of about as many bytes for each. */
#include "backends/cuda/measure/measure.h"
#include "backends/cuda/measure/recipe.h"

#include "base/error.h"

#define ALIKE 0.05 /* of all bytes, that those of a figure may be off */

enum { MOST = 1 << 20, LEAST = 1 << 10, LESS = 4 }; /* elements: f64 of pieces of one fill the test bed */

static gantry_status time_one(gy_measure *m, const gy_recipe_launch *l, gy_figure *time, gantry_error *err)
{
    gy_workload alone = { .queue = gy_recipe_queue, .what = l, .first_lane = { l->gpu, 0 } };
    GY_TRY(gy_harness_sample_nodes(&m->harness, &alone, 0, time, err));
    return gy_recipe_failed(&m->harness, l) ? GANTRY_E_UNSUPPORTED : GANTRY_OK;
}

/* The most elements that there is room for in the shortest pieces, which take the most memory for what they move. */
static gantry_status find_size(gy_measure *m, const gy_recipe_launch *like, gantry_dtype dtype, int64_t *size,
                               gantry_error *err)
{
    const gantry_kernel *manifest = gantry_kernel_find(like->kernel->name);
    gantry_status status = GANTRY_E_UNSUPPORTED;
    for (*size = MOST; *size >= LEAST; *size /= LESS) {
        gy_recipe_launch l;
        gy_recipe_call call = { manifest->name, dtype, *size, gy_recipe_contiguous(manifest, dtype, 0) };
        status = gy_recipe_open(&l, &m->harness, like->gpu, like->kernel, like->launch.handle, &call, err);
        if (!status)
            gy_recipe_free(&l, &m->harness);
        if (status != GANTRY_E_UNSUPPORTED)
            return status;
    }
    return status;
}

static gantry_status measure_pieces(gy_measure *m, gy_measured_kernel *k, const gy_recipe_launch *like,
                                    gantry_dtype dtype, int64_t size, gantry_error *err)
{
    const gantry_kernel *manifest = gantry_kernel_find(like->kernel->name);
    int64_t contiguous;
    for (uint32_t i = 0; (contiguous = gy_recipe_contiguous(manifest, dtype, i)); i++) {
        gy_recipe_launch l;
        gy_recipe_call call = { manifest->name, dtype, size, contiguous };
        GY_TRY(gy_recipe_open(&l, &m->harness, like->gpu, like->kernel, like->launch.handle, &call, err));
        gy_measured_point point = { .work = l.graph->nodes.at[l.node].contiguous };
        double bytes = l.bytes;
        gantry_status status = time_one(m, &l, &point.time, err);
        gy_recipe_free(&l, &m->harness);
        GY_TRY(status);
        k->strided_work = k->strided.count ? k->strided_work : bytes;
        bool alike = bytes > (1 - ALIKE) * k->strided_work && bytes < (1 + ALIKE) * k->strided_work;
        if (alike && !gy_vec_push(&k->strided, point))
            return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

gantry_status gy_measure_strided(gy_measure *m, gy_measured_kernel *k, const gy_recipe_launch *like, gantry_dtype dtype,
                                 gantry_error *err)
{
    int64_t size = 0;
    if (!gy_recipe_contiguous(gantry_kernel_find(like->kernel->name), dtype, 0))
        return GANTRY_OK;
    gantry_status status = find_size(m, like, dtype, &size, err);
    status = status ? status : measure_pieces(m, k, like, dtype, size, err);
    return status == GANTRY_E_UNSUPPORTED ? GANTRY_OK : status;
}
