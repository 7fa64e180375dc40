/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdio.h>
#include <unistd.h>

_Noreturn void gy_assert_fail(const char *claim, const char *file, int line)
{
    char text[512];
    int length = snprintf(text, sizeof text, "%s:%d: assertion failed: %s\n", file, line, claim);
    size_t shown = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    ssize_t written = write(2, text, shown);
    (void)written; /* there is nobody left to tell */
    __builtin_trap();
}
