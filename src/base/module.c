/* SPDX-License-Identifier: Apache-2.0 */
#include "base/module.h"

#include "base/error.h"
#include "gantry_build_id.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An address inside this library, for dladdr to find its file. */
static const char anchor;

typedef struct folder {
    const char *at;
    int length;
    const char *below;
} folder;

enum { MOST_FOLDERS = 2, PATH_ROOM = 4096 };

static size_t find_folders(folder to[MOST_FOLDERS])
{
    const char *given = getenv("GANTRY_MODULES");
    Dl_info self;
    if (given) {
        to[0] = (folder){ given, (int)strlen(given), "" };
        return 1;
    }
    if (!dladdr(&anchor, &self) || !self.dli_fname)
        return 0;
    const char *slash = strrchr(self.dli_fname, '/');
    to[0] = slash ? (folder){ self.dli_fname, (int)(slash - self.dli_fname), "" } : (folder){ ".", 1, "" };
    to[1] = (folder){ to[0].at, to[0].length, "/gantry" };
    return MOST_FOLDERS;
}

static bool path_of(char path[PATH_ROOM], folder in, const char *name)
{
    int need = snprintf(path, PATH_ROOM, "%.*s%s/%s.so", in.length, in.at, in.below, name);
    return need > 0 && need < PATH_ROOM;
}

static gantry_status fail_absent(const char *name, const folder *in, size_t folders, gantry_error *err)
{
    if (folders == 1) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s.so was not found in %.*s, the folder GANTRY_MODULES", name,
                       in[0].length, in[0].at);
    }
    return gy_fail(err, GANTRY_E_DEVICE, NULL,
                   "%s.so was not found in %.*s and %.*s/gantry; it was not built or not "
                   "installed, or GANTRY_MODULES should name its folder",
                   name, folders ? in[0].length : 0, folders ? in[0].at : "", folders ? in[0].length : 0,
                   folders ? in[0].at : "");
}

const char *gy_build_id(void)
{
    return GY_BUILD_ID;
}

/* "gantry-x", "_module": what gantry_x_module is in the module; NULL with the error written. */
static void *find(void *handle, const char *name, const char *what, const char *path, gantry_error *err)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s", name, what);
    for (char *c = symbol; *c; c++)
        *c = *c == '-' ? '_' : *c;
    void *found = dlsym(handle, symbol);
    if (!found) {
        gy_fail(err, GANTRY_E_DEVICE, NULL,
                "%s is no module of this version of gantry: it has no symbol %s; install the %s.so that was built with "
                "this library",
                path, symbol, name);
    }
    return found;
}

/* Nothing of a module of another build is called. */
static gantry_status ask(gy_module *module, const char *name, const char *path, gantry_error *err)
{
    const char *id = find(module->handle, name, "_build_id", path, err);
    void *found = id ? find(module->handle, name, "_module", path, err) : NULL;
    if (!found)
        return GANTRY_E_DEVICE;
    if (strcmp(id, GY_BUILD_ID) != 0) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL,
                       "%s has build id %.32s and this library has %s: they were built from different headers; install "
                       "the %s.so that was built with this library",
                       path, id, GY_BUILD_ID, name);
    }
    /* dlsym gives an object pointer; C has no conversion to a function pointer, POSIX promises that the bits are one.
     */
    gy_module_entry entry;
    memcpy(&entry, &found, sizeof entry);
    module->table = entry();
    return GANTRY_OK;
}

gantry_status gy_module_open(gy_module *module, const char *name, gantry_error *err)
{
    folder in[MOST_FOLDERS];
    char path[PATH_ROOM];
    size_t folders = find_folders(in), i = 0;
    while (i < folders && !(path_of(path, in[i], name) && access(path, F_OK) == 0))
        i++;
    if (i == folders)
        return fail_absent(name, in, folders, err);
    gy_module found = { .handle = dlopen(path, RTLD_NOW | RTLD_LOCAL) };
    if (!found.handle) {
        const char *why = dlerror();
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s cannot be opened: %s", path, why ? why : "?");
    }
    gantry_status status = ask(&found, name, path, err);
    if (status) {
        gy_module_close(&found);
        return status;
    }
    *module = found;
    return GANTRY_OK;
}

void gy_module_close(gy_module *module)
{
    if (module->handle)
        dlclose(module->handle);
    *module = (gy_module){ 0 };
}
