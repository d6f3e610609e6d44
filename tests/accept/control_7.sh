#!/usr/bin/env bash
# second order through branches, loops, an LSTM and softmax cross-entropy: finite differences
source tests/accept/lib.sh
expect "every differentiable op" cases ops "every op does what its definition says"
expect "softmax cross-entropy" cases ops "Hessian-vector products through a softmax cross entropy"
expect "branches" cases actors "gradients of both branches of cond?*"
expect "loops" cases actors "gradients of what a loop *twice"
expect "loops in loops" cases actors "gradients through loops in a loop?*"
expect "an LSTM as a scan" cases actors "Hessian-vector products through an LSTM that is a scan"
expect "a gradient penalty trains" cases ops "a loss with a penalty on its gradient trains"
conclude
