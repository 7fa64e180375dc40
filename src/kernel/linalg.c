/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/linalg.h"
#include "base/memory.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An address inside this library, for dladdr to find its file. */
static const char anchor;

static void *open_in(const char *folder, size_t length, const char *below)
{
    char path[4096];
    int need = snprintf(path, sizeof path, "%.*s%s/gantry-blas.so", (int)length, folder, below);
    return need > 0 && (size_t)need < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void *open_module(void)
{
    const char *folder = getenv("GANTRY_MODULES");
    Dl_info self;
    if (folder)
        return open_in(folder, strlen(folder), "");
    if (!dladdr(&anchor, &self) || !self.dli_fname)
        return NULL;
    const char *slash = strrchr(self.dli_fname, '/');
    size_t length = slash ? (size_t)(slash - self.dli_fname) : 0;
    void *module = open_in(slash ? self.dli_fname : ".", slash ? length : 1, "");
    return module ? module : open_in(slash ? self.dli_fname : ".", slash ? length : 1, "/gantry");
}

/* dlsym gives an object pointer; C has no conversion to a function pointer, POSIX promises that the bits are one. */
static const gy_linalg *table_of(void *module)
{
    void *symbol = dlsym(module, "gantry_blas_module");
    gy_blas_module ask;
    memcpy(&ask, &symbol, sizeof ask);
    return symbol ? ask(GY_LINALG_VERSION) : NULL;
}

gantry_status gy_linalg_open(void **handle, const gy_linalg *plain)
{
    gy_linalg_handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return GANTRY_E_NOMEM;
    h->module = open_module();
    if (h->module)
        h->table = table_of(h->module);
    if (!h->table)
        h->table = plain;
    *handle = h;
    return GANTRY_OK;
}

void gy_linalg_close(void *handle)
{
    gy_linalg_handle *h = handle;
    if (h && h->module)
        dlclose(h->module);
    gy_free(h);
}
