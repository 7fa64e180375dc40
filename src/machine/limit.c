/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of Linux: Documentation/admin-guide/cgroup-v2.rst, "memory.max", and cgroup-v1/memory.rst. */
#include "machine/limit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST_PATH 4096

/* The number in a file; UINT64_MAX where there is none, as "max" says there is no limit. */
static uint64_t number_in(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned long long bytes = 0;
    bool is_number = file && fscanf(file, "%20llu", &bytes) == 1;
    if (file)
        fclose(file);
    return is_number ? bytes : UINT64_MAX;
}

/* The least limit of the group and of those that it is in. A container may see its own group as the topmost, under
 * whatever path the system outside has for it: then the groups below the topmost are not found, and do not count. */
static uint64_t least_in(const char *root, const char *mount, const char *file, char *group)
{
    char path[MOST_PATH];
    uint64_t least = UINT64_MAX;
    for (bool more = true; more;) {
        char *last = strrchr(group, '/');
        int length = snprintf(path, sizeof path, "%s%s%s/%s", root, mount, group, file);
        uint64_t bytes = length > 0 && (size_t)length < sizeof path ? number_in(path) : UINT64_MAX;
        least = bytes < least ? bytes : least;
        more = last != NULL;
        if (last)
            *last = 0;
    }
    return least;
}

/* Of one line of /proc/self/cgroup, "number:controllers:path". */
static uint64_t limit_of(const char *root, char *line)
{
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (!strcmp(controllers + 1, ""))
        return least_in(root, "/sys/fs/cgroup", "memory.max", group);
    if (!strcmp(controllers + 1, "memory"))
        return least_in(root, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", group);
    return UINT64_MAX;
}

uint64_t gy_memory_allowed(const char *root)
{
    uint64_t least = UINT64_MAX;
    char line[MOST_PATH];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "re");
    while (file && fgets(line, sizeof line, file)) {
        uint64_t bytes = limit_of(root, line);
        least = bytes < least ? bytes : least;
    }
    if (file)
        fclose(file);
    return least;
}

uint64_t gy_memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t has = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
    uint64_t allowed = gy_memory_allowed("");
    return allowed < has ? allowed : has;
}
