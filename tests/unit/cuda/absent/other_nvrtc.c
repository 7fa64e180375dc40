/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for NVRTC of version VERSION.0: what it compiles is the number of its version. A text with "broken" in it
 * does not compile. A test may set how many compilations wait for each other, and reads how many there were. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_WAITS = 5000 }; /* of a ms */
atomic_int other_nvrtc_wait_for, other_nvrtc_at_once, other_nvrtc_compiled;

int nvrtcVersion(int *major, int *minor);
int nvrtcGetNumSupportedArchs(int *count);
int nvrtcGetSupportedArchs(int *known);
int nvrtcCreateProgram(void **program, const char *text, const char *name, int count, const char *const *headers,
                       const char *const *names);
int nvrtcDestroyProgram(void **program);
int nvrtcCompileProgram(void *program, int count, const char *const *options);
int nvrtcGetSize(void *program, size_t *bytes);
int nvrtcGet(void *program, char *to);
const char *nvrtcGetErrorString(int code);

int nvrtcVersion(int *major, int *minor)
{
    *major = VERSION;
    *minor = 0;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *count)
{
    *count = 1;
    return 0;
}

int nvrtcGetSupportedArchs(int *known)
{
    *known = 90;
    return 0;
}

int nvrtcCreateProgram(void **program, const char *text, const char *name, int count, const char *const *headers,
                       const char *const *names)
{
    (void)name, (void)count, (void)headers, (void)names;
    *program = (void *)(unsigned long)text;
    return 0;
}

int nvrtcDestroyProgram(void **program)
{
    *program = NULL;
    return 0;
}

/* All that began stay until there were enough of them. */
int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    const struct timespec pause = { 0, 1000000 };
    (void)count, (void)options;
    other_nvrtc_compiled++;
    other_nvrtc_at_once++;
    for (int i = 0; i < MOST_WAITS && other_nvrtc_at_once < other_nvrtc_wait_for; i++)
        nanosleep(&pause, NULL);
    return strstr(program, "broken") ? 6 : 0; /* NVRTC_ERROR_COMPILATION */
}

int nvrtcGetSize(void *program, size_t *bytes)
{
    (void)program;
    *bytes = 3;
    return 0;
}

int nvrtcGet(void *program, char *to)
{
    (void)program;
    snprintf(to, 3, "%d", VERSION);
    return 0;
}

const char *nvrtcGetErrorString(int code)
{
    (void)code;
    return "no reason";
}

#define SAME(name, as) extern __typeof__(as) name __attribute__((alias(#as)));
SAME(nvrtcGetPTXSize, nvrtcGetSize)
SAME(nvrtcGetCUBINSize, nvrtcGetSize)
SAME(nvrtcGetProgramLogSize, nvrtcGetSize)
SAME(nvrtcGetPTX, nvrtcGet)
SAME(nvrtcGetCUBIN, nvrtcGet)
SAME(nvrtcGetProgramLog, nvrtcGet)
