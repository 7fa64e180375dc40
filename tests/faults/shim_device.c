/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries of CUDA. Where the CUDA module asks dlsym for a function of theirs, it gets a stub, which asks whether this
 * call is to fail, and jumps to the function with registers and stack as they were: so nothing needs to be known of
 * parameters. The stubs are of x86-64. */
#include "shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STUBS = 512, STUB_BYTES = 16, NAME = 72 };

typedef int (*release)(void *first, void *second);
typedef struct stub {
    char name[NAME];
    void *real;
} stub;
typedef struct answer {
    void *go_on; /* the function; NULL: return `code` */
    long code;
} answer;

extern const char shim_stubs[] __attribute__((visibility("hidden")));
extern void *shim_real_dlsym __attribute__((visibility("hidden")));
void *shim_real_dlsym;
void *shim_find(void *handle, const char *name, const void *caller) __attribute__((visibility("hidden")));
answer shim_call(long index, const void *caller, void *first, void *second) __attribute__((visibility("hidden")));

static struct {
    pthread_mutex_t lock;
    stub at[STUBS];
    long count;
} stubs = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- which calls fail, and how ---- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* The library's own word for "something is wrong"; of the driver: no memory where it gives memory. */
static int error_of(const char *name)
{
    if (begins(name, "nccl"))
        return 2; /* system error */
    if (begins(name, "nvrtc"))
        return 11; /* internal error */
    if (begins(name, "cublas"))
        return 14; /* internal error */
    if (begins(name, "cusolver"))
        return 7; /* internal error */
    if (begins(name, "cupti") || begins(name, "nvml"))
        return 999;                                                      /* unknown */
    return shim_code()                                     ? shim_code() /* as wanted */
           : strstr(name, "Alloc") || strstr(name, "Load") ? 2           /* out of memory */
                                                           : 999;        /* unknown */
}

/* Such a call has done its work when it says that something went wrong. */
static bool ends_something(const char *name)
{
    static const char *const words[] = { "Destroy",     "Free",     "Release", "Unload",     "Unregister", "Disable",
                                         "Unsubscribe", "Finalize", "Abort",   "EndCapture", "GroupEnd",   "Shutdown" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

/* NCCL itself would refuse the end of a group in which a call has failed. It is not told of those that fail here, so
 * the group is one of fewer ranks: a real one waits until it is aborted, the fake ends the program. */
static bool is_spared(const char *name)
{
    static _Thread_local bool group;
    if (strncmp(name, "ncclGroup", 9) == 0)
        group = strcmp(name, "ncclGroupStart") == 0;
    else if (group && getenv("FAKE_CUDA_DEVICES"))
        return true;
    return false;
}

static void *find_real(const char *name)
{
    for (long i = 0; i < stubs.count; i++)
        if (strcmp(stubs.at[i].name, name) == 0)
            return stubs.at[i].real;
    return NULL;
}

/* A capture that fails gives no graph. */
static void drop_graph(void **graph)
{
    release destroy;
    void *real = find_real("cuGraphDestroy");
    memcpy(&destroy, &real, sizeof destroy);
    if (*graph && destroy)
        destroy(*graph, NULL);
    *graph = NULL;
}

answer shim_call(long index, const void *caller, void *first, void *second)
{
    const stub *s = &stubs.at[index];
    release function;
    if (is_spared(s->name) || !shim_fails(SHIM_DEVICE, SHIM_ERROR, s->name, caller))
        return (answer){ s->real, 0 };
    if (ends_something(s->name)) {
        memcpy(&function, &s->real, sizeof function);
        function(first, second);
        if (strstr(s->name, "EndCapture"))
            drop_graph(second);
    }
    return (answer){ NULL, error_of(s->name) };
}

/* ---- stubs ---- */

static bool is_counted(const char *name)
{
    static const char *const libraries[] = { "cu", "nccl", "nvrtc", "nvml" };
    static const char *const texts[] = { "ncclGetErrorString", "ncclGetLastError", "nvrtcGetErrorString",
                                         "nvmlErrorString" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i]) == 0)
            return false;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (begins(name, libraries[i]))
            return true;
    return false;
}

static void *stub_of(const char *name, void *real)
{
    pthread_mutex_lock(&stubs.lock);
    long i = 0;
    while (i < stubs.count && (stubs.at[i].real != real || strcmp(stubs.at[i].name, name) != 0))
        i++;
    if (i == STUBS || strlen(name) >= NAME)
        abort();
    if (i == stubs.count) {
        strcpy(stubs.at[i].name, name);
        stubs.at[stubs.count++].real = real;
    }
    pthread_mutex_unlock(&stubs.lock);
    return (void *)(uintptr_t)(shim_stubs + i * STUB_BYTES);
}

/* NULL: dlsym itself is to answer. */
void *shim_find(void *handle, const char *name, const void *caller)
{
    if (!shim_real_dlsym)
        shim_real_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!shim_real_dlsym)
        shim_real_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!shim_in(caller, "/gantry-cuda.so") || !is_counted(name))
        return NULL;
    void *(*find)(void *, const char *);
    memcpy(&find, &shim_real_dlsym, sizeof find);
    void *real = find(handle, name);
    return real ? stub_of(name, real) : NULL;
}

/* dlsym(RTLD_NEXT) looks at who calls it, so the real one is jumped to. */
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "    endbr64\n"
        "    push %rdi\n"
        "    push %rsi\n"
        "    sub $8, %rsp\n"
        "    mov 24(%rsp), %rdx\n"
        "    call shim_find\n"
        "    add $8, %rsp\n"
        "    pop %rsi\n"
        "    pop %rdi\n"
        "    test %rax, %rax\n"
        "    jnz 1f\n"
        "    jmp *shim_real_dlsym(%rip)\n"
        "1:  ret\n"
        ".size dlsym, . - dlsym\n");

__asm__(".text\n"
        ".p2align 4\n"
        ".globl shim_stubs\n"
        ".hidden shim_stubs\n"
        "shim_stubs:\n"
        ".set shim_index, 0\n"
        ".rept 512\n"
        ".p2align 4\n"
        "    endbr64\n"
        "    pushq $shim_index\n"
        "    jmp shim_common\n"
        ".set shim_index, shim_index + 1\n"
        ".endr\n"
        ".p2align 4\n"
        "shim_common:\n" /* on the stack: the index, where to return to */
        "    push %rax\n"
        "    push %rdi\n"
        "    push %rsi\n"
        "    push %rdx\n"
        "    push %rcx\n"
        "    push %r8\n"
        "    push %r9\n"
        "    sub $136, %rsp\n"
        "    movups %xmm0, (%rsp)\n"
        "    movups %xmm1, 16(%rsp)\n"
        "    movups %xmm2, 32(%rsp)\n"
        "    movups %xmm3, 48(%rsp)\n"
        "    movups %xmm4, 64(%rsp)\n"
        "    movups %xmm5, 80(%rsp)\n"
        "    movups %xmm6, 96(%rsp)\n"
        "    movups %xmm7, 112(%rsp)\n"
        "    mov %rsi, %rcx\n"
        "    mov %rdi, %rdx\n"
        "    mov 200(%rsp), %rsi\n"
        "    mov 192(%rsp), %rdi\n"
        "    call shim_call\n"
        "    mov %rax, %r11\n"
        "    mov %rdx, %r10\n"
        "    movups (%rsp), %xmm0\n"
        "    movups 16(%rsp), %xmm1\n"
        "    movups 32(%rsp), %xmm2\n"
        "    movups 48(%rsp), %xmm3\n"
        "    movups 64(%rsp), %xmm4\n"
        "    movups 80(%rsp), %xmm5\n"
        "    movups 96(%rsp), %xmm6\n"
        "    movups 112(%rsp), %xmm7\n"
        "    add $136, %rsp\n"
        "    pop %r9\n"
        "    pop %r8\n"
        "    pop %rcx\n"
        "    pop %rdx\n"
        "    pop %rsi\n"
        "    pop %rdi\n"
        "    pop %rax\n"
        "    lea 8(%rsp), %rsp\n"
        "    test %r11, %r11\n"
        "    jz 1f\n"
        "    jmp *%r11\n"
        "1:  mov %r10, %rax\n"
        "    ret\n");
