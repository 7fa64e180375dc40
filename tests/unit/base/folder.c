/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include "suite.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/gantry-test-XXXXXX";

void enter_folder(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

void leave_folder(void)
{
    char command[64];
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

int files_here(void)
{
    DIR *here = opendir(".");
    int count = -2; /* . and .. */
    while (readdir(here))
        count++;
    closedir(here);
    return count;
}
