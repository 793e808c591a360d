// SPDX-License-Identifier: Apache-2.0
// expect: nowhere_declared
// errors: 1
int a = nowhere_declared;
int b = nowhere_declared;
