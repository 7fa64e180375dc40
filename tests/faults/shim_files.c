/* SPDX-License-Identifier: Apache-2.0 */
/* Files and processes of the program. */
#undef _FORTIFY_SOURCE /* the functions are defined here */
#include "shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLER __builtin_return_address(0)

/* Those that the headers have only where the checked functions of libc are on. */
int __open_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
char *__realpath_chk(const char *path, char *to, size_t size);
ssize_t __read_chk(int fd, void *to, size_t bytes, size_t size);

/* True if the call is to fail; errno is set then. */
static bool fails(const char *function, int code, const void *caller)
{
    bool wrong = shim_fails(SHIM_FILE, SHIM_ERROR, function, caller);
    errno = wrong ? code : errno;
    return wrong;
}

/* The same of a call that a signal may interrupt. */
static bool fails_slow(const char *function, int code, const void *caller)
{
    bool interrupted = shim_fails(SHIM_FILE, SHIM_EINTR, function, caller);
    errno = interrupted ? EINTR : errno;
    return interrupted || fails(function, code, caller);
}

static size_t at_once(const char *function, size_t bytes, const void *caller)
{
    return bytes > 1 && shim_fails(SHIM_FILE, SHIM_SHORT, function, caller) ? 1 : bytes;
}

/* ---- opening ---- */

static int open_as(const char *function, int folder, const char *path, int flags, mode_t mode, const void *caller)
{
    if (fails_slow(function, flags & O_CREAT ? ENOSPC : EMFILE, caller))
        return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open_as("open", AT_FDCWD, path, flags, mode, CALLER);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open_as("openat", folder, path, flags, mode, CALLER);
}

int __open_2(const char *path, int flags)
{
    return open_as("open", AT_FDCWD, path, flags, 0, CALLER);
}

int __openat_2(int folder, const char *path, int flags)
{
    return open_as("openat", folder, path, flags, 0, CALLER);
}

static long (*real_syscall)(long number, ...);

/* openat2 alone; others wait and wake, and say where memory should be. */
long syscall(long number, ...)
{
    long a[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    if (number == SYS_openat2 && fails_slow("openat2", EMFILE, CALLER))
        return -1;
    if (!real_syscall)
        real_syscall = (long (*)(long, ...))shim_next("syscall");
    return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- bytes ---- */

ssize_t read(int fd, void *to, size_t bytes)
{
    if (fails_slow("read", EIO, CALLER))
        return -1;
    return syscall(SYS_read, fd, to, at_once("read", bytes, CALLER));
}

ssize_t __read_chk(int fd, void *to, size_t bytes, size_t size)
{
    (void)size;
    if (fails_slow("read", EIO, CALLER))
        return -1;
    return syscall(SYS_read, fd, to, at_once("read", bytes, CALLER));
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    if (fails_slow("write", ENOSPC, CALLER))
        return -1;
    return syscall(SYS_write, fd, from, at_once("write", bytes, CALLER));
}

ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
    if (fails_slow("pread", EIO, CALLER))
        return -1;
    return syscall(SYS_pread64, fd, to, at_once("pread", bytes, CALLER), at);
}

/* Linux closes a file also where it says that this failed. */
int close(int fd)
{
    bool wrong = fails_slow("close", EIO, CALLER);
    int code = errno, result = (int)syscall(SYS_close, fd);
    if (!wrong)
        return result;
    errno = code;
    return -1;
}

/* ---- the others ---- */

#define CALL(test, result, name, bad, code, parameters, arguments)                                                     \
    SHIM_FUNCTION(result, name, test(#name, code, CALLER), bad, parameters, arguments)
#define QUICK(name, code, parameters, arguments) CALL(fails, int, name, -1, code, parameters, arguments)
#define SLOW(name, code, parameters, arguments)  CALL(fails_slow, int, name, -1, code, parameters, arguments)

QUICK(fstat, EIO, (int fd, struct stat *info), (fd, info))
QUICK(stat, EACCES, (const char *path, struct stat *info), (path, info))
QUICK(fstatat, EIO, (int folder, const char *path, struct stat *info, int flags), (folder, path, info, flags))
QUICK(access, EIO, (const char *path, int how), (path, how))
SLOW(fsync, EIO, (int fd), (fd))
SLOW(fchmod, EPERM, (int fd, mode_t mode), (fd, mode))
SLOW(flock, ENOLCK, (int fd, int how), (fd, how))
QUICK(rename, EIO, (const char *from, const char *to), (from, to))
QUICK(renameat, EIO, (int from_folder, const char *from, int to_folder, const char *to),
      (from_folder, from, to_folder, to))
QUICK(linkat, EPERM, (int from_folder, const char *from, int to_folder, const char *to, int flags),
      (from_folder, from, to_folder, to, flags))
QUICK(unlink, EIO, (const char *path), (path))
QUICK(unlinkat, EIO, (int folder, const char *path, int flags), (folder, path, flags))
QUICK(mkdir, ENOSPC, (const char *path, mode_t mode), (path, mode))
QUICK(mkdirat, ENOSPC, (int folder, const char *path, mode_t mode), (folder, path, mode))
QUICK(pipe2, EMFILE, (int ends[2], int flags), (ends, flags))
SLOW(poll, ENOMEM, (struct pollfd * all, nfds_t count, int wait), (all, count, wait))
CALL(fails_slow, pid_t, waitpid, -1, ECHILD, (pid_t child, int *status, int how), (child, status, how))
CALL(fails, off_t, lseek, -1, EIO, (int fd, off_t at, int whence), (fd, at, whence))
CALL(fails, DIR *, opendir, NULL, EMFILE, (const char *path), (path))
CALL(fails, DIR *, fdopendir, NULL, ENOMEM, (int fd), (fd))
CALL(fails, struct dirent *, readdir, NULL, EIO, (DIR * folder), (folder))
CALL(fails, ssize_t, readlinkat, -1, EIO, (int folder, const char *path, char *to, size_t size),
     (folder, path, to, size))
CALL(fails, FILE *, fopen, NULL, EMFILE, (const char *path, const char *mode), (path, mode))
CALL(fails, char *, fgets, NULL, EIO, (char *to, int size, FILE *file), (to, size, file))
CALL(fails, char *, __realpath_chk, NULL, EACCES, (const char *path, char *to, size_t size), (path, to, size))

SHIM_FUNCTION(int, posix_spawnp, fails("posix_spawnp", EAGAIN, CALLER), EAGAIN,
              (pid_t * child, const char *file, const posix_spawn_file_actions_t *actions,
               const posix_spawnattr_t *attributes, char *const words[], char *const environment[]),
              (child, file, actions, attributes, words, environment))
