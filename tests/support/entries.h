/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_ENTRIES_H
#define TESTS_SUPPORT_ENTRIES_H

#include <dirent.h>

/* Names in the folder, "." and ".." too; 0: it cannot be opened. What is open shows in /proc/self/fd, which counts its
 * own descriptor, and threads show in /proc/self/task. */
static inline long count_entries(const char *path)
{
    long count = 0;
    DIR *d = opendir(path);
    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count;
}

#endif
