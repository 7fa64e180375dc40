/* SPDX-License-Identifier: Apache-2.0 */
#include "run/usercode.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include <dlfcn.h>
#include <string.h>

static bool is_object(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".so") == 0;
}

static gantry_status open_object(void **object, const char *path, const char *source, gantry_error *err)
{
    /* Without a slash dlopen would search the system's folders. */
    char *full = strchr(path, '/') ? gy_strdup(path) : gy_path_join(".", path);
    if (!full)
        return gy_fail_nomem(err);
    void *opened = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    gy_free(full);
    if (!opened)
        return gy_fail(err, GANTRY_E_GRAPH, NULL, "cannot load %s: %s", source, dlerror());
    *object = opened;
    return GANTRY_OK;
}

/* POSIX lets a function's address travel in a void pointer; ISO C does not, hence the copy. */
static gantry_kernel_fn find_function(void *object, const char *name)
{
    void *symbol = dlsym(object, name);
    gantry_kernel_fn function = NULL;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static gantry_status load(void **object, gantry_kernel_fn *function, const gy_kernel *kernel, gantry_error *err)
{
    const char *source = kernel->code->host;
    const char *entry = kernel->code->entry ? kernel->code->entry : kernel->manifest->name;
    char *compiled = NULL;
    GY_TRY(gy_file_look(source, kernel->code->folder, err));
    if (!is_object(source)) {
        gantry_status status = gy_compile_c(&compiled, source, err);
        if (status)
            return status;
    }
    void *opened;
    gantry_status status = open_object(&opened, compiled ? compiled : source, source, err);
    gy_free(compiled);
    if (status)
        return status;
    gantry_kernel_fn found = find_function(opened, entry);
    if (!found) {
        dlclose(opened);
        return gy_fail(
            err, GANTRY_E_GRAPH, NULL,
            "%s has no function \"%s\" for kernel \"%s\"; define \"gantry_status %s(const gantry_launch *)\", "
            "not static, or name another with \"entry\"",
            source, entry, kernel->manifest->name, entry);
    }
    *object = opened;
    *function = found;
    return GANTRY_OK;
}

static bool make_room(gy_user_code *code, uint32_t count)
{
    if (code->count)
        return true;
    code->function = gy_calloc(count, sizeof *code->function);
    code->object = gy_calloc(count, sizeof *code->object);
    if (!code->function || !code->object) {
        gy_user_code_free(code);
        return false;
    }
    code->count = count;
    return true;
}

gantry_status gy_user_code_load(gy_user_code *code, const gantry_graph *graph, uint32_t kernel, gantry_error *err)
{
    if (!make_room(code, (uint32_t)graph->kernels.count))
        return gy_fail_nomem(err);
    if (code->function[kernel])
        return GANTRY_OK;
    return load(&code->object[kernel], &code->function[kernel], &graph->kernels.at[kernel], err);
}

void gy_user_code_free(gy_user_code *code)
{
    for (uint32_t i = 0; i < code->count; i++)
        if (code->object[i])
            dlclose(code->object[i]);
    gy_free(code->function);
    gy_free(code->object);
    *code = (gy_user_code){ 0 };
}
