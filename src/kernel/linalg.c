/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/linalg.h"
#include "base/memory.h"
#include <stdbool.h>

gantry_status gy_linalg_open(void **handle, const gy_linalg *plain)
{
    gy_linalg_handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return GANTRY_E_NOMEM;
    bool found = gy_module_open(&h->module, "gantry-blas", NULL) == GANTRY_OK;
    h->table = found ? h->module.table : plain;
    *handle = h;
    return GANTRY_OK;
}

void gy_linalg_close(void *handle)
{
    gy_linalg_handle *h = handle;
    if (h)
        gy_module_close(&h->module);
    gy_free(h);
}
