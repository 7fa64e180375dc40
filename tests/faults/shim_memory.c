/* SPDX-License-Identifier: Apache-2.0 */
/* The heap, mappings and threads of the program. Memory comes full of rubbish and is made rubbish when it is freed, so
 * that whoever uses what he should not comes to grief. */
#undef _FORTIFY_SOURCE /* the functions are defined here */
#include "shim.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLER __builtin_return_address(0)
enum { FRESH = 0xa5, FREED = 0xdb, MOST_RUBBISH = 4096 };

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static bool refused(const char *function, const void *caller)
{
    if (!shim_fails(SHIM_MEMORY, SHIM_ERROR, function, caller))
        return false;
    errno = ENOMEM;
    return true;
}

static void *made(void *memory, bool fill, const void *caller)
{
    if (memory && fill) {
        size_t bytes = malloc_usable_size(memory);
        memset(memory, FRESH, bytes < MOST_RUBBISH ? bytes : MOST_RUBBISH);
    }
    shim_made(memory, caller);
    return memory;
}

void *malloc(size_t bytes)
{
    return refused("malloc", CALLER) ? NULL : made(__libc_malloc(bytes), true, CALLER);
}

void *calloc(size_t count, size_t bytes)
{
    return refused("calloc", CALLER) ? NULL : made(__libc_calloc(count, bytes), false, CALLER);
}

void *realloc(void *old, size_t bytes)
{
    if (refused("realloc", CALLER))
        return NULL;
    shim_gone(old);
    void *moved = __libc_realloc(old, bytes);
    shim_made(moved ? moved : bytes ? old : NULL, CALLER);
    return moved;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return refused("aligned_alloc", CALLER) ? NULL : made(__libc_memalign(alignment, bytes), true, CALLER);
}

void *memalign(size_t alignment, size_t bytes)
{
    return refused("memalign", CALLER) ? NULL : made(__libc_memalign(alignment, bytes), true, CALLER);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    void *at = refused("posix_memalign", CALLER) ? NULL : made(__libc_memalign(alignment, bytes), true, CALLER);
    if (!at)
        return ENOMEM;
    *memory = at;
    return 0;
}

void free(void *memory)
{
    int code = errno;
    shim_gone(memory);
    if (memory) {
        size_t bytes = malloc_usable_size(memory);
        memset(memory, FREED, bytes < MOST_RUBBISH ? bytes : MOST_RUBBISH);
    }
    __libc_free(memory);
    errno = code;
}

/* ---- mappings ---- */

static bool unmappable(const char *function, const void *caller)
{
    if (!shim_fails(SHIM_MAP, SHIM_ERROR, function, caller))
        return false;
    errno = ENOMEM;
    return true;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (unmappable("mmap", CALLER))
        return MAP_FAILED;
    long got = syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
    void *mapped;
    memcpy(&mapped, &got, sizeof mapped);
    if (mapped != MAP_FAILED && !(flags & MAP_FIXED))
        shim_made(mapped, CALLER);
    return mapped;
}

int munmap(void *at, size_t bytes)
{
    shim_gone(at);
    return (int)syscall(SYS_munmap, at, bytes);
}

int mprotect(void *at, size_t bytes, int protection)
{
    return unmappable("mprotect", CALLER) ? -1 : (int)syscall(SYS_mprotect, at, bytes, protection);
}

int madvise(void *at, size_t bytes, int advice)
{
    return unmappable("madvise", CALLER) ? -1 : (int)syscall(SYS_madvise, at, bytes, advice);
}

int memfd_create(const char *name, unsigned flags)
{
    return unmappable("memfd_create", CALLER) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

/* ---- threads ---- */

#define THREAD(name, code, parameters, arguments)                                                                      \
    SHIM_FUNCTION(int, name, shim_fails(SHIM_THREAD, SHIM_ERROR, #name, CALLER), code, parameters, arguments)
THREAD(pthread_create, EAGAIN, (pthread_t * thread, const pthread_attr_t *how, void *(*body)(void *), void *data),
       (thread, how, body, data))
THREAD(pthread_mutex_init, ENOMEM, (pthread_mutex_t * lock, const pthread_mutexattr_t *how), (lock, how))
THREAD(pthread_cond_init, ENOMEM, (pthread_cond_t * signal, const pthread_condattr_t *how), (signal, how))
THREAD(pthread_condattr_init, ENOMEM, (pthread_condattr_t * how), (how))
THREAD(sched_setaffinity, EPERM, (pid_t process, size_t bytes, const cpu_set_t *set), (process, bytes, set))
