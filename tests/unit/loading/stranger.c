/* SPDX-License-Identifier: Apache-2.0 */
/* A library of somebody else under the name of one that is wanted: when it is loaded, it notes its path in the file
 * that STRANGER_NOTE names. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char anchor;

__attribute__((constructor)) static void note(void)
{
    const char *path = getenv("STRANGER_NOTE");
    Dl_info self;
    FILE *file = path && dladdr(&anchor, &self) ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", self.dli_fname);
        fclose(file);
    }
}
