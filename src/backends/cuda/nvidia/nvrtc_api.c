/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/nvrtc_api.h"

#include "base/error.h"
#include "base/memory.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const char *const gy_nvrtc_names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL };

/* Headers of the toolkit are beside it. */
static void find_file(gy_nvrtc *n)
{
    void *function = NULL;
    Dl_info self;
    memcpy(&function, &n->nvrtcVersion, sizeof function);
    if (dladdr(function, &self) && self.dli_fname && strlen(self.dli_fname) < sizeof n->file)
        snprintf(n->file, sizeof n->file, "%s", self.dli_fname);
}

static gantry_status ask_architectures(gy_nvrtc *n, gantry_error *err)
{
    int count = 0, code = n->nvrtcGetNumSupportedArchs(&count);
    int *known = gy_calloc(code == 0 && count > 0 ? (size_t)count : 1, sizeof *known);
    if (!known)
        return gy_fail_nomem(err);
    code = code ? code : n->nvrtcGetSupportedArchs(known);
    n->architectures = count < GY_NVRTC_ARCHITECTURES ? count : GY_NVRTC_ARCHITECTURES;
    for (int i = 0; i < n->architectures && code == 0; i++) /* the last ones, as they are the newest */
        n->architecture[i] = known[count - n->architectures + i];
    gy_free(known);
    if (code == 0)
        return GANTRY_OK;
    const char *why = n->nvrtcGetErrorString(code);
    gy_fail(err, GANTRY_E_DEVICE, NULL, "NVRTC %d.%d does not tell what it compiles for: %s", n->major, n->minor,
            why ? why : "no reason given");
    if (err)
        err->native = code;
    return GANTRY_E_DEVICE;
}

gantry_status gy_nvrtc_open(gy_nvrtc *nvrtc, gantry_error *err)
{
    gy_nvrtc n = { 0 };
    gantry_status status = gy_library_open(&n.lib, gy_nvrtc_names, err);
#define GY_X(result, name, parameters) status = status ? status : gy_library_find(&n.lib, #name, &n.name, err);
    GY_NVRTC_FUNCTIONS(GY_X)
#undef GY_X
    if (status)
        return status;
    if (n.nvrtcVersion(&n.major, &n.minor) != 0)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s does not tell its version", n.lib.name);
    GY_TRY(ask_architectures(&n, err));
    find_file(&n);
    *nvrtc = n;
    return GANTRY_OK;
}
