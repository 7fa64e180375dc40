/* SPDX-License-Identifier: Apache-2.0 */
/* A library of the right name without the right functions. */
int nothing_of_use;
