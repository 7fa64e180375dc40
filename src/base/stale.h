/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files that killed processes left: "<target>.<pid>-<n>.tmp". */
#ifndef GY_BASE_STALE_H
#define GY_BASE_STALE_H

/* Removes those beside `target`, which is in `folder`, whose process is gone and that nobody holds locked. */
void gy_stale_remove(const char *folder, const char *target);

#endif
