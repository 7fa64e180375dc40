/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for NVRTC of version VERSION.0: what it compiles is the number of its version. */
#include <stdio.h>
#include <string.h>

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
    (void)text, (void)name, (void)count, (void)headers, (void)names;
    *program = NULL;
    return 0;
}

int nvrtcDestroyProgram(void **program)
{
    *program = NULL;
    return 0;
}

int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    (void)program, (void)count, (void)options;
    return 0;
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
