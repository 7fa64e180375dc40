/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Modules: shared objects of this project that are opened when they are wanted, because they need what not every
 * computer has. "gantry-x" is the file gantry-x.so in the folder GANTRY_MODULES or, without that, beside this library
 * or in gantry/ beside it. It exports one function, gantry_x_module.
 */
#ifndef GY_BASE_MODULE_H
#define GY_BASE_MODULE_H

#include <gantry/status.h>

/* What gantry_x_module is: given the version that is wanted it returns the module's table, whose first member is the
 * uint32_t version that the table has. NULL: it does not know that version and does not tell its own. */
typedef const void *(*gy_module_entry)(uint32_t version);

typedef struct gy_module {
    void *handle;      /* NULL: not open */
    const void *table; /* valid until the module is closed */
} gy_module;

/* E_DEVICE: there is no such file, it cannot be opened, or it has another version; the text says which, with the
 * folders that were looked in or both versions. */
gantry_status gy_module_open(gy_module *module, const char *name, uint32_t version, gantry_error *err);
void gy_module_close(gy_module *module); /* one that is not open is fine */

#endif
