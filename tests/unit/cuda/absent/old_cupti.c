/* SPDX-License-Identifier: Apache-2.0 */
/* A libcupti that has not all functions. */
int cuptiGetVersion(unsigned *version);

__attribute__((visibility("default"))) int cuptiGetVersion(unsigned *version)
{
    *version = 130000;
    return 0;
}
