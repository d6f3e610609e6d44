#include "ops/detail/fail_unless.hpp"

#include "ops/api/generated.hpp"

namespace troupe::detail {

void fail_unless(const Output& condition, std::string message,
                 std::initializer_list<Output*> values, const Site& site) {
  const auto behind =
      condition.graph().with_control({assert_(condition, {.message = std::move(message)}, site)});
  for (Output* value : values) *value = identity(*value, site);
}

}  // namespace troupe::detail
