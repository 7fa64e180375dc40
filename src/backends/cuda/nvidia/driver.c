/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/driver.h"

#include "backends/cuda/nvidia/library.h"
#include "base/error.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x) /* of the name that cuda.h makes of x, such as cuMemAlloc_v2 */

static const char library[] = "libcuda.so.1";

static gantry_status find(gy_driver *driver, const char *name, void *to, gantry_error *err)
{
    const gy_library from = { driver->handle, library };
    if (gy_library_find(&from, name, to, NULL)) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL,
                       "%s has no function %s: the driver is too old; CUDA 11.4 or later is "
                       "needed",
                       library, name);
    }
    return GANTRY_OK;
}

static void find_conditions(gy_driver *driver)
{
#ifdef GY_CUDA_CONDITIONS
    driver->conditions = !find(driver, "cuGraphConditionalHandleCreate", &driver->condition, NULL) &&
                         !find(driver, "cuGraphAddNode_v2", &driver->add_node, NULL) &&
                         !find(driver, "cuGraphNodeSetParams", &driver->set_node, NULL) &&
                         !find(driver, "cuStreamGetCaptureInfo_v3", &driver->capture_info, NULL) &&
                         !find(driver, "cuStreamUpdateCaptureDependencies_v2", &driver->capture_behind, NULL) &&
                         !find(driver, "cuStreamBeginCaptureToGraph", &driver->capture_into, NULL);
#else
    driver->conditions = false;
#endif
}

static void find_linker(gy_driver *driver)
{
    if (find(driver, TEXT(cuLinkCreate), &driver->link_create, NULL) ||
        find(driver, TEXT(cuLinkAddData), &driver->link_add, NULL) ||
        find(driver, TEXT(cuLinkComplete), &driver->link_complete, NULL) ||
        find(driver, TEXT(cuLinkDestroy), &driver->link_destroy, NULL))
        driver->link_create = NULL;
}

static gantry_status find_all(gy_driver *driver, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
#define GY_X(name) status = status ? status : find(driver, TEXT(name), &driver->name, err);
    GY_CUDA_FUNCTIONS(GY_X)
#undef GY_X
    if (status == GANTRY_OK && find(driver, "cuFuncGetParamInfo", &driver->param_info, NULL))
        driver->param_info = NULL;
    if (status == GANTRY_OK && find(driver, TEXT(cuStreamWaitValue64), &driver->wait_value, NULL))
        driver->wait_value = NULL;
    if (status == GANTRY_OK && find(driver, TEXT(cuStreamWriteValue64), &driver->write_value, NULL))
        driver->write_value = NULL;
    if (status == GANTRY_OK && find(driver, "cuLaunchKernelEx", &driver->launch_ex, NULL))
        driver->launch_ex = NULL;
    if (status == GANTRY_OK) {
        find_conditions(driver);
        find_linker(driver);
    }
    return status ? status : find(driver, "cuEventElapsedTime", &driver->event_elapsed, err);
}

gantry_status gy_driver_open(gy_driver *driver, gantry_error *err)
{
    /* It stays loaded: unloading it and starting it again would take most of a second each time. */
    gy_driver d = { .handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
    if (!d.handle) {
        const char *why = dlerror();
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "no NVIDIA driver: %s", why ? why : library);
    }
    gantry_status status = find_all(&d, err);
    if (status) {
        gy_driver_close(&d);
        return status;
    }
    *driver = d;
    return GANTRY_OK;
}

void gy_driver_close(gy_driver *driver)
{
    if (driver->handle)
        dlclose(driver->handle);
    *driver = (gy_driver){ 0 };
}

static gantry_status count_devices(const gy_driver *d, int *devices, gantry_error *err)
{
    int count = 0;
    CUresult code = d->cuInit(0);
    if (code == CUDA_SUCCESS)
        code = d->cuDeviceGetCount(&count);
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_NO_DEVICE)
        return gy_driver_fail(d, code, "the NVIDIA driver cannot be initialised", err);
    if (count < 1)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "the NVIDIA driver sees no device");
    *devices = count;
    return GANTRY_OK;
}

gantry_status gy_driver_start(gy_driver *driver, int *devices, gantry_error *err)
{
    gy_driver d;
    gantry_status status = gy_driver_open(&d, err);
    if (status)
        return status;
    if ((status = count_devices(&d, devices, err))) {
        gy_driver_close(&d);
        return status;
    }
    *driver = d;
    return GANTRY_OK;
}

gantry_status gy_driver_capability(const gy_driver *d, CUdevice device, int *capability, gantry_error *err)
{
    int major = 0, minor = 0;
    CUresult code = d->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    code = code ? code : d->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    *capability = 10 * major + minor;
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_driver_fail(d, code, "asking what the device can do", err);
}

bool gy_driver_splits_floats(const gy_driver *d)
{
    enum { LEAST = 80 };
    CUdevice device;
    int capability;
    return d->cuCtxGetDevice(&device) == CUDA_SUCCESS &&
           gy_driver_capability(d, device, &capability, NULL) == GANTRY_OK && capability >= LEAST;
}

bool gy_driver_switch(const char *name, const char *word)
{
    const char *wanted = getenv(name);
    return wanted && strcmp(wanted, word) == 0;
}

bool gy_driver_blocks(void)
{
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    return blocking && strtol(blocking, NULL, 10) != 0;
}

bool gy_driver_has_part(void)
{
    const char *part = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    return part && *part && strtod(part, NULL) < 100;
}

/* cuda-gdb sets a variable of the driver before the program begins (cudadebugger.h: CUDBG_IPC_FLAG_NAME). */
bool gy_driver_debugged(const gy_driver *d)
{
    const uint32_t *flag = dlsym(d->handle, "cudbgIpcFlag");
    return flag && *flag;
}

bool gy_driver_peers_off(void)
{
    return gy_driver_switch("GANTRY_CUDA_PEERS", "off");
}

bool gy_driver_can_reach(const gy_driver *driver, CUdevice from, CUdevice to)
{
    int can = 0;
    return !gy_driver_peers_off() && driver->cuDeviceCanAccessPeer(&can, from, to) == CUDA_SUCCESS && can;
}

bool gy_driver_reach(const gy_driver *driver, CUdevice from, CUdevice to, CUcontext to_context)
{
    if (!gy_driver_can_reach(driver, from, to))
        return false;
    CUresult code = driver->cuCtxEnablePeerAccess(to_context, 0);
    return code == CUDA_SUCCESS || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

void gy_driver_give_back(const gy_driver *driver, CUcontext context)
{
    if (driver->cuCtxSetCurrent(context) != CUDA_SUCCESS)
        driver->cuCtxSetCurrent(context);
}

gantry_status gy_driver_fail(const gy_driver *driver, CUresult code, const char *what, gantry_error *err)
{
    const char *name = NULL, *text = NULL;
    if (driver->cuGetErrorName(code, &name) != CUDA_SUCCESS || !name)
        name = "an error without a name";
    if (driver->cuGetErrorString(code, &text) != CUDA_SUCCESS || !text)
        text = "no text";
    gantry_status status = gy_fail(err, GANTRY_E_DEVICE, NULL, "%s: %s (%d): %s", what, name, (int)code, text);
    if (err)
        err->native = (int32_t)code;
    return status;
}
