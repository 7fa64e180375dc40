/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no module. */
int gantry_is_not_here(void);

__attribute__((visibility("default"))) int gantry_is_not_here(void)
{
    return 0;
}
