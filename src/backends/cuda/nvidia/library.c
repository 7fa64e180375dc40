/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/library.h"

#include "base/error.h"
#include "base/text.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

/* Looks in the next folder of the list; moves *list on. */
static void *open_in_next(const char **list, const char *name)
{
    size_t length = strcspn(*list, ":");
    gy_text path = { 0 };
    gy_text_add_n(&path, *list, length);
    gy_text_printf(&path, "/%s", name);
    *list += length + ((*list)[length] == ':');
    void *handle = length && !path.failed ? dlopen(path.at, FLAGS) : NULL;
    gy_text_free(&path);
    return handle;
}

/* A relative folder would be another one for each current folder, which may be a stranger's. Empty ones count as none.
 */
static gantry_status check_folders(const char *list, gantry_error *err)
{
    while (list && *list) {
        size_t length = strcspn(list, ":");
        if (length && *list != '/') {
            int shown = (int)length;
            return gy_fail(
                err, GANTRY_E_DEVICE, NULL,
                "GANTRY_CUDA_LIBRARIES has \"%.*s\", a relative path: no library is loaded from a folder that "
                "depends on the current one; give the path from /, as $PWD/%.*s",
                shown, list, shown, list);
        }
        list += length + (list[length] == ':');
    }
    return GANTRY_OK;
}

static void *open_one(const char *list, const char *name)
{
    void *handle = NULL;
    while (list && *list && !handle)
        handle = open_in_next(&list, name);
    return handle ? handle : dlopen(name, FLAGS);
}

gantry_status gy_library_open(gy_library *library, const char *const *names, gantry_error *err)
{
    gy_library found = { 0 };
    const char *first = names[0], *list = secure_getenv("GANTRY_CUDA_LIBRARIES");
    GY_TRY(check_folders(list, err));
    for (; *names && !found.handle; names++)
        found = (gy_library){ open_one(list, *names), *names };
    if (!found.handle) {
        const char *why = dlerror();
        return gy_fail(err, GANTRY_E_DEVICE, NULL,
                       "%s was not found (%s); name its folder in GANTRY_CUDA_LIBRARIES if it is somewhere else", first,
                       why ? why : "no reason given");
    }
    *library = found;
    return GANTRY_OK;
}

const char *const *gy_library_names_from(const char *const *names, int driver_version)
{
    int major = driver_version / 1000;
    return names + (driver_version == 0 || major >= 13 ? 0 : major == 12 ? 1 : 2);
}

/* dlsym gives an object pointer; POSIX promises that its bits are those of the function pointer. */
gantry_status gy_library_find(const gy_library *library, const char *symbol, void *to, gantry_error *err)
{
    void *found = dlsym(library->handle, symbol);
    if (!found)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s has no function %s: it is too old", library->name, symbol);
    memcpy(to, &found, sizeof found);
    return GANTRY_OK;
}
