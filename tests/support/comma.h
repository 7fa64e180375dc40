/* SPDX-License-Identifier: Apache-2.0 */
/* A locale that writes 0,5, as programs may set one. */
#ifndef GY_TESTS_SUPPORT_COMMA_H
#define GY_TESTS_SUPPORT_COMMA_H

#include <check.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* In force from here on; false, and said, where there is no localedef to make it. setlocale(LC_ALL, "C") ends it. */
static inline bool set_decimal_comma(void)
{
    char folder[] = "/tmp/gantry-locale-XXXXXX", command[200], plain[20];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    int made = system(command);
    setenv("LOCPATH", folder, 1);
    const char *set = made == 0 ? setlocale(LC_ALL, "de_DE.UTF-8") : NULL;
    snprintf(command, sizeof command, "rm -r %s", folder);
    made = system(command);
    if (!set) {
        fprintf(stderr, "skipped: no localedef to make a locale with a decimal comma\n");
        return false;
    }
    snprintf(plain, sizeof plain, "%.1f", 0.5);
    ck_assert_str_eq(plain, "0,5");
    return true;
}

#endif
