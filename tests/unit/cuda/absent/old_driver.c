/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 with the first two functions only. */
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);

__attribute__((visibility("default"))) int cuInit(unsigned flags)
{
    return (int)flags;
}

__attribute__((visibility("default"))) int cuDriverGetVersion(int *version)
{
    *version = 9000;
    return 0;
}
