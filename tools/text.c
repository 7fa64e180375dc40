/* SPDX-License-Identifier: Apache-2.0 */
/* Files as text, for commands that look before the library reads. */
#include "command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool is_regular(const char *path)
{
    struct stat info;
    return strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

char *read_all(const char *path, size_t *length)
{
    bool piped = strcmp(path, "-") == 0;
    FILE *from = piped ? stdin : fopen(path, "rb");
    char *text = NULL;
    size_t room = 0, most = is_regular(path) ? SIZE_MAX / 2 : (size_t)1 << 30; /* others may never end */
    *length = 0;
    if (!from)
        return NULL;
    do {
        size_t wanted = room ? 2 * room : 65536;
        char *more = wanted <= most ? realloc(text, wanted) : NULL;
        if (!more)
            break;
        text = more;
        room = wanted;
        *length += fread(text + *length, 1, room - *length, from);
    } while (*length == room);
    bool whole = text && *length < room && !ferror(from);
    if (whole)
        text[*length] = '\0';
    if (!piped)
        fclose(from);
    if (!whole) {
        free(text);
        text = NULL;
    }
    return text;
}
