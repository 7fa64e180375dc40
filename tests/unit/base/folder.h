/* SPDX-License-Identifier: Apache-2.0 */
/* A test's own folder, which is the current one from enter_folder to leave_folder. Every call ends the test on failure.
 */
#ifndef TESTS_UNIT_BASE_FOLDER_H
#define TESTS_UNIT_BASE_FOLDER_H

void enter_folder(void);
/* Removes it with all that is in it. */
void leave_folder(void);
/* The number of names in the current folder. */
int files_here(void);

#endif
