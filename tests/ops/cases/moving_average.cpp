// Rows for moving averages beside their updates, which sessions test.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases averages([] { return Cases{{.op = "MoveAverages"}}; });

}  // namespace
}  // namespace troupe::test
