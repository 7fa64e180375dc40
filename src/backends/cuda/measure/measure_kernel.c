/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the library on one device of each kind, over sizes. */
#include "backends/cuda/measure/measure.h"
#include "backends/cuda/measure/measure_share.h"
#include "backends/cuda/measure/recipe.h"

#include "base/clock.h"
#include "base/error.h"
#include <string.h>

#define FLOPS_A_BYTE 4.0 /* from there on a kernel counts its flops, which then say more than its bytes */
#define MOST_US      1e5

static const char *kind_of(const gy_measure *m, uint32_t gpu)
{
    return m->harness.machine->device[m->harness.gpu[gpu].device].kind;
}

static bool is_first_of_kind(const gy_measure *m, uint32_t gpu)
{
    for (uint32_t i = 0; i < gpu; i++)
        if (strcmp(kind_of(m, i), kind_of(m, gpu)) == 0)
            return false;
    return true;
}

/* A kernel on a GPU. */
typedef struct code {
    const gy_cuda_kernel *kernel;
    uint32_t gpu;
    void *handle;
} code;

/* Points of one size: `work` is the flops first, since what the table counts is known at the end. */
typedef struct table {
    gy_measured_points flops, bytes;
} table;

/* E_UNSUPPORTED: this size cannot be had. A kernel that reports a failure by its status word is passed over too. */
static gantry_status measure_size(gy_measure *m, gy_recipe_launch *l, int64_t until_ns, table *t, gantry_error *err)
{
    bool computes = l->flops > FLOPS_A_BYTE * l->bytes;
    gy_workload workload = { gy_recipe_queue, l, { l->gpu, 0 }, .most = l->most, .heats = computes };
    gy_measured_point point = { 0 };
    gy_twins twins;
    int64_t now = gy_now_ns(), half = until_ns > now ? now + (until_ns - now) / 2 : now;
    gy_twins_open(&twins, &m->harness, l);
    gantry_status status = gy_harness_sample_nodes(&m->harness, &workload, half, &point.time, err);
    status = status ? status : gy_twins_share(&twins, &m->harness, &point.time, until_ns, &point.share, err);
    gy_twins_free(&twins, &m->harness);
    if (status || gy_recipe_failed(&m->harness, l))
        return status ? status : GANTRY_E_UNSUPPORTED;
    point.work = l->flops;
    bool ok = gy_vec_push(&t->flops, point);
    point.work = l->bytes;
    return ok && gy_vec_push(&t->bytes, point) ? GANTRY_OK : gy_fail_nomem(err);
}

/* True if larger sizes would take too long. The time that there is does not end a table, which would end below where
 * kernels are as fast as they get: points have fewer samples then. */
static bool is_enough(const table *t, const gy_recipe_launch *next)
{
    if (t->bytes.count == 0)
        return false;
    const gy_measured_point *flops = gy_vec_last(&t->flops), *bytes = gy_vec_last(&t->bytes);
    double more = next->bytes / bytes->work;
    more = flops->work > 0 && next->flops / flops->work > more ? next->flops / flops->work : more;
    return bytes->time.us * more > MOST_US;
}

static gantry_status measure_sizes(gy_measure *m, gy_measured_kernel *k, const code *c, table *t, gantry_error *err)
{
    gy_budget budget = { gy_measure_next(m), 0 };
    gy_recipe_call call = { .name = k->name, .dtype = k->dtype };
    while (gy_recipe_size(k->name, budget.left))
        budget.left++;
    for (uint32_t i = 0; (call.size = gy_recipe_size(k->name, i)); i++) {
        gy_recipe_launch l;
        int64_t until_ns = gy_budget_next(&budget);
        gantry_status status = gy_recipe_open(&l, &m->harness, c->gpu, c->kernel, c->handle, &call, err);
        if (!status && is_enough(t, &l)) {
            gy_recipe_free(&l, &m->harness);
            break;
        }
        if (!status) {
            k->dtype = gy_node_dtype(l.graph, &l.graph->nodes.at[l.node]); /* as costs are looked up */
            k->by_flops = l.flops > FLOPS_A_BYTE * l.bytes;
            k->scratch = l.launch.scratch_bytes > k->scratch ? l.launch.scratch_bytes : k->scratch;
            status = measure_size(m, &l, until_ns, t, err);
            gy_recipe_free(&l, &m->harness);
        }
        if (status)
            return status == GANTRY_E_UNSUPPORTED ? GANTRY_OK : status;
    }
    return GANTRY_OK;
}

/* One point makes no curve. */
static gantry_status measure_kernel(gy_measure *m, gy_measured_kernel k, const code *c, gantry_error *err)
{
    table t = { .flops = { 0 } };
    gantry_dtype dtype = k.dtype;
    gantry_status status = measure_sizes(m, &k, c, &t, err);
    gy_recipe_launch like = { .kernel = c->kernel, .gpu = c->gpu, .launch.handle = c->handle };
    status = status || t.bytes.count < 2 ? status : gy_measure_batched(m, &k, &like, err);
    status = status || t.bytes.count < 2 ? status : gy_measure_strided(m, &k, &like, dtype, err);
    k.points = k.by_flops ? t.flops : t.bytes;
    bool kept = !status && k.points.count > 1 && gy_vec_push(&m->to->kernels, k);
    if (!status && k.points.count > 1 && !kept)
        status = gy_fail_nomem(err);
    if (!kept) {
        gy_vec_free(&k.batched);
        gy_vec_free(&k.strided);
    }
    if (k.by_flops || !kept)
        gy_vec_free(&t.bytes);
    if (!k.by_flops || !kept)
        gy_vec_free(&t.flops);
    return status;
}

/* A failure that a kernel reports of itself, such as that its library has no memory for a handle, is none of the GPU,
 * which goes on: it is left out. A context that was lost shows here. */
static gantry_status leave_out(gy_measure *m, const gy_cuda_kernel *kernel, const gantry_error *why, gantry_error *err)
{
    gantry_status status = gy_harness_drain(&m->harness, err);
    if (!status)
        gy_text_printf(&m->to->notes, "not measured: kernel \"%s\": %s\n", kernel->name, why->text);
    return status;
}

static bool is_its_own(const gantry_error *why)
{
    return why->status == GANTRY_E_DEVICE && why->native == 0;
}

static bool is_here(const gy_measure *m, const gy_cuda_kernel *kernel)
{
    return !kernel->usable || kernel->usable(kernel, &m->harness.d, NULL) == GANTRY_OK;
}

/* A kernel whose library is not here is passed over. */
static gantry_status measure_dtypes(gy_measure *m, const gy_cuda_kernel *kernel, uint32_t gpu, gantry_error *err)
{
    const gantry_kernel *manifest = gantry_kernel_find(kernel->name);
    gantry_dtype dtype;
    code c = { kernel, gpu, NULL };
    gantry_error why = { 0 };
    if (!manifest || !gy_recipe_dtype(manifest, 0, &dtype) || !is_here(m, kernel))
        return GANTRY_OK;
    gantry_status status = gy_recipe_load(&c.handle, &m->harness, gpu, kernel, &why);
    if (status)
        return leave_out(m, kernel, &why, err);
    const gy_kernel_form *form = gy_kernel_form_of(kernel->name);
    for (uint32_t d = 0; !status && gy_recipe_dtype(manifest, d, &dtype); d++) {
        gy_measured_kernel k = { .name = manifest->name, .kind = kind_of(m, gpu), .dtype = dtype };
        status = measure_kernel(m, k, &c, &why);
        k.name = form ? form->name : NULL;
        status = status || !form ? status : measure_kernel(m, k, &c, &why);
    }
    gy_recipe_unload(c.handle, &m->harness, gpu, kernel);
    if (status && is_its_own(&why))
        return leave_out(m, kernel, &why, err);
    if (status && err)
        *err = why;
    return status;
}

static gantry_status measure_gpu(gy_measure *m, uint32_t gpu, gantry_error *err)
{
    size_t kernels = 0;
    const gy_cuda_kernel *const *kernel = gy_cuda_kernels(&kernels);
    for (size_t i = 0; i < kernels; i++)
        GY_TRY(measure_dtypes(m, kernel[i], gpu, err));
    return GANTRY_OK;
}

static uint32_t count(const gy_measure *m)
{
    size_t kernels = 0;
    const gy_cuda_kernel *const *kernel = gy_cuda_kernels(&kernels);
    uint32_t found = 0, kinds = 0;
    for (size_t i = 0; i < kernels; i++) {
        const gantry_kernel *manifest = gantry_kernel_find(kernel[i]->name);
        gantry_dtype dtype;
        for (uint32_t d = 0; manifest && gy_recipe_dtype(manifest, d, &dtype); d++)
            found += gy_kernel_form_of(kernel[i]->name) ? 2 : 1;
    }
    for (uint32_t i = 0; i < m->harness.gpus; i++)
        kinds += is_first_of_kind(m, i);
    return found * kinds;
}

static gantry_status measure(gy_measure *m, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < m->harness.gpus && !status; i++)
        status = is_first_of_kind(m, i) ? measure_gpu(m, i, err) : GANTRY_OK;
    return status;
}

const gy_figures gy_figures_kernels = { "kernels", 4, count, measure };
