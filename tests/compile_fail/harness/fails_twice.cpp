// SPDX-License-Identifier: Apache-2.0
// expect: missing
// errors: 1
int a = missing;
int b = missing;
