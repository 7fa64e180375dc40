/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that code declares, for messages: the driver only says that a name is not there. */
#ifndef GY_CUDA_USERCODE_ENTRIES_H
#define GY_CUDA_USERCODE_ENTRIES_H

#include "base/text.h"
#include <stddef.h>

/* Calls `each` for the name of every kernel of PTX (".entry NAME") or of a cubin (its sections ".text.NAME"), 0 where
 * the code is neither or damaged; until it returns false. `code` has a 0 behind its bytes. */
void gy_entries_each(const char *code, size_t bytes, bool (*each)(void *context, const char *name, size_t length),
                     void *context);
/* True if one of them is `entry`. */
bool gy_entries_have(const char *code, size_t bytes, const char *entry);
/* Appends a sentence on why there may be no kernel `entry`: the name that C++ made of it, else the names there are. */
void gy_entries_explain(gy_text *to, const char *code, size_t bytes, const char *entry);

#endif
