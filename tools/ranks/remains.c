/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Remains of ranks that were killed while MPI began: processes that wait for them for ever, whose mpirun does, too, and
 * a file in shared memory, which MPICH would have removed when all had come to it.
 */
#include "launch.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARED  "/dev/shm"
#define SEGMENT "mpich_shar_tmp"
enum { ROOM = 4096 };

static bool is_number(const char *name)
{
    return *name && strspn(name, "0123456789") == strlen(name);
}

/* The parent of a process; 0: it is not to be had. */
static pid_t parent_of(const char *pid)
{
    char path[300], text[ROOM];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    const char *name_end = strrchr(text, ')'); /* names may have anything in them */
    return name_end && sscanf(name_end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

void kill_children(void)
{
    DIR *all = opendir("/proc");
    for (const struct dirent *entry; all && (entry = readdir(all));)
        if (is_number(entry->d_name) && parent_of(entry->d_name) == getpid())
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    if (all)
        closedir(all);
}

/* ---- shared memory ---- */

/* The process has it mapped. */
static bool maps(const char *pid, const char *path)
{
    char line[ROOM];
    bool found = false;
    snprintf(line, sizeof line, "/proc/%s/maps", pid);
    FILE *file = fopen(line, "r");
    while (file && !found && fgets(line, sizeof line, file))
        found = strstr(line, path) != NULL;
    if (file)
        fclose(file);
    return found;
}

/* The process has it open. */
static bool opens(const char *pid, const char *path)
{
    char folder[300], to[ROOM];
    bool found = false;
    snprintf(folder, sizeof folder, "/proc/%s/fd", pid);
    DIR *all = opendir(folder);
    for (const struct dirent *entry; all && !found && (entry = readdir(all));) {
        ssize_t length = readlinkat(dirfd(all), entry->d_name, to, sizeof to - 1);
        to[length > 0 ? length : 0] = 0;
        found = strcmp(to, path) == 0;
    }
    if (all)
        closedir(all);
    return found;
}

static bool is_in_use(const char *path)
{
    bool found = false;
    DIR *all = opendir("/proc");
    for (const struct dirent *entry; all && !found && (entry = readdir(all));)
        found = is_number(entry->d_name) && (maps(entry->d_name, path) || opens(entry->d_name, path));
    if (all)
        closedir(all);
    return found || !all;
}

/* Whoever makes one has it open or mapped until it is removed, so those of runs beside this one stay. */
void remove_segments(time_t since)
{
    char path[300];
    struct stat at;
    DIR *all = opendir(SHARED);
    for (const struct dirent *entry; all && (entry = readdir(all));) {
        snprintf(path, sizeof path, SHARED "/%s", entry->d_name);
        if (strncmp(entry->d_name, SEGMENT, strlen(SEGMENT)) == 0 && !lstat(path, &at) && S_ISREG(at.st_mode) &&
            at.st_uid == geteuid() && at.st_ctime >= since && !is_in_use(path))
            unlink(path);
    }
    if (all)
        closedir(all);
}
