/* SPDX-License-Identifier: Apache-2.0 */
/* Files of /sys and /proc, below the folder that stands for the root. */
#include "doctor.h"
#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_file(const doctor *d, const char *path)
{
    char whole[PATH_ROOM];
    if ((size_t)snprintf(whole, sizeof whole, "%s%s", d->root, path) >= sizeof whole)
        return NULL;
    return fopen(whole, "re");
}

static bool first_line(const doctor *d, char line[LINE], const char *path)
{
    FILE *file = open_file(d, path);
    bool there = file && fgets(line, LINE, file);
    if (there)
        line[strcspn(line, "\n")] = 0;
    if (file)
        fclose(file);
    return there;
}

bool read_line(const doctor *d, char line[LINE], const char *format, ...)
{
    char path[PATH_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    return first_line(d, line, path);
}

long read_number(const doctor *d, long missing, const char *format, ...)
{
    char path[PATH_ROOM], line[LINE], *end;
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    if (!first_line(d, line, path))
        return missing;
    long number = strtol(line, &end, 0);
    return end == line ? missing : number;
}

bool read_entry(const doctor *d, char line[LINE], const char *path, const char *key)
{
    FILE *file = open_file(d, path);
    size_t length = strlen(key);
    bool there = false;
    while (file && !there && fgets(line, LINE, file))
        there = strncmp(line, key, length) == 0;
    if (file)
        fclose(file);
    if (!there)
        return false;
    length += strspn(line + length, " \t");
    memmove(line, line + length, strlen(line + length) + 1);
    line[strcspn(line, "\n")] = 0;
    return true;
}

size_t read_bytes(const doctor *d, unsigned char *to, size_t size, const char *path)
{
    FILE *file = open_file(d, path);
    size_t count = file ? fread(to, 1, size, file) : 0;
    if (file)
        fclose(file);
    return count;
}

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

size_t list_names(const doctor *d, char ***names, const char *path, const char *begin)
{
    char whole[PATH_ROOM];
    size_t count = 0;
    *names = NULL;
    snprintf(whole, sizeof whole, "%s%s", d->root, path);
    DIR *folder = opendir(whole);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, begin, strlen(begin)) != 0)
            continue;
        char **longer = realloc(*names, (count + 1) * sizeof **names);
        if (longer)
            *names = longer;
        char *name = longer ? strdup(entry->d_name) : NULL;
        if (!name)
            break;
        (*names)[count++] = name;
    }
    if (folder)
        closedir(folder);
    if (count)
        qsort(*names, count, sizeof **names, by_name);
    return count;
}

void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

bool list_has(const char *list, long n)
{
    for (const char *at = list; *at;) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (n >= first && n <= last)
            return true;
        at = end + (*end == ',');
        if (at == end)
            return false;
    }
    return false;
}
