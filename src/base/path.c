/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as text: nothing here looks at the file system. */
#include "base/file.h"
#include "base/memory.h"
#include <stdbool.h>
#include <string.h>

char *gy_path_join(const char *folder, const char *name)
{
    if (!folder || !folder[0] || name[0] == '/')
        return gy_strdup(name);
    size_t head = strlen(folder), tail = strlen(name);
    bool slash = folder[head - 1] != '/';
    char *path = gy_alloc(head + slash + tail + 1);
    if (!path)
        return NULL;
    memcpy(path, folder, head);
    if (slash)
        path[head] = '/';
    memcpy(path + head + slash, name, tail + 1);
    return path;
}

char *gy_path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return gy_strdup(".");
    while (slash > path && slash[-1] == '/')
        slash--;
    return slash == path ? gy_strdup("/") : gy_strndup(path, (size_t)(slash - path));
}

int gy_path_is_inside(const char *name)
{
    if (!name[0] || name[0] == '/')
        return 0;
    long depth = 0;
    while (*name) {
        size_t length = strcspn(name, "/");
        if (length == 2 && memcmp(name, "..", 2) == 0)
            depth--;
        else if (length > 0 && !(length == 1 && name[0] == '.'))
            depth++;
        if (depth < 0)
            return 0;
        name += length;
        name += *name == '/';
    }
    return 1;
}
