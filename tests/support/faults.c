/* SPDX-License-Identifier: Apache-2.0 */
#include "support/faults.h"

#include <stddef.h>

static int left = -1; /* allocations until the failure; -1: none */

void faults_after(int n)
{
    left = n;
}
bool faults_off(void)
{
    bool happened = left < 0;
    left = -1;
    return happened;
}

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}
void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}
void *__wrap_realloc(void *old, size_t bytes)
{
    return fails() ? NULL : __real_realloc(old, bytes);
}
