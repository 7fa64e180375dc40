/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels an image declares, as names with a space before and after each. Only as much is read as that takes: a
 * cubin has a section ".text.NAME" for each, PTX a directive ".entry NAME(". */
#include "fake.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything behind `word`, up to one of `end`, wherever it stands in the bytes. */
static char *collect(const char *at, size_t bytes, const char *word, const char *end)
{
    char *names = calloc(bytes + 2, 1);
    size_t length = strlen(word), used = 1;
    names[0] = ' ';
    for (const char *stop = at + bytes; (at = memmem(at, (size_t)(stop - at), word, length));) {
        at += length;
        while (at < stop && *at && !strchr(end, *at))
            names[used++] = *at++;
        names[used++] = ' ';
    }
    return names;
}

bool code_entries(char **entries, const char *image)
{
    Elf64_Ehdr head;
    if (strncmp(image, ELFMAG, SELFMAG) == 0) {
        memcpy(&head, image, sizeof head);
        *entries = collect(image, head.e_shoff, ".text.", "");
        return true;
    }
    /* Comments, then these two. */
    bool ptx = strstr(image, ".version ") && strstr(image, ".target ");
    *entries = ptx ? collect(image, strlen(image), ".entry ", "( \t\n") : NULL;
    return ptx;
}

bool code_has(const char *entries, const char *name)
{
    char word[80];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(entries, word) != NULL;
}

/* NVRTC looks for tables that are not documented. What it finds has its size first, and nothing else. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    static const size_t empty = sizeof empty;
    (void)id;
    *table = &empty;
    return CUDA_SUCCESS;
}
