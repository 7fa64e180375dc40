/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Remains of ranks that were killed while MPI began: processes that wait for them for ever, whose mpirun does, too, and
 * a file in shared memory, which MPICH would have removed when all had come to it, or UCX as soon as it had opened it.
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

enum { ROOM = 4096, MOST_ABOVE = 16 };
static const char *const segments[] = { "mpich_shar_tmp", "ucx_shm_posix_" };

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

/* The process runs this program, so it is a rank or its guard. */
static bool is_rank(const char *pid)
{
    char path[300];
    struct stat mine, theirs;
    snprintf(path, sizeof path, "/proc/%s/exe", pid);
    return !stat("/proc/self/exe", &mine) && !stat(path, &theirs) && mine.st_dev == theirs.st_dev &&
           mine.st_ino == theirs.st_ino;
}

/* Kills the process and those above it, up to this one; if this one is not above it, nothing. */
static void kill_up(pid_t rank)
{
    pid_t chain[MOST_ABOVE];
    size_t count = 0;
    char name[24];
    for (pid_t at = rank; at > 1 && at != getpid() && count < MOST_ABOVE;) {
        chain[count++] = at;
        snprintf(name, sizeof name, "%d", (int)at);
        at = parent_of(name);
        for (size_t i = 0; at == getpid() && i < count; i++)
            kill(chain[i], SIGKILL);
    }
}

void kill_ranks(void)
{
    DIR *all = opendir("/proc");
    for (const struct dirent *entry; all && (entry = readdir(all));)
        if (is_number(entry->d_name) && is_rank(entry->d_name))
            kill_up((pid_t)strtol(entry->d_name, NULL, 10));
    if (all)
        closedir(all);
}

/* ---- shared memory ---- */

/* A lease to write is given only where nobody else has the file open or mapped. The kernel counts processes of other
 * containers, too, and those of which /proc shows nothing. Where a file system gives no leases, the file stays. */
static bool is_unused(int file)
{
    return fcntl(file, F_SETLEASE, F_WRLCK) == 0;
}

/* Is it such a file, of this user, and not older? */
static bool is_remains(const struct stat *file, time_t since)
{
    return S_ISREG(file->st_mode) && file->st_uid == geteuid() && file->st_ctime >= since;
}

/* The lease lasts until the file is closed. */
static void remove_unused(int folder, const char *name, time_t since)
{
    struct stat opened, named;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    if (!fstat(file, &opened) && is_remains(&opened, since) && is_unused(file) &&
        !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) && named.st_ino == opened.st_ino)
        unlinkat(folder, name, 0);
    close(file);
}

static bool is_segment(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < sizeof segments / sizeof *segments; i++)
        found = found || strncmp(name, segments[i], strlen(segments[i])) == 0;
    return found;
}

/* Whoever makes one has it open or mapped until it is removed, so those of runs beside this one stay. */
void remove_segments(const char *folder, time_t since)
{
    DIR *all = opendir(folder);
    for (const struct dirent *entry; all && (entry = readdir(all));)
        if (is_segment(entry->d_name))
            remove_unused(dirfd(all), entry->d_name, since);
    if (all)
        closedir(all);
}
