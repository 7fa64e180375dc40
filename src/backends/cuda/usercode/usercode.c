/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/usercode/usercode.h"

#include "backends/cuda/usercode/entries.h"
#include "base/cache.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "maths/maths.h"
#include <stdio.h>
#include <string.h>

#define MOST_CODE (UINT64_C(1) << 30) /* bytes of a file that is loaded as it is */

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static const char *text_of(const gy_kernel *kernel)
{
    return kernel->code->program ? kernel->code->program->source : NULL;
}

bool gy_user_kernel_is_source(const gy_kernel *kernel)
{
    return kernel->program || text_of(kernel) || (kernel->code->cuda && ends_in(kernel->code->cuda, ".cu"));
}

/* ---- before anything is loaded ---- */

bool gy_user_kernel_has(const gy_kernel *kernel)
{
    return kernel->code && (kernel->program || kernel->code->cuda || kernel->code->program);
}

static const gy_access *find_list(const gantry_graph *g, const gy_node *node)
{
    for (uint32_t i = 0; i < gy_node_regions(node); i++)
        if (g->access.at[node->access + i].is_list)
            return &g->access.at[node->access + i];
    return NULL;
}

gantry_status gy_user_kernel_usable(const gantry_graph *g, const gy_node *node, bool *found, gantry_error *err)
{
    const gy_kernel *kernel = &g->kernels.at[node->kernel];
    const gy_access *list = find_list(g, node);
    gy_nvrtc nvrtc;
    gantry_error why = { 0 };
    if (!gy_user_kernel_has(kernel)) {
        return gy_graph_fail(g, node->origin, err, GANTRY_E_UNSUPPORTED,
                             "kernel \"%s\" of node \"%s\" has no code for GPUs; name some with \"cuda\", or use the "
                             "back end \"host\"",
                             kernel->manifest->name, node->id);
    }
    if (gy_kernel_code_launches(kernel->code))
        return GANTRY_OK;
    if (!kernel->code->grid[0] || !kernel->code->block[0]) {
        return gy_graph_fail(g, node->origin, err, GANTRY_E_UNSUPPORTED,
                             "kernel \"%s\" of node \"%s\" does not say how many threads a launch has; give \"launch\" "
                             "with \"grid\" and \"block\"",
                             kernel->manifest->name, node->id);
    }
    if (list) {
        return gy_graph_fail(g, node->origin, err, GANTRY_E_UNSUPPORTED,
                             "node \"%s\" gives kernel \"%s\" a list of tiles of \"%s\", which CUDA code of users "
                             "cannot be given; use the back end \"host\"",
                             node->id, kernel->manifest->name, g->buffers.at[list->buffer].name);
    }
    if (*found || !gy_user_kernel_is_source(kernel))
        return GANTRY_OK;
    *found = gy_nvrtc_find(&nvrtc, &why) == GANTRY_OK;
    if (!*found && kernel->program) {
        return gy_graph_fail(g, node->origin, err, why.status,
                             "the formulas of node \"%s\" have to be compiled by NVRTC for GPUs: %s; or place the node "
                             "on the CPU with \"on\"",
                             node->id, why.text);
    }
    if (!*found) {
        return gy_graph_fail(g, node->origin, err, why.status,
                             "kernel \"%s\" of node \"%s\" is %s%s, which NVRTC has to compile: %s",
                             kernel->manifest->name, node->id, kernel->code->cuda ? "in " : "a text of the program",
                             kernel->code->cuda ? kernel->code->cuda : "", why.text);
    }
    return GANTRY_OK;
}

/* ---- the code ---- */

static gantry_status fail_driver(const gy_user_kernel *k, CUresult code, const char *what, gantry_error *err)
{
    return gy_driver_fail(k->driver, code, what, err);
}

static gantry_status ask(const gy_user_kernel *k, int *value, CUdevice_attribute which, CUdevice device,
                         gantry_error *err)
{
    CUresult code = k->driver->cuDeviceGetAttribute(value, which, device);
    return code == CUDA_SUCCESS ? GANTRY_OK : fail_driver(k, code, "asking what the device can do", err);
}

bool gy_user_kernel_is_apart(const gy_kernel *kernel)
{
    return kernel->program && kernel->code->finish && gy_maths_tiny(kernel->program) > 0;
}

static gantry_status compile_formulas(gy_code *code, const gy_nvrtc *nvrtc, const gy_kernel *kernel, bool ends,
                                      int capability, gantry_error *err)
{
    gy_text text = { 0 };
    gy_maths_printed printed = ends                              ? GY_MATHS_PRINT_FINISH
                               : gy_user_kernel_is_apart(kernel) ? GY_MATHS_PRINT_FIRST
                                                                 : GY_MATHS_PRINT_ALL;
    gy_maths_print_cuda(&text, kernel->program, kernel->manifest->name, printed);
    gantry_status status = text.failed
                               ? gy_fail_nomem(err)
                               : gy_nvrtc_compile_text(code, nvrtc, kernel->manifest->name, text.at, capability, err);
    gy_text_free(&text);
    return status;
}

gantry_status gy_user_kernel_compile(gy_code *code, const gy_nvrtc *nvrtc, const gy_kernel *kernel, bool ends,
                                     int capability, const char *folder, gantry_error *err)
{
    const char *text = text_of(kernel);
    if (kernel->program)
        return compile_formulas(code, nvrtc, kernel, ends, capability, err);
    return text ? gy_nvrtc_compile_text(code, nvrtc, kernel->manifest->name, text, capability, err)
                : gy_nvrtc_compile(code, nvrtc, kernel->code->cuda, folder, kernel->code->build, capability, err);
}

static gantry_status compile(gy_code *code, const gy_user_kernel *k, bool ends, CUdevice device, const char *folder,
                             gantry_error *err)
{
    gy_nvrtc nvrtc;
    int capability;
    GY_TRY(gy_nvrtc_find(&nvrtc, err));
    GY_TRY(gy_driver_capability(k->driver, device, &capability, err));
    if (!k->kernel->program)
        nvrtc.said = k->said;
    return gy_user_kernel_compile(code, &nvrtc, k->kernel, ends, capability, folder, err);
}

/* A program may give PTX without a 0 behind it. */
static gantry_status copy_image(gy_code *code, const gy_kernel_program *program, gantry_error *err)
{
    code->at = gy_alloc(program->bytes + 1);
    if (!code->at)
        return gy_fail_nomem(err);
    memcpy(code->at, program->image, program->bytes);
    code->at[program->bytes] = '\0';
    code->bytes = program->bytes;
    return GANTRY_OK;
}

/* A compiler that is newer than the driver makes code that the driver may not know. */
static void name_failure(char *to, size_t size, const gy_user_kernel *k, const char *name)
{
    gy_nvrtc nvrtc;
    int version = 0;
    if (gy_user_kernel_is_source(k->kernel) && gy_nvrtc_find(&nvrtc, NULL) == GANTRY_OK &&
        k->driver->cuDriverGetVersion(&version) == CUDA_SUCCESS) {
        snprintf(to, size, "the driver, which is for CUDA %d.%d, cannot load %s, compiled by NVRTC %d.%d",
                 version / 1000, version % 1000 / 10, name, nvrtc.major, nvrtc.minor);
    } else {
        snprintf(to, size, "the driver cannot load %s", name);
    }
}

static gantry_status load(const gy_user_kernel *k, CUmodule *to, const gy_code *code, const char *name,
                          gantry_error *err)
{
    enum { LOG = 1024 };
    char what[256], log[LOG] = "", line[256];
    CUjit_option option[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *value[] = { log, (void *)(uintptr_t)LOG };
    CUresult result = k->driver->cuModuleLoadDataEx(to, code->at, 2, option, value);
    if (result == CUDA_SUCCESS)
        return GANTRY_OK;
    *to = NULL;
    log[LOG - 1] = '\0';
    name_failure(what, sizeof what, k, name);
    gantry_error why = { 0 };
    fail_driver(k, result, what, &why);
    gy_lines_text(line, sizeof line, log);
    gy_fail(err, GANTRY_E_DEVICE, NULL, "%s%s%s", why.text, *line ? ": " : "", line);
    if (err)
        err->native = why.native;
    return GANTRY_E_DEVICE;
}

static gantry_status find(gy_user_kernel *k, const gy_code *code, const char *name, gantry_error *err)
{
    const char *entry = k->kernel->code->entry ? k->kernel->code->entry : k->kernel->manifest->name;
    CUresult result = k->driver->cuModuleGetFunction(&k->function, k->module, entry);
    if (result == CUDA_SUCCESS)
        return GANTRY_OK;
    if (result != CUDA_ERROR_NOT_FOUND)
        return fail_driver(k, result, "finding the function", err);
    if (gy_entries_have(code->at, code->bytes, entry))
        return gy_fail(err, GANTRY_E_DEVICE, NULL,
                       "the driver does not find kernel \"%s\" in %s, which has it: a driver that only stands in for "
                       "NVIDIA's, as in tests, carries out no such code; use the back end \"host\"",
                       entry, name);
    gy_text why = { 0 };
    gy_entries_explain(&why, code->at, code->bytes, entry);
    gantry_status status = why.failed
                               ? gy_fail_nomem(err)
                               : gy_fail(err, GANTRY_E_GRAPH, NULL, "%s has no kernel \"%s\": %s", name, entry, why.at);
    gy_text_free(&why);
    return status;
}

static gantry_status load_ends(gy_user_kernel *k, CUdevice device, const char *folder, const char *name,
                               gantry_error *err)
{
    gy_code code = { 0 };
    GY_TRY(compile(&code, k, true, device, folder, err));
    gantry_status status = load(k, &k->ends, &code, name, err);
    gy_free(code.at);
    return status;
}

/* Of formulas: the function that joins what the blocks of the first one left. */
static gantry_status open_finish(gy_user_kernel *k, CUdevice device, const char *folder, const char *of,
                                 gantry_error *err)
{
    char name[128];
    if (!k->kernel->code->finish)
        return GANTRY_OK;
    if (gy_user_kernel_is_apart(k->kernel))
        GY_TRY(load_ends(k, device, folder, of, err));
    snprintf(name, sizeof name, "%s_finish", k->kernel->manifest->name);
    CUresult result = k->driver->cuModuleGetFunction(&k->finish, k->ends ? k->ends : k->module, name);
    return result == CUDA_SUCCESS ? GANTRY_OK
                                  : fail_driver(k, result, "finding the function that ends a reduction", err);
}

static gantry_status open_code(gy_user_kernel *k, CUdevice device, const char *folder, gantry_error *err)
{
    const gy_kernel_code *from = k->kernel->code;
    bool printed = k->kernel->program;
    const char *name = from->cuda           ? from->cuda
                       : printed            ? "the code of formulas"
                       : text_of(k->kernel) ? "the source"
                                            : "the image";
    gy_code code = { 0 };
    gantry_status status = from->cuda ? gy_file_look(from->cuda, from->folder, err) : GANTRY_OK;
    if (!status)
        status = gy_user_kernel_is_source(k->kernel) ? compile(&code, k, false, device, folder, err)
                 : !from->cuda                       ? copy_image(&code, from->program, err)
                               : gy_file_read_in(&code.at, &code.bytes, from->cuda, from->folder, MOST_CODE, err);
    status = status ? status : load(k, &k->module, &code, name, err);
    status = status ? status : find(k, &code, name, err);
    status = status ? status : open_finish(k, device, folder, name, err);
    gy_free(code.at);
    return status;
}

/* The program may make another context current. */
static gantry_status open_handle(gy_user_kernel *k, int ordinal, gantry_error *err)
{
    const gy_kernel_program *program = k->kernel->code->program;
    CUcontext context = NULL;
    k->driver->cuCtxGetCurrent(&context);
    k->function = program->function(program->user, ordinal);
    gy_driver_give_back(k->driver, context);
    return k->function ? GANTRY_OK
                       : gy_fail(err, GANTRY_E_KERNEL, NULL,
                                 "the program gave no function for GPU %d; return its CUfunction", ordinal);
}

/* ---- what can be launched ---- */

static gantry_status ask_limits(gy_user_kernel *k, CUdevice device, gantry_error *err)
{
    static const CUdevice_attribute block[] = { CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                                                CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                                CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z },
                                    grid[] = { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                               CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z };
    CUresult code =
        k->driver->cuFuncGetAttribute(&k->most_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k->function);
    gantry_status status =
        code == CUDA_SUCCESS ? GANTRY_OK : fail_driver(k, code, "asking what the function can do", err);
    for (int i = 0; i < 3 && status == GANTRY_OK; i++) {
        status = ask(k, &k->most_block[i], block[i], device, err);
        status = status ? status : ask(k, &k->most_grid[i], grid[i], device, err);
    }
    return status;
}

/* A function has to ask for more shared memory than every device has. */
static gantry_status ask_shared(gy_user_kernel *k, CUdevice device, gantry_error *err)
{
    int64_t wanted = k->kernel->code->program ? k->kernel->code->program->shared_bytes : 0;
    int most = 0;
    gantry_status status =
        wanted ? ask(k, &most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device, err) : GANTRY_OK;
    if (status || !wanted)
        return status;
    if (wanted > most) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "%lld bytes of shared memory; the device has %d for a block",
                       (long long)wanted, most);
    }
    k->shared_bytes = (unsigned)wanted;
    CUresult code =
        k->driver->cuFuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)wanted);
    return code == CUDA_SUCCESS ? GANTRY_OK : fail_driver(k, code, "asking for shared memory", err);
}

gantry_status gy_user_kernel_open(gy_user_kernel **out, const gy_driver *driver, CUdevice device, int ordinal,
                                  const gantry_graph *graph, const gy_kernel *kernel, gy_said said, gantry_error *err)
{
    gy_user_kernel *k = gy_calloc(1, sizeof *k);
    if (!k)
        return gy_fail_nomem(err);
    k->driver = driver;
    k->kernel = kernel;
    k->said = said;
    k->early.can = kernel->program && gy_early_can(driver);
    bool handle = kernel->code->program && kernel->code->program->function;
    gantry_status status = handle ? open_handle(k, ordinal, err) : open_code(k, device, graph->folder, err);
    status = status ? status : ask_limits(k, device, err);
    status = status ? status : ask_shared(k, device, err);
    if (status) {
        gy_user_kernel_close(k);
        return status;
    }
    *out = k;
    return GANTRY_OK;
}

void gy_user_kernel_close(gy_user_kernel *k)
{
    if (k->module)
        k->driver->cuModuleUnload(k->module);
    if (k->ends)
        k->driver->cuModuleUnload(k->ends);
    gy_free(k);
}
