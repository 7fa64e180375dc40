/* SPDX-License-Identifier: Apache-2.0 */
/* The targets without libFuzzer: every file that is named, and every file of a folder that is named, is one input. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static size_t inputs;

static int try_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return 1;
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size + 1); /* as large as the input, so that sanitizers see what reads past its end */
    int failed = !data || fread(data, 1, size, file) != size;
    fclose(file);
    if (!failed) {
        LLVMFuzzerTestOneInput(data, size);
        inputs++;
    }
    free(data);
    return failed;
}

static int try_folder(const char *folder)
{
    int failed = 0;
    DIR *at = opendir(folder);
    for (struct dirent *entry; at && (entry = readdir(at));) {
        char path[4096];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode))
            failed += try_file(path);
    }
    if (at)
        closedir(at);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        failed += stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode) ? try_folder(argv[i]) : try_file(argv[i]);
    }
    printf("%zu inputs\n", inputs);
    return failed || !inputs;
}
