/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/fft.h"
#include "base/memory.h"
#include <pthread.h>

typedef struct kept {
    gy_fft_shape shape;
    void *plan;
} kept;

typedef struct handle {
    gy_module module;
    const gy_fft *table;
    pthread_mutex_t guard; /* of what is below */
    kept *plan;
    size_t plans;
} handle;

gantry_status gy_fft_open(void **opened, const gy_fft *plain)
{
    handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return GANTRY_E_NOMEM;
    pthread_mutex_init(&h->guard, NULL);
    h->table = gy_module_open(&h->module, "gantry-fftw", NULL) == GANTRY_OK ? h->module.table : plain;
    *opened = h;
    return GANTRY_OK;
}

void gy_fft_close(void *opened)
{
    handle *h = opened;
    if (!h)
        return;
    for (size_t i = 0; i < h->plans; i++)
        h->table->free(h->plan[i].plan);
    gy_free(h->plan);
    gy_module_close(&h->module);
    pthread_mutex_destroy(&h->guard);
    gy_free(h);
}

/* NULL: out of memory. */
static const void *plan_of(handle *h, const gy_fft_shape *shape, const void *x, void *y)
{
    for (size_t i = 0; i < h->plans; i++)
        if (gy_fft_same(&h->plan[i].shape, shape, true))
            return h->plan[i].plan;
    kept *grown = gy_realloc(h->plan, h->plans + 1, sizeof *grown);
    if (!grown)
        return NULL;
    h->plan = grown;
    void *made = h->table->plan(shape, x, y);
    if (made)
        h->plan[h->plans++] = (kept){ *shape, made };
    return made;
}

gantry_status gy_fft_run(void *opened, const gy_fft_shape *shape, const void *x, void *y, double scale)
{
    handle *h = opened;
    pthread_mutex_lock(&h->guard);
    const void *plan = plan_of(h, shape, x, y);
    pthread_mutex_unlock(&h->guard);
    return plan ? h->table->run(plan, x, y, scale) : GANTRY_E_NOMEM;
}
