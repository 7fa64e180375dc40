/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/choice.h"

#include "base/error.h"
#include "base/memory.h"

/* The way that was taken, and what it made. */
typedef struct handle {
    const gy_cuda_kernel *way;
    void *of;
} handle;

static gantry_status choose(const gy_cuda_kernel **way, const gy_cuda_kernel *kernel, const gy_driver *driver,
                            gantry_error *err)
{
    const gy_cuda_choice *choice = kernel->data;
    gantry_status status = GANTRY_E_UNSUPPORTED;
    for (int i = 0; choice->way[i]; i++) {
        const gy_cuda_kernel *at = choice->way[i];
        gantry_status found = at->usable ? at->usable(at, driver, i == 0 ? err : NULL) : GANTRY_OK;
        if (found == GANTRY_OK) {
            *way = at;
            return GANTRY_OK;
        }
        status = i == 0 ? found : status;
    }
    return status;
}

gantry_status gy_cuda_choice_usable(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    const gy_cuda_kernel *way;
    return choose(&way, kernel, driver, err);
}

gantry_status gy_cuda_choice_open(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                  gantry_error *err)
{
    handle *h = gy_calloc(1, sizeof *h);
    gantry_status status = h ? choose(&h->way, kernel, driver, err) : gy_fail_nomem(err);
    status = status || !h->way->open ? status : h->way->open(&h->of, h->way, driver, err);
    if (status) {
        gy_free(h);
        return status;
    }
    *opened = h;
    return GANTRY_OK;
}

void gy_cuda_choice_close(void *opened)
{
    handle *h = opened;
    if (h->way->close)
        h->way->close(h->of);
    gy_free(h);
}

/* The launch as the way sees it. */
static gantry_launch inner(const gantry_launch *l)
{
    const handle *h = l->handle;
    gantry_launch made = *l;
    made.handle = h->of;
    return made;
}

gantry_status gy_cuda_choice_launch(const gantry_launch *l)
{
    const handle *h = l->handle;
    gantry_launch made = inner(l);
    return h->way->launch(&made);
}

gantry_status gy_cuda_choice_launch_batch(const gantry_launch *first, const gy_cuda_batch *batch)
{
    const handle *h = first->handle;
    gantry_launch made = inner(first);
    gantry_status status = h->way->launch_batch ? h->way->launch_batch(&made, batch) : GANTRY_OK;
    for (uint32_t i = 0; i < batch->count && !h->way->launch_batch && !status; i++) {
        made = inner(batch->launch[i]);
        status = h->way->launch(&made);
    }
    return status;
}

bool gy_cuda_choice_batches(const void *opened)
{
    const handle *h = opened;
    return h->way->launch_batch != NULL;
}

bool gy_cuda_choice_early(void *opened, gy_early which)
{
    const handle *h = opened;
    return h->way->early && h->way->early(h->of, which);
}

bool gy_cuda_choice_loads(const void *opened)
{
    const handle *h = opened;
    return h->way->loads && h->way->loads(h->of);
}

bool gy_cuda_choice_keeps_word(const void *opened)
{
    const handle *h = opened;
    return h->way->keeps_word && h->way->keeps_word(h->of);
}

gantry_status gy_cuda_choice_prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    const handle *h = l->handle;
    gantry_launch made = inner(l);
    return h->way->prepare ? h->way->prepare(&made, scratch, err) : GANTRY_OK;
}

const char *gy_cuda_choice_why(const void *opened)
{
    const handle *h = opened;
    return h->way->why ? h->way->why(h->of) : NULL;
}
