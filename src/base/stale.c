/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DECIMAL = 10 };

static bool take_digits(const char **at, long *value)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *value = strtol(*at, &end, DECIMAL);
    *at = end;
    return errno == 0;
}

/* "<base>.<pid>-<n>.tmp" of another process than this one, which is there no more. */
static bool is_of_dead(const char *name, const char *base, size_t length)
{
    long pid, number;
    const char *at = name + length;
    bool fits = strncmp(name, base, length) == 0 && *at++ == '.' && take_digits(&at, &pid) && *at++ == '-' &&
                take_digits(&at, &number) && strcmp(at, ".tmp") == 0;
    return fits && pid > 0 && (pid_t)pid == pid && pid != getpid() && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* A process of another container or computer may be alive without being seen here: it holds the file locked. */
static void remove_unlocked(int folder, const char *name)
{
    struct stat info;
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, fd = openat(folder, name, flags | O_WRONLY);
    fd = fd < 0 ? openat(folder, name, flags | O_RDONLY) : fd; /* of a file that nobody may write to */
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

void gy_stale_remove(const char *folder, const char *target)
{
    const char *slash = strrchr(target, '/'), *base = slash ? slash + 1 : target;
    DIR *all = opendir(folder);
    if (!all)
        return;
    for (const struct dirent *entry; (entry = readdir(all));)
        if (is_of_dead(entry->d_name, base, strlen(base)))
            remove_unlocked(dirfd(all), entry->d_name);
    closedir(all);
}
