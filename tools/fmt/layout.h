/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of JSON files (layout.c). */
#ifndef GANTRY_LAYOUT_H
#define GANTRY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

/* The value in `text`, which is JSON, laid out anew, with a newline at its end. NULL: out of memory. Free it. */
char *layout_json(const char *text, size_t *length);

#endif
