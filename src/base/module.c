/* SPDX-License-Identifier: Apache-2.0 */
#include "base/module.h"

#include "base/error.h"
#include "gantry_build_id.h"
#include <dlfcn.h>
#include <inttypes.h>
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

typedef struct folders {
    folder at[MOST_FOLDERS];
    size_t count;
    char file[PATH_ROOM]; /* of the library */
} folders;

/* The file that an address is mapped from, as the kernel knows it: absolute, wherever the process has gone since it was
 * loaded by a relative path. */
static bool find_mapped(char path[PATH_ROOM], const void *address)
{
    char line[PATH_ROOM + 128];
    uintptr_t from, to;
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %4095[^\n]", &from, &to, path) == 3 &&
                (uintptr_t)address >= from && (uintptr_t)address < to && path[0] == '/';
    }
    if (maps)
        fclose(maps);
    return found;
}

bool gy_library_file(char *path, size_t size)
{
    char mapped[PATH_ROOM];
    Dl_info self;
    const char *file = dladdr(&anchor, &self) ? self.dli_fname : NULL;
    if (!file || file[0] != '/')
        file = find_mapped(mapped, &anchor) ? mapped : NULL;
    return file && (size_t)snprintf(path, size, "%s", file) < size;
}

static gantry_status take_given(folders *in, const char *given, const char *name, gantry_error *err)
{
    if (given[0] != '/') {
        return gy_fail(
            err, GANTRY_E_DEVICE, NULL,
            "GANTRY_MODULES is \"%s\", a relative path: %s.so is not loaded from a folder that depends on the "
            "current one; give the path from /, as $PWD/%s",
            given, name, given);
    }
    in->at[0] = (folder){ given, (int)strlen(given), "" };
    in->count = 1;
    return GANTRY_OK;
}

static gantry_status find_folders(folders *in, const char *name, gantry_error *err)
{
    const char *given = secure_getenv("GANTRY_MODULES");
    if (given && *given)
        return take_given(in, given, name, err);
    if (!gy_library_file(in->file, sizeof in->file)) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL,
                       "%s.so was not looked for: the system does not tell the folder of this library; name the "
                       "folder of its modules in GANTRY_MODULES",
                       name);
    }
    in->at[0] = (folder){ in->file, (int)(strrchr(in->file, '/') - in->file), "" };
    in->at[1] = (folder){ in->file, in->at[0].length, "/gantry" };
    in->count = MOST_FOLDERS;
    return GANTRY_OK;
}

static bool path_of(char path[PATH_ROOM], folder in, const char *name)
{
    int need = snprintf(path, PATH_ROOM, "%.*s%s/%s.so", in.length, in.at, in.below, name);
    return need > 0 && need < PATH_ROOM;
}

static gantry_status fail_absent(const char *name, const folders *in, gantry_error *err)
{
    folder first = in->at[0];
    if (in->count == 1) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s.so was not found in %.*s, the folder GANTRY_MODULES", name,
                       first.length, first.at);
    }
    return gy_fail(err, GANTRY_E_DEVICE, NULL,
                   "%s.so was not found in %.*s and %.*s/gantry; it was not built or not "
                   "installed, or GANTRY_MODULES should name its folder",
                   name, first.length, first.at, first.length, first.at);
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
    folders in;
    char path[PATH_ROOM];
    size_t i = 0;
    GY_TRY(find_folders(&in, name, err));
    while (i < in.count && !(path_of(path, in.at[i], name) && access(path, F_OK) == 0))
        i++;
    if (i == in.count)
        return fail_absent(name, &in, err);
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
