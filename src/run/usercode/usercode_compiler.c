/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which compiler a word of $CC is, without starting it. Scripts and programs that start another one (ccache, distcc,
 * and links with a compiler's name to them) may start a different one tomorrow, so only what is a program itself and
 * has GCC's or Clang's name behind all links is known by its file.
 */
#include "run/usercode/usercode_command.h"

#include "base/map.h"
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool may_run(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* As posix_spawnp looks for it. */
static bool find_in_path(char real[PATH_MAX], const char *word)
{
    char path[PATH_MAX];
    const char *list = getenv("PATH");
    if (strchr(word, '/'))
        return may_run(word) && realpath(word, real);
    while (list && *list) {
        int length = (int)strcspn(list, ":");
        int used = snprintf(path, sizeof path, "%.*s/%s", length, list, word);
        if (length == 0 || used < 0 || (size_t)used >= sizeof path)
            return false; /* the current folder, or too long */
        if (may_run(path))
            return realpath(path, real);
        list += length + (list[length] == ':');
    }
    return false;
}

static bool is_program(int fd)
{
    char begin[SELFMAG];
    return pread(fd, begin, sizeof begin, 0) == SELFMAG && memcmp(begin, ELFMAG, SELFMAG) == 0;
}

static bool has_compiler_name(const char *real)
{
    const char *name = strrchr(real, '/') + 1;
    return strstr(name, "gcc") || strstr(name, "clang");
}

bool gy_compiler_identify(uint64_t *hash, const char *word)
{
    char real[PATH_MAX];
    struct stat s;
    if (!find_in_path(real, word) || !has_compiler_name(real))
        return false;
    int fd = open(real, O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && fstat(fd, &s) == 0 && is_program(fd);
    if (fd >= 0)
        close(fd);
    if (!known)
        return false;
    const uint64_t numbers[] = { (uint64_t)s.st_size, (uint64_t)s.st_mtim.tv_sec, (uint64_t)s.st_mtim.tv_nsec };
    *hash = gy_hash_bytes(real, strlen(real) + 1, *hash);
    *hash = gy_hash_bytes(numbers, sizeof numbers, *hash);
    return true;
}
