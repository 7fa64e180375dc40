/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Modules are shared objects of this project that are opened at run time, because they need libraries that not every
 * computer has. "gantry-x" is the file gantry-x.so in the folder GANTRY_MODULES, an absolute path, or, without that,
 * beside this library or in gantry/ beside it; never in a folder that depends on the current one. It exports a
 * function, gantry_x_module, that returns its table, and gantry_x_build_id, the GY_BUILD_ID that it was built with: a
 * hash of the headers that library and modules share. They read each other's structures, so a module with another id is
 * refused before anything of it is called.
 */
#ifndef GY_BASE_MODULE_H
#define GY_BASE_MODULE_H

#include <gantry/status.h>
#include <stdbool.h>

/* The type of gantry_x_module: it returns the table of the module. */
typedef const void *(*gy_module_entry)(void);

typedef struct gy_module {
    void *handle;      /* NULL: not open */
    const void *table; /* valid until the module is closed */
} gy_module;

/* E_DEVICE: there is no such file, it cannot be opened, or it has another build id; the text says which, with the
 * folders that were looked in or both ids. */
gantry_status gy_module_open(gy_module *module, const char *name, gantry_error *err);
/* The file of this library by its path from /, wherever the process has gone since it was loaded; false: the system
 * does not tell. */
bool gy_library_file(char *path, size_t size);
/* The build id of the library. */
const char *gy_build_id(void);
void gy_module_close(gy_module *module); /* one that is not open is fine */

#endif
