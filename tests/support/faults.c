/* SPDX-License-Identifier: Apache-2.0 */
#include "support/faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_long left = -1; /* allocations until the failure; -1: none */
static atomic_bool happened, lasting;
static atomic_long alive;
static int (*_Atomic before_thread)(void);

static void start(int n, bool last)
{
    happened = false;
    lasting = last;
    left = n;
}

void faults_after(int n)
{
    start(n, false);
}

void faults_from(int n)
{
    start(n, true);
}

bool faults_off(void)
{
    left = -1;
    return happened;
}

int faults_next(int n, int turn)
{
    int step = n < 100 ? 1 : n / 100;
    return n + (n == 100 ? 1 + turn % 7 : step);
}

long faults_alive(void)
{
    return alive;
}

void faults_before_thread(int (*before)(void))
{
    before_thread = before;
}

static bool fails(void)
{
    if (left < 0 || atomic_fetch_sub(&left, 1) != 0)
        return false;
    happened = true;
    left = lasting ? 0 : -1;
    errno = ENOMEM;
    return true;
}

static void *counted(void *memory)
{
    alive += memory != NULL;
    return memory;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *data);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *memory);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *data);

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (fails())
        return NULL;
    void *moved = __real_realloc(old, bytes);
    return old ? moved : counted(moved);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

void __wrap_free(void *memory)
{
    alive -= memory != NULL;
    __real_free(memory);
}

void *faults_malloc(size_t bytes)
{
    return __wrap_malloc(bytes);
}

void faults_free(void *memory)
{
    __wrap_free(memory);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *data)
{
    int (*before)(void) = before_thread;
    int error = before ? before() : 0;
    return error ? error : __real_pthread_create(thread, how, body, data);
}

/* MemorySanitizer does not see what the JSON library writes, which it did not compile: to it, memory of the library and
 * the stack below who calls it count as written. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <jansson.h>
#include <sanitizer/msan_interface.h>

json_t *__real_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);

static void *written(size_t bytes)
{
    return __real_calloc(1, bytes);
}

__attribute__((noinline)) static void trust_stack(void)
{
    char below[1 << 16];
    __msan_unpoison(below, sizeof below);
}

json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error)
{
    trust_stack();
    return __real_json_loadb(text, length, flags, error);
}

__attribute__((constructor)) static void trust_jansson(void)
{
    json_set_alloc_funcs(written, __real_free);
}
#endif
#endif
