// SPDX-License-Identifier: Apache-2.0
// One step of an optimiser for one element, on the host in double precision, and how far a kernel may be from it.
#pragma once
#include "stdlib/optimise/optimise.hpp"
#include "stdlib/reference/bounds.hpp"

namespace ikat::stdlib::reference {

/// The numbers of a step, as the kernels get them. For Adam `rate` is the learning rate / (1 - beta1^step), and `root`
/// sqrt(1 - beta2^step); `decay` is the weight decay, of AdamW and Lion 1 - learning rate * weight decay.
struct OptimiserStep {
    double rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, decay = 0, root = 1, scale = 1;
};
/// What an element is, or becomes. An optimiser without second moments leaves that as it is.
struct OptimisedElement {
    Bounded parameter, first, second;
};

/// One step. The errors follow from the kernels' roundings, of numbers that neither overflow nor are NaNs; `relative`
/// is that of rate and root.
OptimisedElement optimised(Optimiser kind, const OptimiserStep& of, double gradient, double parameter, double first,
                           double second, double relative = 0);

}  // namespace ikat::stdlib::reference
