/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries of kernels: each says by fakeCudaFunction what it has. */
#include "fake.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>

void load_kernels(const char *folder)
{
    char pattern[4096];
    glob_t found;
    if (!folder)
        return;
    snprintf(pattern, sizeof pattern, "%s/*.so", folder);
    if (glob(pattern, 0, NULL, &found))
        wrong("FAKE_CUDA_KERNELS: no %s", pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (!dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL)) /* open as long as the program */
            wrong("FAKE_CUDA_KERNELS: %s", dlerror());
    globfree(&found);
}
