/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include "backends/cuda/usercode/compile.h"
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

char folder[64];

void folder_make(void)
{
    char cache[80];
    strcpy(folder, "/tmp/gantry-cuda-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/cache", folder);
    setenv("XDG_CACHE_HOME", cache, 1);
}

void folder_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

const char *folder_path(const char *name)
{
    static char path[4][256];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

void folder_write(const char *name, const char *text)
{
    FILE *file = fopen(folder_path(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

int folder_cached(const char *ending, char *path, size_t size)
{
    int count = 0;
    DIR *dir = opendir(folder_path("cache/gantry"));
    path[0] = '\0';
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t length = strlen(e->d_name), tail = strlen(ending);
        if (length > tail && strcmp(e->d_name + length - tail, ending) == 0) {
            snprintf(path, size, "%s/cache/gantry/%s", folder, e->d_name);
            count++;
        }
    }
    if (dir)
        closedir(dir);
    return count;
}

bool have_nvrtc(void)
{
    int result = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        gy_nvrtc nvrtc;
        _exit(gy_nvrtc_open(&nvrtc, NULL) == GANTRY_OK ? 0 : 1);
    }
    return child > 0 && waitpid(child, &result, 0) == child && result == 0;
}
