/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Assertions: what the code itself promises, whatever a caller gives it. They are compiled where NDEBUG is not defined
 * (presets debug, asan and tsan), and say nothing in a release. What a user can get wrong is an error, never an
 * assertion.
 */
#ifndef GY_BASE_ASSERT_H
#define GY_BASE_ASSERT_H

#ifdef NDEBUG
#define GY_ASSERT(claim) ((void)sizeof((claim) ? 1 : 0))
#else
#define GY_ASSERT(claim) ((claim) ? (void)0 : gy_assert_fail(#claim, __FILE__, __LINE__))
#endif

/* Writes the claim and its place to file descriptor 2 and ends the process by a trap. */
_Noreturn void gy_assert_fail(const char *claim, const char *file, int line);

#endif
