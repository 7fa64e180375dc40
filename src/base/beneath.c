/* SPDX-License-Identifier: Apache-2.0 */
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    READING = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
    PASSING = O_PATH | O_CLOEXEC | O_NOFOLLOW,
    MOST_LINKS = 40, /* as many as the kernel follows */
    MOST_TRIES = 8
};

/* The kernel gives up with EAGAIN when folders are renamed at the same time. */
int gy_beneath_ask(int folder, const char *name)
{
    struct open_how how = { .flags = READING, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    long fd = -1;
    for (int i = 0; i < MOST_TRIES; i++) {
        fd = syscall(SYS_openat2, folder, name, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return (int)fd;
}

/* ---- component by component ---- */

/* No link is ever followed by the kernel here: `done` has plain names of folders only, and each is opened with
 * O_NOFOLLOW. Paths that are longer than PATH_MAX with the targets of their links put in are refused. */
typedef struct walk {
    int root, at;        /* the folder, and where we are */
    int links;           /* followed so far */
    char done[PATH_MAX]; /* from the root to where we are: "a/b/" */
    char rest[PATH_MAX]; /* still to go */
} walk;

static bool refuse(int code)
{
    errno = code;
    return false;
}

/* Closing keeps the errno of what failed. */
static void move_to(walk *w, int fd)
{
    int code = errno;
    if (w->at != w->root)
        close(w->at);
    w->at = fd;
    errno = code;
}

static bool enter(walk *w, const char *name)
{
    int fd = openat(w->at, name, PASSING | O_DIRECTORY);
    if (fd < 0)
        return false;
    move_to(w, fd);
    return true;
}

/* Where ".." leads may have been moved elsewhere meanwhile: the way there is gone again from the root. */
static bool go_up(walk *w)
{
    char way[PATH_MAX], *next = way;
    size_t length = strlen(w->done);
    if (length == 0)
        return refuse(EXDEV);
    do
        length--;
    while (length > 0 && w->done[length - 1] != '/');
    w->done[length] = '\0';
    memcpy(way, w->done, length + 1);
    move_to(w, w->root);
    for (char *slash; (slash = strchr(next, '/')); next = slash + 1) {
        *slash = '\0';
        if (!enter(w, next))
            return false;
    }
    return true;
}

static bool go_down(walk *w, const char *name)
{
    size_t length = strlen(w->done), more = strlen(name);
    if (length + more + 2 > sizeof w->done)
        return refuse(ENAMETOOLONG);
    if (!enter(w, name))
        return false;
    memcpy(w->done + length, name, more);
    memcpy(w->done + length + more, "/", 2);
    return true;
}

/* The target of a link is put before the rest of the way. */
static bool follow(walk *w, int link)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(link, "", target, sizeof target);
    size_t rest = strlen(w->rest);
    if (length < 0)
        return false;
    if (length == 0 || ++w->links > MOST_LINKS)
        return refuse(length == 0 ? ENOENT : ELOOP);
    if (target[0] == '/')
        return refuse(EXDEV);
    if ((size_t)length + rest + 1 > sizeof w->rest)
        return refuse(ENAMETOOLONG);
    memmove(w->rest + length, w->rest, rest + 1);
    memcpy(w->rest, target, (size_t)length);
    return true;
}

/* Takes the first component off the rest, which then is empty or begins with '/'; "" if there is none left. */
static bool take_component(walk *w, char name[NAME_MAX + 1])
{
    size_t skip = strspn(w->rest, "/"), length = strcspn(w->rest + skip, "/"), end = skip + length;
    if (length > NAME_MAX)
        return refuse(ENAMETOOLONG);
    memcpy(name, w->rest + skip, length);
    name[length] = '\0';
    memmove(w->rest, w->rest + end, strlen(w->rest + end) + 1);
    return true;
}

/* A component that is neither "." nor "..". *fd is set where it is the last one, and no link. */
static bool step(walk *w, const char *name, int *fd)
{
    struct stat info;
    int next = openat(w->at, name, PASSING);
    if (next < 0)
        return false;
    bool fine = fstat(next, &info) == 0;
    if (fine && S_ISLNK(info.st_mode)) {
        fine = follow(w, next);
    } else if (fine && !w->rest[0]) {
        *fd = openat(w->at, name, READING | O_NOFOLLOW);
        fine = *fd >= 0;
    } else if (fine) {
        fine = go_down(w, name);
    }
    int code = errno;
    close(next);
    errno = code;
    return fine;
}

static bool walk_on(walk *w, int *fd)
{
    char name[NAME_MAX + 1];
    bool fine = true;
    while (fine && *fd < 0 && w->rest[0]) {
        if (!take_component(w, name))
            return false;
        if (strcmp(name, "..") == 0)
            fine = go_up(w);
        else if (name[0] && strcmp(name, ".") != 0)
            fine = step(w, name, fd);
    }
    if (fine && *fd < 0) /* the way ended in a folder */
        *fd = openat(w->at, ".", READING);
    return fine && *fd >= 0;
}

int gy_beneath_walk(int folder, const char *name)
{
    walk w = { .root = folder, .at = folder };
    int fd = -1;
    size_t length = strlen(name);
    if (length == 0 || name[0] == '/' || length >= sizeof w.rest) {
        errno = length == 0 ? ENOENT : name[0] == '/' ? EXDEV : ENAMETOOLONG;
        return -1;
    }
    memcpy(w.rest, name, length + 1);
    bool found = walk_on(&w, &fd);
    move_to(&w, folder);
    return found ? fd : -1;
}

/* ---- either way ---- */

int gy_beneath_open(const char *folder, const char *name)
{
    int root = open(folder[0] ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -1;
    int fd = gy_beneath_ask(root, name);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN))
        fd = gy_beneath_walk(root, name);
    int code = errno;
    close(root);
    errno = code;
    return fd;
}
