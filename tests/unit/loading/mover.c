/* SPDX-License-Identifier: Apache-2.0 */
/* mover LIBRARY FOLDER: opens libgantry by a relative path, goes to another folder, and prints what the back end "cuda"
 * looks for from there. */
#include <dlfcn.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        fprintf(stderr, "%s\n", dlerror());
    return found;
}

int main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library || chdir(argv[2]) != 0) {
        fprintf(stderr, "mover LIBRARY FOLDER: %s\n", library ? "no such folder" : dlerror());
        return 2;
    }
    gantry_status (*describe)(size_t i, char **text, gantry_error *err);
    void (*release)(void *memory);
    void *found[] = { find(library, "gantry_backend_describe"), find(library, "gantry_free") };
    if (!found[0] || !found[1])
        return 2;
    memcpy(&describe, &found[0], sizeof describe);
    memcpy(&release, &found[1], sizeof release);
    char *text = NULL;
    gantry_error err;
    if (describe(0, &text, &err))
        return 1;
    fputs(text, stdout);
    release(text);
    return 0;
}
